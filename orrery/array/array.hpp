// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/array_options.hpp>
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/array_maker.hpp>
#include <orrery/array/detail/insertion.hpp>
#include <orrery/array/detail/serve_elements.hpp>
#include <orrery/array/element_ptr.hpp>
#include <orrery/process/runtime.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
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
  /// The number by which the world knows the array. Does not park.
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
    elements().insert(i, std::forward<A>(arguments)...);
  }
  /// The same on a PE of the caller's choice; its home is told.
  template <class... A>
  void insert_at(placement where, const Index& i, A&&... arguments) const {
    elements().insert_on(where.resolve(), i, std::forward<A>(arguments)...);
  }
  /// As insert, without waiting.
  template <class... A>
  future<void> start_insert(const Index& i, A&&... arguments) const {
    return elements().start_insert(i, std::forward<A>(arguments)...);
  }
  /// As insert_at, without waiting.
  template <class... A>
  future<void> start_insert_at(placement where, const Index& i, A&&... arguments) const {
    return elements().start_insert_on(where.resolve(), i, std::forward<A>(arguments)...);
  }
  /// As insert, one way: what goes wrong is reported on the PE where it happens.
  template <class... A>
  void post_insert(const Index& i, A&&... arguments) const {
    elements().post(i, std::forward<A>(arguments)...);
  }
  /// As insert_at, one way.
  template <class... A>
  void post_insert_at(placement where, const Index& i, A&&... arguments) const {
    elements().post_on(where.resolve(), i, std::forward<A>(arguments)...);
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
  [[nodiscard]] detail::insertion<T, Index> elements() const noexcept { return detail::insertion<T, Index>(id_); }

  std::uint32_t id_ = 0;
};

/// `post(grid)->m(args...)`: a broadcast. Every element that exists when it comes to the PE where
/// it lives gets it exactly once, however it moves. Broadcasts of an array come to all elements in
/// one order. Parks, except in an element of such an array, while many of this PE are under way.
template <class T, class Index>
[[nodiscard]] auto post(const array<T, Index>& a) {
  return detail::bound_target<typename detail::element_modes<T, Index>::broadcast, T>(a.id());
}

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
/// a wait for a reduction that is not over; results that were to be messages are not sent. Methods
/// that wait in wait_until throw process_gone; others that are parked end first. Parks. Throws
/// node_lost (there is nothing of the array left on the PEs that are), process_gone, deadlock_error
/// (called by an element: nothing has happened).
template <class T, class Index>
void destroy(const array<T, Index>& a) {
  detail::index_maker<Index>::destroy(a.id());
}

}  // namespace orrery

template <class T, class Index>
struct std::hash<orrery::array<T, Index>> {
  [[nodiscard]] std::size_t operator()(const orrery::array<T, Index>& a) const noexcept {
    return orrery::detail::mix(a.id());
  }
};
