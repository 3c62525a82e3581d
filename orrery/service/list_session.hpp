// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/detail/key_interval.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/list_router.hpp>
#include <orrery/service/detail/one_sided_reader.hpp>
#include <orrery/service/list_reply.hpp>
#include <orrery/wire/error.hpp>

#include <deque>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

namespace testing {
struct session_parts;
}
template <class Key, class Value>
class list_scan;
template <class Key, class Value>
class list_stream;

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
/// Made by ordered_list::open; used by one process only, and ends before this one. Requests without
/// a reply are executed nevertheless: the end of a session parks until they are answered. All
/// functions throw usage_error and stopped; the parking forms also what the reply's error is.
template <class Key, class Value>
class list_session : private service::list_router<Key, Value> {
  using base = service::list_router<Key, Value>;

 public:
  /// A reply to a request that was started.
  using reply = list_reply<Key, Value>;
  /// A key and its value.
  using item = std::pair<Key, Value>;

  list_session(remote<service::service_root> root, const session_options& o)
      : base(service::open_service(root, "ordered list", service::types_in_words<Key, Value>()), o) {}
  /// The session of a list with one process that takes all requests in their order, and sees to the
  /// level itself.
  list_session(remote<service::range_process> all, session_options o) : base(all, for_one_process(o)) {}

  list_session(const list_session&) = delete;
  list_session& operator=(const list_session&) = delete;
  /// Parks until all requests are answered.
  ~list_session() override {
    this->end();
    one_sided_.end();
  }

  using base::batches;
  using base::flush;
  using base::flush_idle;
  using base::outstanding;
  using base::repeated;
  using base::set_window;
  using base::window;

  // --- operations that return their result. They park; W - 1 others may be outstanding -----------

  /// The value of the key, if it is there. If nothing is outstanding, the keys are numbers, and
  /// their range is in another OS process of this machine, it is read in the memory of the range
  /// most of the time, without a message (session_options::one_sided).
  [[nodiscard]] std::optional<Value> find(const Key& k) { return find_now(k).value; }
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
  /// The item with the least key; none if the list is empty.
  [[nodiscard]] std::optional<item> first() { return item_of(run(operation::first)); }
  /// The item with the greatest key; none if the list is empty.
  [[nodiscard]] std::optional<item> last() { return item_of(run(operation::last)); }
  /// The item with the least key that is greater than k, if there is one.
  [[nodiscard]] std::optional<item> after(const Key& k) { return item_of(run(operation::after, &k)); }
  /// The number of items at one moment. It stops all ranges for this moment.
  [[nodiscard]] std::uint64_t size() { return run(operation::size).size; }

  /// Finds that were read in the memory of their range.
  [[nodiscard]] std::uint64_t one_sided_finds() const noexcept { return one_sided_finds_; }

  // --- operations that return the number of the request ---
  /// As find; returns the number of the request. Parks while the window is full, as do the others.
  std::uint64_t start_find(const Key& k) { return request(operation::find, &k); }
  /// As insert; returns the number of the request.
  std::uint64_t start_insert(const Key& k, const Value& v) { return request(operation::insert, &k, &v); }
  /// As erase; returns the number of the request.
  std::uint64_t start_erase(const Key& k) { return request(operation::erase, &k); }
  /// As update; returns the number of the request.
  std::uint64_t start_update(const Key& k, const Value& v) { return request(operation::update, &k, &v); }
  /// As insert_or_update; returns the number of the request.
  std::uint64_t start_insert_or_update(const Key& k, const Value& v) {
    return request(operation::insert_or_update, &k, &v);
  }
  /// As compare_and_update; returns the number of the request.
  std::uint64_t start_compare_and_update(const Key& k, const Value& expected, const Value& v) {
    static_assert(requires { expected == v; }, "orrery: compare_and_update needs values that can be compared with ==");
    return request(service::list_operation::compare_and_update, &k, &v, &expected);
  }
  /// As first; returns the number of the request.
  std::uint64_t start_first() { return request(operation::first); }
  /// As last; returns the number of the request.
  std::uint64_t start_last() { return request(operation::last); }
  /// As after; returns the number of the request.
  std::uint64_t start_after(const Key& k) { return request(operation::after, &k); }
  /// As size; returns the number of the request.
  std::uint64_t start_size() { return request(operation::size); }

