// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the stress test's processes are, and what each of them checks of what it is sent.

#include <orrery/orrery.hpp>
#include <orrery/scheduler/pe.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace orrery::stress {

/// One source of decisions: the same on every machine and compiler.
class dice {
 public:
  explicit dice(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e37'79b9'7f4a'7c15;
    z = (z ^ (z >> 30)) * 0xbf58'476d'1ce4'e5b9;
    z = (z ^ (z >> 27)) * 0x94d0'49bb'1331'11eb;
    return z ^ (z >> 31);
  }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>((*this)() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  /// A size up to 1 MiB: small ones are as frequent as large ones.
  std::size_t size() { return below((std::size_t{1} << below(21)) + 1); }
  [[nodiscard]] std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

// --- what went wrong, in this OS process ---------------------------------------------------------------------------

inline std::atomic<std::uint64_t> failure_count{0};

/// Says what is wrong, at most twenty times.
inline void check(bool good, std::string_view what) {
  if (good || failure_count.fetch_add(1) >= 20) return;
  fmt::print(stderr, "stress: PE {}: {}\n", this_pe(), what);
}
inline std::uint64_t failures() { return failure_count.load(); }

// --- payloads ------------------------------------------------------------------------------------------------------

using key = std::uint64_t;

inline std::uint64_t word(key k, std::size_t i) { return (k ^ i) * 0x9e37'79b9'7f4a'7c15; }

/// Bytes that only a payload of this key and size has.
inline void fill(std::span<std::byte> to, key k) {
  for (std::size_t i = 0; i < to.size(); i += 8) {
    const std::uint64_t w = word(k, i);
    std::memcpy(to.data() + i, &w, std::min<std::size_t>(8, to.size() - i));
  }
}
inline bool is_filled(std::span<const std::byte> bytes, key k) {
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t w = word(k, i);
    if (std::memcmp(bytes.data() + i, &w, std::min<std::size_t>(8, bytes.size() - i)) != 0) return false;
  }
  return true;
}

using numbers = std::vector<std::uint64_t>;
inline numbers make_numbers(key k, std::size_t bytes) {
  numbers v(bytes / 8);
  fill(std::as_writable_bytes(std::span(v)), k);
  return v;
}

/// A payload that can only be moved, and that is counted: in the end none may be left.
class cargo {
 public:
  static inline std::atomic<std::int64_t> alive{0};

  cargo() { ++alive; }
  cargo(key k, std::size_t size) : bytes_(size) {
    fill(bytes_, k);
    ++alive;
  }
  cargo(cargo&& other) noexcept : bytes_(std::move(other.bytes_)) { ++alive; }
  cargo& operator=(cargo&&) noexcept = default;
  ~cargo() { --alive; }

  [[nodiscard]] bool is(key k, std::size_t size) const { return bytes_.size() == size && is_filled(bytes_, k); }
  template <class A>
  void serialize(A& a) {
    a & bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
};

// --- functions that may be called on any PE ------------------------------------------------------------------------

inline std::atomic<std::uint64_t> ticks{0};
inline void tick(std::uint64_t n) { ticks += n; }
inline std::uint64_t ticks_here() { return ticks.load(); }
inline std::int64_t cargo_here() { return cargo::alive.load(); }
inline std::uint64_t processes_here() { return scheduler::current_pe->count().processes; }
inline std::uint64_t failed_posts_here() { return scheduler::current_pe->count().failed_posts; }
inline std::uint64_t answer(key k, std::uint64_t number, std::size_t size) { return word(k + number, size); }
inline std::uint64_t weigh(cargo c, key k, std::size_t size) {
  check(c.is(k, size), "a function got other arguments than were sent");
  return answer(k, 0, size);
}
inline std::string spell(key k, std::size_t size) {
  std::string s(size, '\0');
  fill(std::as_writable_bytes(std::span(s)), k);
  return s;
}

/// Lets others run for a while, in one of several ways.
inline void pause(std::uint64_t how) {
  switch (how % 8) {
    case 0:
      return yield();
    case 1:
      return sleep_for(std::chrono::microseconds(how / 8 % 200));
    case 2: {
      const auto k = how / 8;
      check(call<&weigh>(pe(static_cast<std::uint32_t>(k % world_pes())), cargo(k, k % 300), k, k % 300) ==
                answer(k, 0, k % 300),
            "a function gave another result");
      return;
    }
    default:
      return;
  }
}

// --- processes -----------------------------------------------------------------------------------------------------

inline std::atomic<std::int64_t> objects{0};  // of this OS process
inline std::int64_t objects_here() { return objects.load(); }

struct counted {
  counted() { ++objects; }
  counted(const counted&) = delete;
  counted& operator=(const counted&) = delete;
  ~counted() { --objects; }
};

/// Who sends, and how many it had sent to the same process before: so the receiver knows what is lost, doubled or overtaken.
struct stamp {
  std::uint32_t sender = 0;
  std::uint64_t number = 0;
};

enum class thrown : std::uint8_t { out_of_range, runtime_error, own, number };
struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Server {
 public:
  Server(cargo c, key k, std::size_t size) { check(c.is(k, size), "a constructor got other arguments"); }

  std::uint64_t take(stamp s, cargo c, key k, std::size_t size, std::uint64_t how) {
    const one_at_a_time alone(*this, s);
    pause(how);
    check(c.is(k, size), "a method got other arguments");
    return answer(k, s.number, size);
  }
  std::uint64_t look(stamp s, std::span<const std::uint64_t> v, key k, std::size_t size, std::uint64_t how) {
    const one_at_a_time alone(*this, s);
    check(v.size() == size / 8 && is_filled(std::as_bytes(v), k), "a view shows something else");
    pause(how);
    check(is_filled(std::as_bytes(v), k), "a view has changed while its method waited");
    return answer(k, s.number, size);
  }
  std::string give(stamp s, key k, std::size_t size, std::uint64_t how) {
    const one_at_a_time alone(*this, s);
    pause(how);
    return spell(k, size);
  }
  void note(stamp s, cargo c, key k, std::size_t size, std::uint64_t how) {
    const one_at_a_time alone(*this, s);
    pause(how);
    check(c.is(k, size), "a posted method got other arguments");
  }
  void fail(stamp s, thrown what, std::uint64_t how) {
    const one_at_a_time alone(*this, s);
    pause(how);
    switch (what) {
      case thrown::out_of_range:
        throw std::out_of_range(std::to_string(s.number));
      case thrown::runtime_error:
        throw std::runtime_error(std::to_string(s.number));
      case thrown::own:
        throw own_error(std::to_string(s.number));
      default:
        throw 42;
    }
  }
  /// Calls the first of the others, which calls the next; the number of those that saw the right numbers.
  std::uint64_t chain(std::vector<remote<Server>> rest, std::span<const std::uint64_t> v, key k, std::uint64_t how) {
    const one_at_a_time alone(*this);
    const std::uint64_t right = is_filled(std::as_bytes(v), k) ? 1 : 0;
    pause(how);
    if (rest.empty()) return right;
    const remote<Server> next = rest.front();
    rest.erase(rest.begin());
    const std::uint64_t others =
        how % 3 == 0 ? start(next)->chain(rest, v, k, how / 3).get() : next->chain(rest, v, k, how / 3);
    return right + others;
  }
  /// Calls all the others at once.
  std::uint64_t fan(std::vector<remote<Server>> to, std::span<const std::uint64_t> v, key k, std::uint64_t how) {
    const one_at_a_time alone(*this);
    std::vector<future<std::uint64_t>> asked;
    for (const auto& p : to) asked.push_back(start(p)->chain({}, v, k, how));
    std::uint64_t right = is_filled(std::as_bytes(v), k) ? 1 : 0;
    for (const std::uint64_t n : when_all(std::move(asked)).get()) right += n;
    return right;
  }
  std::uint64_t taken_from(std::uint32_t sender) const {
    const auto it = last_.find(sender);
    return it == last_.end() ? 0 : it->second;
  }
  ORRERY_PROCESS_MEMBERS(Server, take, look, give, note, fail, chain, fan, taken_from)

 private:
  class one_at_a_time {
   public:
    explicit one_at_a_time(Server& s) : server_(s) {
      check(!s.busy_, "two methods of a process at once");
      s.busy_ = true;
    }
    one_at_a_time(Server& s, const stamp& who) : one_at_a_time(s) {
      std::uint64_t& last = s.last_[who.sender];
      check(who.number == last + 1,
            fmt::format("message {} of sender {} comes after {}", who.number, who.sender, last));
      last = who.number;
    }
    one_at_a_time(const one_at_a_time&) = delete;
    one_at_a_time& operator=(const one_at_a_time&) = delete;
    ~one_at_a_time() { server_.busy_ = false; }

   private:
    Server& server_;
  };

  counted counted_;
  bool busy_ = false;
  std::map<std::uint32_t, std::uint64_t> last_;
};

class Member : public orrery::member<Member> {
 public:
  explicit Member(std::uint64_t first) : value_(first + rank()) {}
  void add(std::uint64_t n) { value_ += n; }
  std::uint64_t value() const { return value_; }
  std::uint64_t total(std::span<const std::uint64_t> v, key k, std::uint64_t how) const {
    pause(how + rank());
    stress::check(is_filled(std::as_bytes(v), k), "a broadcast shows something else");
    return v.size() + rank();
  }
  /// Meets all others in a barrier, and sees that none is late.
  void meet(std::uint64_t rounds, std::uint64_t how) {
    for (std::uint64_t i = 0; i < rounds; ++i) {
      pause(how + i + rank());
      barrier();
      stress::check(all_reduce(i) == i * size(), "a reduction among members is wrong");
    }
  }
  std::string spelled() const { return std::to_string(rank()) + ","; }
  std::uint64_t ask_next() const {
    const std::size_t next = rank() + 1;
    return next < size() ? this_group()[next]->ask_next() + value_ : value_;
  }
  ORRERY_PROCESS_MEMBERS(Member, add, value, total, meet, spelled, ask_next)

 private:
  counted counted_;
  std::uint64_t value_;
};

}  // namespace orrery::stress
