// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

template <class Key, class Value>
class list_scan;

/// The reply to a request of a session.
template <class Key, class Value>
struct list_reply {
  std::uint64_t request = 0;  ///< the number that the session gave it
  bool done = false;  ///< found, inserted, erased, updated; of insert_or_update: inserted
  std::optional<Key> key;  ///< of first, last and after, if there is such an item
  std::optional<Value> value;  ///< of find, first, last and after
  std::uint64_t size = 0;  ///< of size
  std::exception_ptr error;  ///< why the request failed: node_lost

  /// Throws the error, if there is one.
  void check() const {
    if (error != nullptr) [[unlikely]]
      std::rethrow_exception(error);
  }
};

/// A client's way to use an ordered list.
///
/// Problem: a client that waits for each reply does one operation in the time of two messages and a
/// wait; many at a time are sent, executed and answered together.
///
/// Each operation has two forms. `find(k)` and the like send the request and park until its reply
/// is there. `start_find(k)` and the like only make the request and return its number, 0, 1, 2 ...;
/// they park while the window is full. Replies to these are taken with receive() and
/// try_receive(). Both forms may be mixed; the order that `session_options` promises holds for all.
///
///     auto s = list.open({.window = 256});
///     for (int k : keys) {
///       s.start_find(k);
///       while (auto r = s.try_receive()) use(*r);
///     }
///     while (auto r = s.receive()) use(*r);
///
/// Made by ordered_list::open; used by one process only, and ends before this one. Requests without a
/// reply are executed nevertheless. All functions throw usage_error and stopped; the parking forms also what the reply's error is.
template <class Key, class Value>
class list_session : private service::session_core {
 public:
  using reply = list_reply<Key, Value>;
  using item = std::pair<Key, Value>;

  list_session(remote<service::service_root> root, const session_options& o) : session_core(o) {
    service::opening all = root->open("ordered list", service::shape_of<Key, Value>());
    std::vector<std::pair<std::optional<Key>, remote<service::range_process>>> entries;
    for (const service::directory_entry& e : all.directory) {
      std::optional<Key> least;
      if (!e.least.empty()) least = service::unpacker(e.least).template take<Key>();
      entries.emplace_back(std::move(least), e.owner);
    }
    std::ranges::sort(entries,
                      [](const auto& a, const auto& b) { return b.first && (!a.first || *a.first < *b.first); });
    for (auto& [least, owner] : entries) {
      least_.push_back(least ? std::move(*least) : Key{});
      at_.push_back(add_route(owner));
    }
    if (least_.empty()) throw process_gone("an ordered list that has ended");
  }

  /// Of a list with one process that takes all requests.
  list_session(remote<service::range_process> all, const session_options& o) : session_core(o) {
    least_.emplace_back();
    at_.push_back(add_route(all));
  }

  using session_core::batches;
  using session_core::flush;
  using session_core::outstanding;
  using session_core::repeated;

  // --- operations that return their result. They park; W - 1 others may be outstanding meanwhile -----------------------

  /// The value of the key, if it is there.
  [[nodiscard]] std::optional<Value> find(const Key& k) { return run(operation::find, &k).value; }
  /// False, and nothing changes, if the key is there.
  bool insert(const Key& k, const Value& v) { return run(operation::insert, &k, &v).done; }
  /// False if the key is not there.
  bool erase(const Key& k) { return run(operation::erase, &k).done; }
  /// Gives the key another value; false if it is not there.
  bool update(const Key& k, const Value& v) { return run(operation::update, &k, &v).done; }
  /// True if it was inserted, false if the key was there and has another value now.
  bool insert_or_update(const Key& k, const Value& v) { return run(operation::insert_or_update, &k, &v).done; }
  /// Gives the key the value `v` if it has the value `expected`; false if not.
  bool compare_and_update(const Key& k, const Value& expected, const Value& v) {
    check_comparable();
    return run(operation::compare_and_update, &k, &v, &expected).done;
  }
  /// The item with the least key, the greatest, or the least that is greater than k.
  [[nodiscard]] std::optional<item> first() { return item_of(run(operation::first)); }
  [[nodiscard]] std::optional<item> last() { return item_of(run(operation::last)); }
  [[nodiscard]] std::optional<item> after(const Key& k) { return item_of(run(operation::after, &k)); }
  /// The number of items at one moment. It stops all ranges for this moment.
  [[nodiscard]] std::uint64_t size() { return run(operation::size).size; }