  /// The next reply to a request of these. Parks until there is one; none if no request is left.
  [[nodiscard]] std::optional<reply> receive() {
    while (!ready() && this->await_answers()) {
    }
    return take_ready();
  }
  /// The same, but does not wait for a reply; none if none has come. It sends what was gathered for
  /// ranges that have answered since, and parks only while one of these is full.
  [[nodiscard]] std::optional<reply> try_receive() {
    if (!ready()) this->take_answers();
    return take_ready();
  }

  // --- ranges ------------------------------------------------------------------------------------

  /// The items with keys from `from` to before `to` (none: no bound), in parts of at most `part`
  /// items. Each part is what was there at one moment. All requests that this session has made
  /// before are in it. See list_scan. Parks.
  [[nodiscard]] list_scan<Key, Value> scan(std::optional<Key> from = {}, std::optional<Key> to = {},
                                           std::uint32_t part = 1024);
  /// All items of the interval as they are at one moment. It stops the ranges that it passes until
  /// it has passed the last one. Parks.
  [[nodiscard]] std::vector<item> snapshot(const std::optional<Key>& from = {}, const std::optional<Key>& to = {}) {
    this->settle();
    const service::bytes interval = service::key_interval<Key>{from, false, to}.packed();
    std::vector<item> items;
    this->ask_owner(
        from, [&](const auto& range) { return range->snapshot(interval); },
        [&](service::list_answer, service::unpacker& u) {
          while (!u.empty()) {
            Key k = u.take<Key>();
            items.emplace_back(std::move(k), u.take<Value>());
          }
        });
    return items;
  }
  /// The same, in parts of at most `part` items: what is written while it is read is not in it. See
  /// list_stream. Parks.
  [[nodiscard]] list_stream<Key, Value> stream(const std::optional<Key>& from = {}, const std::optional<Key>& to = {},
                                               std::uint32_t part = 1024);

 private:
  friend struct testing::session_parts;
  friend class list_scan<Key, Value>;
  using operation = service::list_operation;
  using base::options;
  using typename base::number;
  using typename base::route_number;
  static constexpr std::uint64_t none = ~std::uint64_t{0};

