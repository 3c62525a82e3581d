// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/call.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace call_tests {

using testing::in_world;
using testing::what_is_thrown;

/// Counts the copies and moves of its kind.
struct counted {
  inline static thread_local int copies = 0;
  inline static thread_local int moves = 0;
  int value = 0;
  counted() = default;
  explicit counted(int v) : value(v) {}
  counted(const counted& o) : value(o.value) { ++copies; }
  counted(counted&& o) noexcept : value(o.value) { ++moves; }
  counted& operator=(const counted&) = default;
  counted& operator=(counted&&) = default;
  ~counted() = default;
  template <class A>
  void serialize(A& a) {
    a & value;
  }
};

struct own_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct known_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
ORRERY_EXCEPTION(known_error);

struct Fragile {
  Fragile() { throw own_error("in the constructor"); }
};

class Device {
 public:
  int add(int a, int b) { return a + b; }
  int twice(int a) { return 2 * a; }
  double twice(double a) { return 2 * a; }
  std::string twice(const std::string& a) { return a + a; }
  int size() const { return static_cast<int>(pages_.size()); }
  static int answer() { return 42; }
  int quiet() noexcept { return 7; }
  int const_quiet() const noexcept { return 8; }
  void reset() { pages_.clear(); }
  void put(std::unique_ptr<int> p) { owned_ = std::move(p); }
  std::unique_ptr<int> take() { return std::move(owned_); }
  void keep(std::span<const int> values) { pages_.assign(values.begin(), values.end()); }
  int sum() const { return std::accumulate(pages_.begin(), pages_.end(), 0); }
  void name(std::string_view n) { name_ = n; }
  const std::string& name_of() const { return name_; }
  int see(const counted& c) {
    seen_ = &c;
    return counted::copies + c.value;
  }
  const counted& stored() const { return stored_; }
  void fail(int how) {
    switch (how) {
      case 0:
        throw std::out_of_range("out of it");
      case 1:
        throw std::system_error(std::make_error_code(std::errc::no_space_on_device), "disk");
      case 2:
        throw own_error("my own");
      case 3:
        throw 17;
      case 5:
        throw known_error("known");
      default:
        throw timeout_error("in there");
    }
  }
  int fail_with_result() { throw std::invalid_argument("no result"); }
  std::string late() {
    yield();
    return "late";
  }

 private:
  std::vector<int> pages_;
  std::unique_ptr<int> owned_;
  std::string name_;
  const counted* seen_ = nullptr;
  counted stored_{5};
};
ORRERY_PROCESS(Device, add, twice, size, answer, quiet, const_quiet, reset, put, take, keep, sum, name, name_of, see,
               stored, fail, fail_with_result, late);

ORRERY_AT_EACH_PLACE(call);

TEST_P(call, returns_the_result_of_the_method) {
  in_world([] { EXPECT_EQ(spawn<Device>(where())->add(2, 3), 5); });
}

TEST_P(call, chooses_the_overload_by_the_arguments) {
  in_world([] {
    const auto d = spawn<Device>(where());
    EXPECT_EQ(d->twice(4), 8);
    EXPECT_EQ(d->twice(1.5), 3.0);
    EXPECT_EQ(d->twice("ab"), "abab");
    EXPECT_EQ(d->twice(std::string("c")), "cc");
    EXPECT_EQ(start(d)->twice("xy").get(), "xyxy");
  });
}

TEST_P(call, reaches_const_static_and_noexcept_methods) {
  in_world([] {
    const auto d = spawn<Device>(where());
    EXPECT_EQ(d->size(), 0);
    EXPECT_EQ(d->answer(), 42);
    EXPECT_EQ(d->quiet(), 7);
    EXPECT_EQ(d->const_quiet(), 8);
    d->reset();
  });
}

TEST_P(call, hands_over_arguments_and_results_that_can_only_be_moved) {
  in_world([] {
    const auto d = spawn<Device>(where());
    d->put(std::make_unique<int>(11));
    EXPECT_EQ(*d->take(), 11);
    start(d)->put(std::make_unique<int>(12)).get();
    EXPECT_EQ(*start(d)->take().get(), 12);
    post(d)->put(std::make_unique<int>(13));
    EXPECT_EQ(*d->take(), 13);
  });
}

TEST_P(call, reads_a_span_of_the_caller_in_place) {
  in_world([] {
    const auto d = spawn<Device>(where());
    const std::vector<int> values(1000, 3);
    d->keep(values);
    EXPECT_EQ(d->sum(), 3000);
  });
}