  // --- operations that return the number of the request ------------------------------------------------------------

  std::uint64_t start_find(const Key& k) { return request(operation::find, &k); }
  std::uint64_t start_insert(const Key& k, const Value& v) { return request(operation::insert, &k, &v); }
  std::uint64_t start_erase(const Key& k) { return request(operation::erase, &k); }
  std::uint64_t start_update(const Key& k, const Value& v) { return request(operation::update, &k, &v); }
  std::uint64_t start_insert_or_update(const Key& k, const Value& v) {
    return request(operation::insert_or_update, &k, &v);
  }
  std::uint64_t start_compare_and_update(const Key& k, const Value& expected, const Value& v) {
    static_assert(requires { expected == v; }, "orrery: compare_and_update needs values that can be compared with ==");
    return request(service::list_operation::compare_and_update, &k, &v, &expected);
  }
  std::uint64_t start_first() { return request(operation::first); }
  std::uint64_t start_last() { return request(operation::last); }
  std::uint64_t start_after(const Key& k) { return request(operation::after, &k); }
  std::uint64_t start_size() { return request(operation::size); }

  /// The next reply to a request of these. Parks until there is one; none if no request is left.
  [[nodiscard]] std::optional<reply> receive() {
    while (!ready() && await_answers()) {
    }
    return take_ready();
  }
  /// The same, but does not park; none if no reply has come.
  [[nodiscard]] std::optional<reply> try_receive() {
    if (!ready()) take_answers();
    return take_ready();
  }

  // --- ranges ---------------------------------------------------------------------------------------------------------

  /// The items with keys from `from` to before `to` (none: no bound), in parts of at most `part` items.
  /// Each part is what was there at one moment. All requests that this session has made before are in
  /// it. See list_scan. Parks.
  [[nodiscard]] list_scan<Key, Value> scan(std::optional<Key> from = {}, std::optional<Key> to = {},
                                           std::uint32_t part = 1024);
  /// All items of the interval as they are at one moment. It stops the ranges that it passes until it has
  /// passed the last one. Parks.
  [[nodiscard]] std::vector<item> snapshot(const std::optional<Key>& from = {}, const std::optional<Key>& to = {}) {
    settle();
    const service::bytes all = owner_of(from ? route_at(*from) : at_[0])->snapshot(interval(from, false, to));
    std::vector<item> items;
    for (service::unpacker u(all); !u.empty();) {
      Key k = u.take<Key>();
      items.emplace_back(std::move(k), u.take<Value>());
    }
    return items;
  }

 private:
  friend class list_scan<Key, Value>;
  using operation = service::list_operation;
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  static void check_comparable() {
    static_assert(
        requires(const Value& v) { v == v; }, "orrery: compare_and_update needs values that can be compared with ==");
  }
  std::uint64_t request(operation o, const Key* k = nullptr, const Value* v = nullptr,
                        const Value* expected = nullptr) {
    if (ready_.size() - first_ready_ >= options().unfetched) [[unlikely]]
      fail_unfetched();
    return make(o, k, v, expected);
  }
  std::uint64_t make(operation o, const Key* k, const Value* v, const Value* expected) {
    wait_for_room();
    const route_number r = k != nullptr ? route_at(*k) : o == operation::last ? at_.back() : at_[0];
    service::packer& to = begin(r, next_);
    try {
      service::pack(to, o);
      if (k != nullptr) service::pack(to, *k);
      if (v != nullptr) service::pack(to, *v);
      if (expected != nullptr) service::pack(to, *expected);
      if (options().replies == reply_order::as_requested) held_.emplace_back();
    } catch (...) {
      withdraw();
      throw;
    }
    const std::uint64_t n = next_++;
    issued();
    return n;
  }
  [[noreturn]] static void fail_unfetched() {
    throw usage_error(errc::bad_argument,
                      "a session holds as many replies as session_options::unfetched allows: take them with receive()");
  }

