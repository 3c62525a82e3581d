// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array_maker.hpp>
#include <orrery/array/index_types.hpp>
#include <orrery/array/send.hpp>
#include <orrery/array/target.hpp>
#include <orrery/process/references.hpp>
#include <orrery/process/runtime.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Dynamic object arrays (Lawlor and Kale 2001).
//
//     struct Block : orrery::element<Block, orrery::index<2>> { void step(); ... };
//     ORRERY_PROCESS(Block, step, recv_border);
//
//     using square = orrery::range<orrery::index<2>>;
//     auto grid = orrery::create_array<Block>(square{{64, 64}}, {}, arguments...);
//     post(grid[3, 4])->recv_border(side, border);       // one element, wherever it is
//     post(grid)->step();                                // all
//     grid.insert({70, 70}, arguments...);
//     destroy(grid[70, 70]);

namespace orrery {

/// How an array is made. Settings that are left out have good defaults.
template <array_index Index>
struct array_options {
  std::string name = "array";  ///< for errors
  placement_map<Index> home{};  ///< the home of each index; its elements are created there
  /// PEs that always know where an element is: its home, and others at equal distances.
  std::uint32_t homes = 1;
  std::uint32_t branching = 4;  ///< of the spanning tree of broadcasts and reductions
  /// Elements are packed even when they stay in their OS process: for tests.
  bool always_serialize = false;
  /// Places of elements that a PE remembers; rarely used ones are forgotten beyond.
  std::uint32_t cached = 1 << 16;
  /// Deleted indices that a home remembers, the latest: messages to others wait as if they were
  /// early.
  std::uint32_t deleted = 1 << 16;
  /// Limit of the messages that wait on a PE for elements to be created; more fail with
  /// mailbox_full.
  std::uint64_t early_bytes = 64 << 20;
};

namespace detail {
/// An array of Derived is one of Base, too.
template <class Derived, class Base, class Index>
consteval void require_base() {
  static_assert(
      cell<Derived, Index>::offset() == cell<Base, Index>::offset(),
      "orrery: an array of a class is used as one of its base class: both must have the same alignment, or none above "
      "that of a pointer");
}
template <class Derived, class Base>
concept derives_from = !std::same_as<Derived, Base> && std::convertible_to<Derived*, Base*>;

template <class T>
struct index_type_of {
  using type = std::int32_t;
};
template <class T>
  requires requires { typename T::index_type; }
struct index_type_of<T> {
  using type = typename T::index_type;
};
/// A class with an index_type of its own has no other one.
template <class T, class Index>
consteval void require_index_of() {
  static_assert(
      std::same_as<Index, typename index_type_of<T>::type> || !requires { typename T::index_type; },
      "orrery: this class is an element with an index of another type: give the array, and its range, the "
      "index_type of the class");
}
}  // namespace detail

/// One element, by its index: a value that can be stored and sent. It stays good wherever the
/// element goes, and names the next one when the index is used again. Made by `grid[i]`.
///
/// `e->m(args...)` is a sequential call, `start(e)->m(...)`, `post(e)->m(...)` and
/// `try_post(e)->m(...)` as for any remote pointer. A call to an element that does not exist yet
/// waits for it, or creates it, as `when_early` of the class says; to one that was destroyed it
/// throws process_gone with the names of array and index.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
class element_ptr {
 public:
  using element_type = T;
  using modes = detail::element_modes<T, Index>;