  static session_options for_one_process(session_options o) {
    o.places = o.places || o.order == consistency::total;
    o.order = consistency::per_key;
    return o;
  }
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
    this->wait_for_room();
    const route_number r = k != nullptr           ? this->route_at(*k)
                           : o == operation::last ? this->last_route()
                                                  : this->first_route();
    service::packer& to = this->begin(r, next_);
    try {
      service::pack(to, o);
      if (k != nullptr) service::pack(to, *k);
      if (v != nullptr) service::pack(to, *v);
      if (expected != nullptr) service::pack(to, *expected);
      if (options().replies == reply_order::as_requested) held_.emplace_back();
    } catch (...) {
      this->withdraw();
      throw;
    }
    const std::uint64_t n = next_++;
    this->issued();
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
      while (wanted_ != none) this->await_more_answers();
    } catch (...) {
      wanted_ = none;
      throw;
    }
    reply r = std::move(answer_);
    answer_ = {};
    r.check();
    return r;
  }
  reply find_now(const Key& k) {
    if constexpr (service::can_be_exposed<Key, Value>) {
      if (this->outstanding() == 0 && options().one_sided && options().order != consistency::total) {
        const route_number at = this->route_at(k);
        const auto* const route = one_sided_.next(at, this->owner_of(at));
        service::one_sided_reply<Value> found;
        if (route != nullptr && service::find_one_sided(*route, k, options().places, found) &&
            one_sided_.is_there(*route)) {
          reply r;
          r.request = next_++;
          if (options().replies == reply_order::as_requested) ++held_from_;
          ++one_sided_finds_;
          r.done = found.value.has_value();
          r.value = found.value;
          r.version = found.version;
          r.moment = found.moment;
          return r;
        }
      }
    }
    return run(operation::find, &k);
  }
  static std::optional<item> item_of(reply r) {
    if (!r.key) return {};
    return item{std::move(*r.key), std::move(*r.value)};
  }

  void answered(route_number from, std::span<const number> numbers, std::span<const std::byte> answer) override {
    service::served_at first{};  // of the first request: behind all answers
    const bool placed = options().places || options().order == consistency::total;
    if (placed) first = service::unpacker(answer.last(sizeof(first))).template take<service::served_at>();
    this->each_answer(numbers, answer, [&](std::size_t i, service::list_answer what, service::unpacker& u) {
      reply& r = reply_to(numbers[i]);
      const service::unpacker at = u;
      try {
        read_answer(what, u, r, from);
      } catch (...) {  // the program's key or value cannot be read
        u = at;
        service::skip_answer<Key, Value>(what, u);
        r.error = std::current_exception();
      }
      if (placed) {
        r.moment = first.count + i;
        r.version = version_of(first, i, numbers.size(), answer);
      }
      replied(numbers[i]);
    });
  }
  /// For answer i of `count` that ended with `first`.
  [[nodiscard]] virtual std::uint64_t version_of(const service::served_at& first, std::size_t, std::size_t,
                                                 std::span<const std::byte>) const {
    return first.version;
  }
  void read_answer(service::list_answer what, service::unpacker& u, reply& r, route_number from) {
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
      case service::list_answer::failed:
        r.error = service::with_loss(decode_exception(u.take<wire_exception>(), {"orrery::ordered_list", "a request",
                                                                                 this->owner_of(from).address().pe}),
                                     options().order == consistency::total ? base::keys_are_lost : this->loss());
        break;
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
  /// Where the reply to the request is to be written; then replied() is to be called.
  reply& reply_to(number n) {
    reply& r = n == wanted_                                     ? answer_
               : options().replies == reply_order::as_requested ? held_[n - held_from_].value
                                                                : add_ready();
    r.request = n;
    return r;
  }
  void replied(number n) {
    const bool wanted = n == wanted_;
    if (wanted) wanted_ = none;
    if (options().replies != reply_order::as_requested) return;
    (wanted ? held_[n - held_from_].skip : held_[n - held_from_].there) = true;
    for (; !held_.empty() && (held_.front().there || held_.front().skip); ++held_from_) {
      if (held_.front().there) add_ready(std::move(held_.front().value));
      held_.pop_front();
    }
  }
  [[nodiscard]] bool ready() const noexcept { return first_ready_ != ready_.size(); }
  template <class... Reply>
  reply& add_ready(Reply&&... r) {
    if (ready_.size() == ready_.capacity() && first_ready_ > ready_.size() / 2) [[unlikely]]
      drop_taken();
    return ready_.emplace_back(std::forward<Reply>(r)...);
  }
  // A client that leaves some reply in the session at all times never empties the vector.
  void drop_taken() {
    std::vector<reply> left;
    left.reserve(ready_.capacity());
    for (std::size_t i = first_ready_; i < ready_.size(); ++i) left.push_back(std::move_if_noexcept(ready_[i]));
    ready_.swap(left);
    first_ready_ = 0;
  }
  std::optional<reply> take_ready() {
    if (!ready()) return {};
    std::optional<reply> r(std::move(ready_[first_ready_]));
    if (++first_ready_ == ready_.size()) {
      ready_.clear();
      first_ready_ = 0;
    }
    return r;
  }

  struct held {
    bool there = false;
    bool skip = false;  // its reply was wanted by run()
    reply value;
  };
  std::uint64_t next_ = 0;
  std::uint64_t wanted_ = none;
  reply answer_;
  std::deque<held> held_;
  std::uint64_t held_from_ = 0;
  std::vector<reply> ready_;
  std::size_t first_ready_ = 0;  // those before it were taken
  service::one_sided_routes one_sided_;
  std::uint64_t one_sided_finds_ = 0;
};

}  // namespace orrery

#include <orrery/service/list_scan.hpp>  // what scan() and stream() return