  // Its reply does not go to receive().
  reply run(operation o, const Key* k = nullptr, const Value* v = nullptr, const Value* expected = nullptr) {
    wanted_ = next_;
    try {
      (void)make(o, k, v, expected);
      while (wanted_ != none && await_answers()) {
      }
    } catch (...) {
      wanted_ = none;
      throw;
    }
    reply r = std::move(answer_);
    answer_ = {};
    r.check();
    return r;
  }
  static std::optional<item> item_of(reply r) {
    if (!r.key) return {};
    return item{std::move(*r.key), std::move(*r.value)};
  }

  [[nodiscard]] route_number route_at(const Key& k) const noexcept {
    return at_[service::count_not_greater(least_.data() + 1, least_.size() - 1, k)];
  }
  route_number route_of(service::unpacker& u) const override {
    const auto o = u.take<operation>();
    route_number r = o == operation::last ? at_.back() : at_[0];
    if (has_key(o)) r = route_at(u.take<Key>());
    if (has_value(o)) u.skip<Value>();
    if (o == operation::compare_and_update) u.skip<Value>();
    return r;
  }

  void answered(route_number from, std::span<const number> numbers, std::span<const std::byte> answer) override {
    service::unpacker u(answer);
    std::vector<std::pair<number, std::span<const std::byte>>> back;
    bool moved = false;
    for (const number n : numbers) {
      const auto what = u.take<service::list_answer>();
      if (what == service::list_answer::moved || what == service::list_answer::behind) {
        moved = moved || what == service::list_answer::moved;
        back.emplace_back(n, u.take_bytes(u.take<std::uint32_t>()));
        continue;
      }
      reply& r = reply_to(n);
      read_answer(from, what, u, r);
      done();
      replied(n);
    }
    if (moved) learn(u);
    for (const auto& [n, request] : back) repeat(n, request);
  }
  void read_answer(route_number from, service::list_answer what, service::unpacker& u, reply& r) {
    r.done = what != service::list_answer::no && what != service::list_answer::failed;
    switch (what) {
      case service::list_answer::value:
        r.value = u.take<Value>();
        break;
      case service::list_answer::item:
        r.key = u.take<Key>();
        r.value = u.take<Value>();
        break;
      case service::list_answer::number:
        r.size = u.take<std::uint64_t>();
        break;
      case service::list_answer::before:
        r.error = look_before(from, r);
        break;
      case service::list_answer::failed: {
        const auto code = static_cast<errc>(u.take<std::uint16_t>());
        r.error = make_error(code, verbatim, u.take<std::string>());
        break;
      }
      default:
        break;
    }
  }
  void failed(std::span<const number> numbers, const std::exception_ptr& why) override {
    for (const number n : numbers) {
      reply_to(n).error = why;
      replied(n);
    }
  }
  // The last item is in none of the ranges from that of `from` on: asks those before, one after the other.
  std::exception_ptr look_before(route_number from, reply& r) {
    try {
      auto i = static_cast<std::size_t>(std::ranges::find(at_, from) - at_.begin());
      service::bytes found;
      while (i != 0 && found.empty()) found = owner_of(at_[--i])->last_item();
      r.done = !found.empty();
      if (r.done) {
        service::unpacker u(found);
        r.key = u.take<Key>();
        r.value = u.take<Value>();
      }
      return nullptr;
    } catch (const stopped&) {
      throw;
    } catch (...) {
      return std::current_exception();
    }
  }

  /// Ranges that were split off.
  void learn(service::unpacker& u) {
    for (auto n = u.take<std::uint32_t>(); n != 0; --n) {
      Key least = u.take<Key>();
      const remote<service::range_process> owner(u.take<address>());
      const std::size_t place = service::count_not_greater(least_.data() + 1, least_.size() - 1, least);
      if (place != 0 && !(least_[place] < least)) continue;  // known
      const route_number old = at_[place];
      const route_number fresh = add_route(owner);
      const auto behind = static_cast<std::ptrdiff_t>(place) + 1;
      least_.insert(least_.begin() + behind, std::move(least));
      at_.insert(at_.begin() + behind, fresh);
      divide(old, fresh);
    }
  }