  element_ptr() = default;
  explicit element_ptr(detail::element_name<T, Index> n) : name_(std::move(n)) {}
  /// A derived class is as good as its base.
  template <detail::derives_from<T> U>
  element_ptr(const element_ptr<U, Index>& e)  // NOLINT(google-explicit-constructor)
      : name_{e.name().array, e.index()} {
    detail::require_base<U, T, Index>();
  }
  [[nodiscard]] const Index& index() const noexcept { return name_.index; }
  [[nodiscard]] const detail::element_name<T, Index>& name() const noexcept { return name_; }
  [[nodiscard]] const auto* operator->() const noexcept { return detail::view_target<typename modes::call, T>(name_); }
  /// False for one that was default-constructed: it names an element of no array.
  [[nodiscard]] explicit operator bool() const noexcept { return name_.array != 0; }
  friend bool operator==(const element_ptr& a, const element_ptr& b) {
    return a.name_.array == b.name_.array && a.name_.index == b.name_.index;
  }
  /// By array and index, if indices have an order.
  friend auto operator<=>(const element_ptr& a, const element_ptr& b)
    requires std::three_way_comparable<Index>
  {
    using order = std::compare_three_way_result_t<Index>;
    if (const auto arrays = a.name_.array <=> b.name_.array; arrays != 0) return order(arrays);
    return a.name_.index <=> b.name_.index;
  }
  template <class A>
  void serialize(A& a) {
    a & name_.array & name_.index;
    detail::rename_after_restart(a, name_.array);
  }

 private:
  detail::element_name<T, Index> name_;
};

namespace detail {
/// The name of an array as far as it is known here.
[[nodiscard]] std::string name_of_array(std::uint32_t id);
}  // namespace detail

/// As errors write it: "grid[3, 4]"; where the array is not known, "array 5[3, 4]". Throws
/// std::bad_alloc, what a to_string() of the index throws.
template <class T, class Index>
[[nodiscard]] std::string to_string(const element_ptr<T, Index>& e) {
  return e ? detail::name_of_array(e.name().array) + "[" + index_text(e.index()) + "]" : "null";
}
template <class Traits, class T, class Index>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const element_ptr<T, Index>& e) {
  return out << to_string(e);
}

/// `start(e)->m(...)`, `post(e)->m(...)`, `try_post(e)->m(...)`: the modes of a call, as of a
/// remote pointer.
template <class T, class Index>
[[nodiscard]] auto start(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::start, T>(e.name());
}
template <class T, class Index>
[[nodiscard]] auto post(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::post, T>(e.name());
}
template <class T, class Index>
[[nodiscard]] auto try_post(const element_ptr<T, Index>& e) {
  return detail::bound_target<typename detail::element_modes<T, Index>::try_post, T>(e.name());
}

/// Destroys the element when it has executed what was sent before by the caller; returns when that
/// is done and the index is free. Throws process_gone if it has ended already (for one that was
/// never created this waits, as other early messages do), usage_error if another method of it is
/// parked (reentrant classes), node_lost, deadlock_error (an element itself: use post_destroy).
template <class T, class Index>
void destroy(const element_ptr<T, Index>& e) {
  detail::call_element<detail::end_message<T, Index>, void>(detail::here_pe(), e.name());
}
/// The same without waiting for it.
template <class T, class Index>
future<void> start_destroy(const element_ptr<T, Index>& e) {
  return detail::start_element<detail::end_message<T, Index>, void>(detail::here_pe(), e.name());
}
/// The same, one way: what goes wrong is reported where the element is, or was. An element ends
/// itself so: it executes what it has in its mailbox, and is then no more.
template <class T, class Index>
void post_destroy(const element_ptr<T, Index>& e) {
  detail::send_element<detail::end_message<T, Index>>(detail::here_pe(), e.name(), nullptr, detail::patience::may_wait);
}
/// Moves the element to another PE, after what was sent before by the caller; the future is ready
/// when it has left. Throws as element::migrate_to reports.
template <class T, class Index>
future<void> start_migrate(const element_ptr<T, Index>& e, std::uint32_t pe) {
  return detail::start_element<detail::leave_message<T, Index>, void>(detail::here_pe(), e.name(), std::uint32_t{pe});
}
/// The same, one way.
template <class T, class Index>
void post_migrate(const element_ptr<T, Index>& e, std::uint32_t pe) {
  detail::send_element<detail::leave_message<T, Index>>(detail::here_pe(), e.name(), nullptr,
                                                        detail::patience::may_wait, std::uint32_t{pe});
}