TEST_P(call, keeps_what_a_view_looks_at_until_a_started_method_has_run) {
  in_world([] {
    const auto d = spawn<Device>(where());
    {
      std::vector<int> values(100, 4);
      std::string name = "a name that is too long for the small string optimization";
      post(d)->keep(values);
      post(d)->name(name);
      values.assign(100, -1);
      name.assign(100, 'x');
    }
    EXPECT_EQ(d->sum(), 400);
    EXPECT_EQ(d->name_of(), "a name that is too long for the small string optimization");
    future<void> done;
    {
      std::string name = "another name that is too long for the small string optimization";
      done = start(d)->name(name);
      name.assign(100, 'x');
    }
    done.get();
    EXPECT_EQ(d->name_of(), "another name that is too long for the small string optimization");
  });
}

TEST_P(call, passes_a_const_reference_without_a_copy) {
  in_world([] {
    const auto d = spawn<Device>(where());
    const counted c(3);
    counted::copies = 0;
    EXPECT_EQ(d->see(c), 3);
    EXPECT_EQ(counted::copies, 0);
  });
}

TEST_P(call, copies_a_result_that_is_returned_by_reference_once) {
  in_world([] {
    const auto d = spawn<Device>(where());
    counted::copies = 0;
    EXPECT_EQ(d->stored().value, 5);
    EXPECT_LE(counted::copies, 1);  // made on the callee's PE
  });
}

TEST_P(call, ends_with_the_same_standard_exception_that_the_method_threw) {
  in_world([] {
    const auto d = spawn<Device>(where());
    EXPECT_EQ(what_is_thrown<std::out_of_range>([&] { d->fail(0); }), "out of it");
    try {
      d->fail(1);
      ADD_FAILURE();
    } catch (const std::system_error& e) {
      EXPECT_EQ(e.code(), std::errc::no_space_on_device);
    }
    EXPECT_THROW(d->fail(4), timeout_error);
    EXPECT_THROW((void)d->fail_with_result(), std::invalid_argument);
    EXPECT_EQ(d->add(1, 1), 2);  // and the process goes on
  });
}

TEST_P(call, ends_with_an_exception_of_the_program_that_has_a_line) {
  in_world([] {
    const auto d = spawn<Device>(where());
    EXPECT_EQ(what_is_thrown<known_error>([&] { d->fail(5); }), "known");
    EXPECT_EQ(what_is_thrown<known_error>([&] { start(d)->fail(5).get(); }), "known");
  });
}

TEST_P(call, ends_with_remote_error_for_any_other_exception_wherever_the_process_is) {
  in_world([] {
    const auto d = spawn<Device>(where());
    for (const int how : {2, 3}) {
      try {
        if (how == 2) {
          d->fail(how);
        } else {
          start(d)->fail(how).get();
        }
        ADD_FAILURE();
      } catch (const remote_error& e) {
        EXPECT_NE(e.class_name().find("Device"), std::string::npos);
        EXPECT_EQ(e.method(), "fail");
        EXPECT_EQ(e.pe(), d.address().pe);
        EXPECT_NE(e.type().find(how == 2 ? "own_error" : "int"), std::string::npos);
        EXPECT_EQ(e.text(), how == 2 ? "my own" : "");
      }
    }
    EXPECT_THROW((void)spawn<Fragile>(where()), remote_error);
    EXPECT_EQ(d->add(1, 1), 2);
  });
}

TEST_P(call, through_a_null_pointer_is_a_usage_error) {
  in_world([] {
    const remote<Device> nobody;
    EXPECT_NE(what_is_thrown<usage_error>([&] { (void)nobody->add(1, 2); }).find("Device::add"), std::string::npos);
    EXPECT_THROW(start(nobody)->add(1, 2).get(), usage_error);
    EXPECT_THROW(destroy(nobody), usage_error);
    EXPECT_THROW((void)spawn<Device>(near(nobody)), usage_error);
    const auto d = spawn<Device>(where());
    EXPECT_EQ(spawn<Device>(near(d)).address().pe, d.address().pe);
  });
}

TEST_P(call, of_a_method_that_waits_returns_when_it_has_ended) {
  in_world([] { EXPECT_EQ(spawn<Device>(where())->late(), "late"); });
}