  /// Where the reply to the request is to be written; then replied() is to be called.
  reply& reply_to(number n) {
    reply& r = n == wanted_                                     ? answer_
               : options().replies == reply_order::as_requested ? held_[n - held_from_].value
                                                                : ready_.emplace_back();
    r.request = n;
    return r;
  }
  void replied(number n) {
    const bool wanted = n == wanted_;
    if (wanted) wanted_ = none;
    if (options().replies != reply_order::as_requested) return;
    (wanted ? held_[n - held_from_].skip : held_[n - held_from_].there) = true;
    for (; !held_.empty() && (held_.front().there || held_.front().skip); ++held_from_) {
      if (held_.front().there) ready_.push_back(std::move(held_.front().value));
      held_.pop_front();
    }
  }
  [[nodiscard]] bool ready() const noexcept { return first_ready_ != ready_.size(); }
  std::optional<reply> take_ready() {
    if (!ready()) return {};
    std::optional<reply> r(std::move(ready_[first_ready_]));
    if (++first_ready_ == ready_.size()) {
      ready_.clear();
      first_ready_ = 0;
    }
    return r;
  }

  /// Parks until nothing is outstanding.
  void settle() {
    while (outstanding() != 0) (void)await_answers();
  }
  static service::bytes interval(const std::optional<Key>& from, bool above, const std::optional<Key>& to) {
    service::bytes i;
    service::pack(i, static_cast<std::uint8_t>(from ? 1 : 0));
    if (from) service::pack(i, *from);
    service::pack(i, static_cast<std::uint8_t>(above ? 1 : 0));
    service::pack(i, static_cast<std::uint8_t>(to ? 1 : 0));
    if (to) service::pack(i, *to);
    return i;
  }

  struct held {
    bool there = false;
    bool skip = false;  // its reply was wanted by run()
    reply value;
  };
  std::vector<Key> least_;  // the directory: which keys belong to which route; the first has no least key
  std::vector<route_number> at_;
  std::uint64_t next_ = 0;
  std::uint64_t wanted_ = none;
  reply answer_;
  std::deque<held> held_;
  std::uint64_t held_from_ = 0;
  std::vector<reply> ready_;
  std::size_t first_ready_ = 0;
};

/// A walk over an interval of keys, in parts.
///
/// next() gives the next part and asks for the one behind it, so one part at most is on its way: who does not
/// take them holds nothing up. Each part is what one range had at one moment; an item that is there from the beginning to the
/// end of the walk is in it once.
///
/// Made by list_session::scan; its session outlives it, and may be used meanwhile.
template <class Key, class Value>
class list_scan {
 public:
  using item = std::pair<Key, Value>;

  list_scan(list_session<Key, Value>& s, std::optional<Key> from, std::optional<Key> to, std::uint32_t part)
      : session_(s), from_(std::move(from)), to_(std::move(to)), part_(part == 0 ? 1 : part) {
    ask();
  }
  list_scan(const list_scan&) = delete;
  list_scan& operator=(const list_scan&) = delete;

  /// The next items; none when the walk has ended. Parks. Throws node_lost, stopped.
  [[nodiscard]] std::vector<item> next() {
    std::vector<item> items;
    while (items.empty() && asked_.valid()) take(items);
    return items;
  }

 private:
  void ask() {
    const auto r = from_ ? session_.route_at(*from_) : session_.at_[0];
    const service::bytes interval = list_session<Key, Value>::interval(from_, above_, to_);
    asked_ = start(session_.owner_of(r))->scan(part_, std::span<const std::byte>(interval));
  }
  void take(std::vector<item>& items) {
    const service::bytes answer = asked_.get();
    service::unpacker u(answer);
    const auto what = u.take<service::list_answer>();
    if (what == service::list_answer::moved) {
      session_.learn(u);
      ask();
      return;
    }
    std::optional<Key> next;
    if (what == service::list_answer::before) next = u.take<Key>();
    const auto n = u.take<std::uint32_t>();
    items.reserve(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      Key k = u.take<Key>();
      items.emplace_back(std::move(k), u.take<Value>());
    }
    if (what == service::list_answer::no) return;
    above_ = !next;
    from_ = next ? std::move(next) : std::optional<Key>(items.back().first);
    ask();
  }

  list_session<Key, Value>& session_;
  std::optional<Key> from_;
  bool above_ = false;
  std::optional<Key> to_;
  std::uint32_t part_;
  future<service::bytes> asked_;
};

template <class Key, class Value>
list_scan<Key, Value> list_session<Key, Value>::scan(std::optional<Key> from, std::optional<Key> to,
                                                     std::uint32_t part) {
  settle();
  return list_scan<Key, Value>(*this, std::move(from), std::move(to), part);
}

}  // namespace orrery