/// A dynamic, sparse set of processes of class T, addressed by an Index of the program's choice,
/// spread over all PEs, that can be created, destroyed and moved at any time. This is a small value
/// that names it: to be copied, stored and sent.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
class array {
 public:
  using element_type = T;
  using index_type = Index;
  using modes = detail::element_modes<T, Index>;

  array() = default;
  explicit array(std::uint32_t id) noexcept : id_(id) {}
  /// A derived class is as good as its base: its methods are called, of one element or of all.
  /// Elements are inserted as what they are (usage_error).
  template <detail::derives_from<T> U>
  array(const array<U, Index>& a) noexcept : id_(a.id()) {  // NOLINT(google-explicit-constructor)
    detail::require_base<U, T, Index>();
  }
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] explicit operator bool() const noexcept { return id_ != 0; }

  [[nodiscard]] element_ptr<T, Index> operator[](const Index& i) const {
    detail::require_index_of<T, Index>();
    return element_ptr<T, Index>({id_, i});
  }
  /// A fraction would be cut off: it does not compile.
  template <std::floating_point F>
    requires std::is_integral_v<Index>
  [[nodiscard]] element_ptr<T, Index> operator[](F) const {
    static_assert(detail::never<F>, "orrery: the index of this array is an integer: round the number first");
    return {};
  }
  /// `grid[x, y]`
  template <class... C>
    requires(detail::is_coordinates<Index> && sizeof...(C) > 1)
  [[nodiscard]] element_ptr<T, Index> operator[](C... coordinates) const {
    static_assert(sizeof...(C) == std::tuple_size_v<Index>, "orrery: this array has another number of dimensions");
    static_assert((!std::is_floating_point_v<C> && ...),
                  "orrery: the coordinates of this array are integers: round the numbers first");
    detail::require_index_of<T, Index>();
    return element_ptr<T, Index>({id_, Index{static_cast<typename Index::value_type>(coordinates)...}});
  }
  /// `grid->m(args...)`: calls the method of every element, one way. See post(grid).
  [[nodiscard]] const auto* operator->() const noexcept {
    return detail::view_target<typename modes::broadcast, T>(id_);
  }
  friend bool operator==(const array&, const array&) = default;
  friend auto operator<=>(const array&, const array&) = default;
  template <class A>
  void serialize(A& a) {
    a & id_;
    detail::rename_after_restart(a, id_);
  }

  /// Creates an element at the home of the index; returns when it is there. Throws usage_error if
  /// there is one already, with the names of array and index; what the constructor throws;
  /// node_lost. Parks if the home is another PE or the constructor waits.
  template <class... A>
  void insert(const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    if (const auto* part = detail::part_or_guest<T, Index>(self, id_)) {
      insert_on(part->home_of(i), i, std::forward<A>(arguments)...);
    } else {
      start_insert_as_guest(self, i, std::forward<A>(arguments)...).get();
    }
  }
  /// The same on a PE of the caller's choice; its home is told.
  template <class... A>
  void insert_at(placement where, const Index& i, A&&... arguments) const {
    insert_on(where.resolve(), i, std::forward<A>(arguments)...);
  }
  /// As insert, without waiting.
  template <class... A>
  future<void> start_insert(const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    const auto* part = detail::part_or_guest<T, Index>(self, id_);
    if (part == nullptr) return start_insert_as_guest(self, i, std::forward<A>(arguments)...);
    return start_insert_on(part->home_of(i), i, std::forward<A>(arguments)...);
  }
  template <class... A>
  future<void> start_insert_at(placement where, const Index& i, A&&... arguments) const {
    return start_insert_on(where.resolve(), i, std::forward<A>(arguments)...);
  }
  /// As insert, one way: what goes wrong is reported on the PE where it happens.
  template <class... A>
  void post_insert(const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    auto* const own = detail::part_or_guest<T, Index>(self, id_);
    if (own == nullptr) {
      (void)detail::may_send_as_guest(self, id_, true);
      ask_as_guest(self, {}, i, std::forward<A>(arguments)...);
      return;
    }
    auto& part = *own;
    const std::uint32_t home = part.home_of(i);
    if (home != self.id() || !self.room_on_stack()) {
      post_ask(self, home, home, i, std::forward<A>(arguments)...);
      return;
    }
    detail::cell<T, Index>* c = nullptr;
    try {
      c = &conceive_here(part, i);
    } catch (...) {
      detail::answer_error(self, {}, &detail::create_message<T, Index, detail::travels_t<A>...>::instance,
                           std::current_exception());
      return;
    }
    try {
      part.construct_inline(*c, std::forward<A>(arguments)...);
    } catch (...) {
      detail::report_no_creation(self, part.text_of(i), std::current_exception());
    }
  }
  template <class... A>
  void post_insert_at(placement where, const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    const auto& part = detail::part_of<T, Index>(self, id_);
    const std::uint32_t there = where.resolve();
    part.require_on(i, there);
    post_ask(self, part.home_of(i), there, i, std::forward<A>(arguments)...);
  }

  /// The memory that the array takes on this PE. Does not park; goes through the tables.
  [[nodiscard]] array_footprint footprint() const {
    return detail::part_of<T, Index>(detail::here_pe(), id_).footprint();
  }
  /// How many elements live on this PE. Does not park.
  [[nodiscard]] std::size_t local_size() const {
    return detail::part_of<T, Index>(detail::here_pe(), id_).cells().size();
  }
  /// Calls f(T&) for each element on this PE, between methods of others: f must not wait, create,
  /// destroy or move elements.
  template <class F>
  void for_each_local(F f) const {
    for (detail::cell_base* c : detail::part_of<T, Index>(detail::here_pe(), id_).cells())
      if (c->process->has_object) f(detail::element_in<T, Index>(*c->process));
  }

 private:
  static detail::cell<T, Index>& conceive_here(detail::array_part<T, Index>& part, const Index& i) {
    auto& c = part.create_entry(i, part.admit(i));
    part.flush_early();
    return c;
  }
  template <class... A>
  void insert_on(std::uint32_t where, const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    auto& part = detail::part_of<T, Index>(self, id_);
    part.require_on(i, where);
    const std::uint32_t home = part.home_of(i);
    using message = detail::create_message<T, Index, detail::travels_t<A>...>;
    if (home == self.id() && where == home && self.room_on_stack()) {
      auto& c = conceive_here(part, i);
      try {
        part.construct_inline(c, std::forward<A>(arguments)...);
      } catch (...) {
        detail::rethrow_as_received(message::instance, self);
      }
      return;
    }
    self.require_process();
    const detail::element_name<T, Index> name{id_, i};
    detail::element_route<T, Index, const detail::element_name<T, Index>&> way(name);
    detail::typed_sink<void> k;
    detail::prepare(k, self, address{}, message::instance);
    k.route = &way;
    (void)wait_for_way<message>(self, home, true);
    detail::array_directory::expectation answer(detail::array_directory::of(self), k, id_);
    ask(self, home, where, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    self.wait(k);
    k.take();
  }
  template <class... A>
  future<void> start_insert_on(std::uint32_t where, const Index& i, A&&... arguments) const {
    detail::pe& self = detail::here_pe();
    const auto& part = detail::part_of<T, Index>(self, id_);
    part.require_on(i, where);
    const std::uint32_t home = part.home_of(i);
    using message = detail::create_message<T, Index, detail::travels_t<A>...>;
    using route = detail::element_route<T, Index, detail::element_name<T, Index>>;
    auto state = detail::future_access<void>::make_routed(self, route(detail::element_name<T, Index>{id_, i}),
                                                          message::instance);
    (void)wait_for_way<message>(self, home, true);
    auto travelling = detail::future_access<void>::make_hold(state);
    detail::array_directory::expectation answer(detail::array_directory::of(self), *state, id_);
    ask(self, home, where, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    travelling.release();
    return detail::future_access<void>::wrap(std::move(state));
  }
  template <class... A>
  future<void> start_insert_as_guest(detail::pe& self, const Index& i, A&&... arguments) const {
    using message = detail::create_message<T, Index, detail::travels_t<A>...>;
    using route = detail::element_route<T, Index, detail::element_name<T, Index>>;
    auto state = detail::future_access<void>::make_routed(self, route(detail::element_name<T, Index>{id_, i}),
                                                          message::instance);
    (void)detail::may_send_as_guest(self, id_, true);
    auto travelling = detail::future_access<void>::make_hold(state);
    auto& directory = detail::array_directory::of(self);
    detail::array_directory::expectation answer(directory, directory.expect_as_guest(*state, id_));
    ask_as_guest(self, {self.id(), answer.call()}, i, std::forward<A>(arguments)...);
    answer.sent();
    travelling.release();
    return detail::future_access<void>::wrap(std::move(state));
  }
  // Does not park.
  template <class... A>
  void ask_as_guest(detail::pe& self, detail::caller from, const Index& i, A&&... arguments) const {
    detail::check_spawnable<T, A...>();
    using message = detail::create_message<T, Index, detail::travels_t<A>...>;
    detail::bytes b = detail::pack(0, detail::creation{from, 0, 0, false}, i);
    detail::pack_after(b, detail::travels_t<A>(std::forward<A>(arguments))...);
    detail::send_as_guest(self, id_, detail::guest_request::creation, message::instance, b);
  }
  // Parks while others wait for room on the way to the home; before anything is registered that a
  // lost node would end. Throws node_lost where an answer is expected; else false if the home is
  // lost.
  template <class Message>
  static bool wait_for_way(detail::pe& self, std::uint32_t home, bool answered) {
    if (home == self.id()) return true;
    try {
      scheduler::channel& c = self.channel_to(home);
      // waits for its turn
      if (c.slow() && self.active() != nullptr) (void)self.reserve(c, wire::granule * 2);
      return true;
    } catch (const node_lost&) {
      if (answered) throw;
      self.failures().report_unsent(Message::instance, home, std::current_exception());
      return false;
    }
  }
  template <class... A>
  void post_ask(detail::pe& self, std::uint32_t home, std::uint32_t where, const Index& i, A&&... arguments) const {
    if (wait_for_way<detail::create_message<T, Index, detail::travels_t<A>...>>(self, home, false))
      ask(self, home, where, {}, i, std::forward<A>(arguments)...);
  }
  // Does not park.
  template <class... A>
  void ask(detail::pe& self, std::uint32_t home, std::uint32_t where, detail::caller from, const Index& i,
           A&&... arguments) const {
    detail::check_spawnable<T, A...>();
    using message = detail::create_message<T, Index, detail::travels_t<A>...>;
    detail::part_of<T, Index>(self, id_).begins();
    detail::bytes b = detail::pack(0, detail::creation{from, where, 0, false}, i);
    detail::pack_after(b, detail::travels_t<A>(std::forward<A>(arguments))...);
    detail::tell(self, home, message::instance, id_, 0, b);
  }

  std::uint32_t id_ = 0;
};

/// `post(grid)->m(args...)`: a broadcast. Every element that exists when it comes to the PE where
/// it lives gets it exactly once, however it moves. Broadcasts of an array come to all elements in
/// one order. Parks, except in an element of such an array, while many of this PE are under way.
template <class T, class Index>
[[nodiscard]] auto post(const array<T, Index>& a) {
  return detail::bound_target<typename detail::element_modes<T, Index>::broadcast, T>(a.id());
}

namespace detail {
template <class Index>
typename index_part<Index>::settings settings_of(const array_options<Index>& o) {
  return {o.home, o.homes, o.always_serialize, o.cached, o.deleted, o.early_bytes};
}
}  // namespace detail

/// Makes an array without elements, on all PEs of this program that are there (program_pes());
/// returns when they know it. Parks. Throws world_error, node_lost, stopped.
template <class T, array_index Index = typename detail::index_type_of<T>::type>
array<T, Index> create_array(const array_options<Index>& o = {}) {
  detail::require_index_of<T, Index>();
  return array<T, Index>(detail::index_maker<Index>::make_array(detail::array_maker<T, Index>::instance,
                                                                detail::settings_of(o), o.branching, o.name, false));
}

/// Refuses a type that cannot be an index.
template <class T, class Index = typename detail::index_type_of<T>::type, class... A>
  requires(!array_index<Index>)
void create_array(const A&...) {
  static_assert(
      detail::never<Index>,
      "orrery: this class cannot be the index of an array: it needs ==, a default constructor, copies, a serialize(), and hash() or "
      "std::hash, of its value only");
}

/// Makes an array with an element for each index of a range; all PEs create theirs at once, each
/// element with a copy of the arguments. Returns when they are there. Contributions and broadcasts
/// of their constructors count for all of them. `where`: not at their homes but by this map. Parks.
/// Throws also what a constructor throws, and then nothing of the array is left.
template <class T, array_index Index = typename detail::index_type_of<T>::type, class... A>
  requires detail::has_range<Index>
array<T, Index> create_array(const range<Index>& all, const std::type_identity_t<array_options<Index>>& o = {},
                             std::type_identity_t<std::optional<placement_map<Index>>> where = {}, A&&... arguments) {
  detail::require_index_of<T, Index>();
  detail::check_spawnable<T, A...>();
  return array<T, Index>(detail::index_maker<Index>::make_array_of(
      detail::array_maker<T, Index, detail::travels_t<A>...>::instance, detail::settings_of(o), o.branching, o.name,
      all, where, detail::pack(0, detail::travels_t<A>(std::forward<A>(arguments))...)));
}

/// Parks until nothing of an array is queued, running or on its way: no message to an element,
/// method, creation, migration, broadcast or reduction, of the array and its sections. Messages
/// that wait for elements that nobody has created do not count, and neither does what other
/// processes do. Costs two rounds of calls to all PEs when it is so already. Throws usage_error
/// (called by an element, which would wait for itself), node_lost, stopped.
template <class T, class Index>
void quiescence(const array<T, Index>& a) {
  detail::wait_for_quiescence(a.id());
}

/// Destroys all elements and the array, everywhere. To be called when nothing of it is on its way
/// (see quiescence()), but for ends of elements: what comes later fails with process_gone. So does
/// a wait for a reduction that is not over; results that were to be messages are not sent. Parks.
/// Throws node_lost (there is nothing of the array left on the PEs that are), usage_error (a method
/// of an element is parked, of a reentrant class: this element stays, and so does the array where
/// it is), process_gone, deadlock_error (called by an element: nothing has happened).
template <class T, class Index>
void destroy(const array<T, Index>& a) {
  detail::index_maker<Index>::destroy(a.id());
}

}  // namespace orrery

template <class T, class Index>
struct std::hash<orrery::element_ptr<T, Index>> {
  [[nodiscard]] std::size_t operator()(const orrery::element_ptr<T, Index>& e) const noexcept {
    return orrery::detail::index_hash<Index>{}(e.index()) ^ orrery::detail::mix(e.name().array);
  }
};
template <class T, class Index>
struct std::hash<orrery::array<T, Index>> {
  [[nodiscard]] std::size_t operator()(const orrery::array<T, Index>& a) const noexcept {
    return orrery::detail::mix(a.id());
  }
};