TEST_P(call, to_a_process_that_was_destroyed_fails_with_process_gone) {
  in_world([] {
    const auto d = spawn<Device>(where());
    destroy(d);
    EXPECT_NE(what_is_thrown<process_gone>([&] { d->add(1, 2); }).find("Device::add"), std::string::npos);
    EXPECT_THROW(start(d)->add(1, 2).get(), process_gone);
    EXPECT_THROW(destroy(d), process_gone);
    const auto next = spawn<Device>(where());  // in the same place
    EXPECT_THROW(d->add(1, 2), process_gone);
    EXPECT_EQ(next->add(1, 2), 3);
  });
}

TEST_P(call, by_post_to_a_process_that_was_destroyed_is_reported_and_counted) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto d = spawn<Device>(where());
    destroy(d);
    post(d)->add(1, 2);
    spawn<Device>(where())->reset();  // behind the post
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("Device::add"), std::string::npos);
  EXPECT_EQ(counts[GetParam()].failed_posts, 1U);
}

TEST_P(call, by_post_of_a_method_that_throws_is_reported_and_counted) {
  ::testing::internal::CaptureStderr();
  const auto counts = in_world([] {
    const auto d = spawn<Device>(where());
    post(d)->fail(0);
    d->reset();
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("Device::fail"), std::string::npos) << said;
  EXPECT_NE(said.find("out of it"), std::string::npos) << said;
  EXPECT_EQ(counts[GetParam()].failed_posts, 1U);
}

TEST(call_outside, of_the_runtime_fails_with_usage_error) {
  remote<Device> d;
  EXPECT_THROW(d->add(1, 2), usage_error);
  EXPECT_THROW(post(d)->add(1, 2), usage_error);
}

// --- order ---------------------------------------------------------------------------------------

class Journal {
 public:
  void note(int i) { seen_.push_back(i); }
  int note_and_count(int i) {
    seen_.push_back(i);
    return static_cast<int>(seen_.size());
  }
  void note_late(int i) {
    yield();
    yield();
    seen_.push_back(i);
  }
  std::vector<int> seen() const { return seen_; }

 private:
  std::vector<int> seen_;
};
ORRERY_PROCESS(Journal, note, note_and_count, note_late, seen);

ORRERY_AT_EACH_PLACE(order);

TEST_P(order, of_posts_starts_and_calls_of_one_sender_is_kept) {
  in_world([] {
    const auto j = spawn<Journal>(where());
    std::vector<int> expected(1000);
    std::iota(expected.begin(), expected.end(), 0);
    std::vector<future<int>> started;
    for (int i = 0; i < 1000; ++i) {
      switch (i * 7 % 5) {
        case 0:
          started.push_back(start(j)->note_and_count(i));
          break;
        case 1:
          EXPECT_EQ(j->note_and_count(i), i + 1);
          break;
        case 2:
          post(j)->note_late(i);
          break;
        default:
          post(j)->note(i);
      }
    }
    EXPECT_EQ(j->seen(), expected);
    for (auto& f : started) (void)f.get();
  });
}

class Sender {
 public:
  Sender(remote<Journal> to, int first, int count) : to_(to), next_(first), left_(count) {}
  int run() {
    for (; left_ > 0; --left_) {
      if (left_ % 3 == 0) {
        to_->note(next_++);
      } else {
        post(to_)->note(next_++);
      }
    }
    return next_;
  }

 private:
  remote<Journal> to_;
  int next_;
  int left_;
};
ORRERY_PROCESS(Sender, run);

TEST_P(order, of_each_of_several_senders_is_kept) {
  in_world([] {
    constexpr int senders = 8;
    constexpr int each = 500;
    const auto j = spawn<Journal>(where());
    std::vector<future<int>> running;
    for (int i = 0; i < senders; ++i) running.push_back(start(spawn<Sender>(pe(i % 2), j, i * each, each))->run());
    for (auto& f : running) (void)f.get();
    std::vector<int> last(senders, -1);
    const auto seen = j->seen();
    ASSERT_EQ(seen.size(), senders * each);
    for (const int n : seen) {
      EXPECT_LT(last[n / each], n);
      last[n / each] = n;
    }
  });
}

// --- one method at a time ------------------------------------------------------------------------

class Guarded {
 public:
  int enter(remote<Device> slow) {
    EXPECT_FALSE(inside_);
    inside_ = true;
    auto f = start(slow)->late();
    (void)f.get();
    yield();
    inside_ = false;
    return ++count_;
  }

 private:
  bool inside_ = false;
  int count_ = 0;
};
ORRERY_PROCESS(Guarded, enter);

class Open {
 public:
  static constexpr bool orrery_reentrant = true;
  void meet(int others) {
    ++inside_;
    while (inside_ < others) yield();
  }
  int fib(int n) {  // calls itself
    const auto me = this_process<Open>();
    return n < 2 ? n : me->fib(n - 1) + start(me)->fib(n - 2).get();
  }
  ORRERY_PROCESS_MEMBERS(Open, meet, fib)

 private:
  int inside_ = 0;
};

ORRERY_AT_EACH_PLACE(mailbox);

TEST_P(mailbox, lets_one_method_run_at_a_time_even_while_it_is_parked) {
  in_world([] {
    const auto g = spawn<Guarded>(where());
    const auto slow = spawn<Device>(pe(1));
    std::vector<future<int>> all;
    for (int i = 0; i < 20; ++i) all.push_back(start(g)->enter(slow));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(all[i].get(), i + 1);
  });
}

TEST_P(mailbox, of_a_reentrant_class_gives_messages_while_methods_are_parked) {
  in_world([] {
    const auto o = spawn<Open>(where());
    std::vector<future<void>> all;
    for (int i = 0; i < 20; ++i) all.push_back(start(o)->meet(20));
    for (auto& f : all) f.get();
  });
}

TEST_P(mailbox, of_a_reentrant_class_takes_calls_of_its_own_methods) {
  in_world([] { EXPECT_EQ(spawn<Open>(where())->fib(10), 55); });
}

template <std::size_t N>
struct bytes_of {
  std::array<std::uint8_t, N> at;
  bool operator==(const bytes_of&) const = default;
};

/// Results of all sizes about the limit up to which they travel in the record of the reply.
struct Results {
  inline static std::atomic<bool> open = false;
  inline static std::atomic<int> executed = 0;
  void hold() const {
    while (!open) yield();
  }
  bool flag(bool x) const { return !x; }
  double number(double x) const { return -x; }
  template <std::size_t N>
  static bytes_of<N> filled(std::uint8_t with) {
    bytes_of<N> b{};
    for (std::size_t i = 0; i < N; ++i) b.at[i] = static_cast<std::uint8_t>(with + i);
    ++executed;
    return b;
  }
  bytes_of<3> three(std::uint8_t x) const { return filled<3>(x); }
  bytes_of<12> twelve(std::uint8_t x) const { return filled<12>(x); }
  bytes_of<16> sixteen(std::uint8_t x) const { return filled<16>(x); }
  bytes_of<17> seventeen(std::uint8_t x) const { return filled<17>(x); }
  remote<Results> pointer(remote<Results> x) const { return x; }
  std::unique_ptr<int> owner(int x) const { return std::make_unique<int>(x); }
  ORRERY_PROCESS_MEMBERS(Results, hold, flag, number, three, twelve, sixteen, seventeen, pointer, owner)
};

TEST(results, of_all_sizes_arrive_whole_from_another_pe) {
  scheduler::node_settings small_rings;
  small_rings.pes = 2;
  small_rings.pe.ring_bytes = 4 << 10;
  in_world(small_rings, [] {
    const auto p = spawn<Results>(pe(1));
    EXPECT_EQ(p->flag(false), true);
    EXPECT_EQ(p->number(2.5), -2.5);
    EXPECT_EQ(p->pointer(p), p);
    EXPECT_EQ(*p->owner(4), 4);
    constexpr int calls = 300;
    Results::executed = 0;
    post(p)->hold();
    std::vector<future<bytes_of<3>>> threes;
    std::vector<future<bytes_of<12>>> twelves;
    std::vector<future<bytes_of<16>>> sixteens;
    std::vector<future<bytes_of<17>>> seventeens;
    for (int i = 0; i < calls; ++i) {
      const auto x = static_cast<std::uint8_t>(i);
      threes.push_back(start(p)->three(x));
      twelves.push_back(start(p)->twelve(x));
      sixteens.push_back(start(p)->sixteen(x));
      seventeens.push_back(start(p)->seventeen(x));
    }
    Results::open = true;
    // this PE does not read the replies: the ring is full, and they take another way
    while (Results::executed < 4 * calls) {
    }
    for (int i = 0; i < calls; ++i) {
      const auto x = static_cast<std::uint8_t>(i);
      ASSERT_EQ(threes[i].get(), Results::filled<3>(x));
      ASSERT_EQ(twelves[i].get(), Results::filled<12>(x));
      ASSERT_EQ(sixteens[i].get(), Results::filled<16>(x));
      ASSERT_EQ(seventeens[i].get(), Results::filled<17>(x));
    }
  });
}

}  // namespace call_tests
}  // namespace orrery
