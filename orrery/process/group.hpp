// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_calls.hpp>
#include <orrery/process/detail/group_iterator.hpp>
#include <orrery/process/detail/serve_group.hpp>
#include <orrery/process/member.hpp>
#include <orrery/process/placements.hpp>

#include <compare>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Groups of processes (Givelberg 2014, section 3.2).
//
//     auto fft = orrery::spawn_group<FFT3>(orrery::everywhere(), 16, sign, data);
//     fft[3]->transform();                               // one member
//     fft->transform();                                  // all; returns when all have finished
//     auto done = start(fft)->transform();               // all, asynchronously
//     double e = fft.reduce<&FFT3::error>(std::plus{});  // one number out of all

namespace orrery {

namespace detail {
struct group_access;
}

/// A fixed, ranked set of processes of class T (or derived from T): a small value to be copied,
/// stored and sent. It owns nothing: `destroy(g)` ends the members. Copies inside a node share one
/// list of members; a group that arrives on another node brings it along.
///
/// `g->m(args...)` calls m of all members, concurrently, and returns when all have ended: a vector
/// of their results in the order of the ranks, or nothing if m returns void. If members throw, the
/// exception of the lowest rank is thrown, once all have ended. `start(g)->m(args...)` returns a
/// future of the same, `post(g)->m(args...)` nothing.
///
/// The arguments travel once to each PE with members, and inside the caller's node a sequential
/// call copies none of them. All members of a PE read an argument that m takes by const reference,
/// or as a view, in place and at the same time: they must not change it (`mutable`, const_cast).
///
/// Messages of one process to a member arrive in the order sent, whether sent to the member or to
/// its group.
///
/// Calls may park the caller; they throw what the method throws, process_gone, node_lost,
/// deadlock_error (a member that calls its own group sequentially), stopped. (Givelberg 2014,
/// section 3.2.)
template <class T>
class group {
 public:
  using element_type = T;
  using value_type = remote<T>;
  using iterator = detail::group_iterator<T>;
  using const_iterator = iterator;

  group() noexcept = default;
  /// A derived class is as good as its base.
  template <class U>
    requires(!std::same_as<U, T> && std::convertible_to<U*, T*>)
  group(const group<U>& g) noexcept : handle_(g.handle_) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] std::size_t size() const noexcept { return handle_.size(); }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  /// The member of that rank. Throws usage_error unless it is below size(), and for a group that
  /// was default-constructed.
  [[nodiscard]] remote<T> operator[](std::size_t rank) const { return remote<T>(handle_.member(rank)); }
  /// The same; throws std::out_of_range.
  [[nodiscard]] remote<T> at(std::size_t rank) const { return remote<T>(handle_.data().members.at(rank)); }
  [[nodiscard]] iterator begin() const noexcept { return iterator(data(), 0); }
  [[nodiscard]] iterator end() const noexcept { return iterator(data(), size()); }

  /// All members; see the class.
  [[nodiscard]] const auto* operator->() const noexcept {
    return detail::view_all<detail::group_call_mode, T>(handle_);
  }

  /// Calls a method of all members and combines the results in the order of the ranks: op(op(r0,
  /// r1), r2)... `op` is associative; it need not be commutative. An op without state (std::plus, a
  /// captureless lambda) is applied where the members are, so that each PE sends one result for
  /// each run of consecutive ranks. Throws usage_error for a group without members, and what calls
  /// throw.
  ///
  ///     double worst =
  ///         fft.reduce<&FFT3::error>([](double a, double b) { return std::max(a, b); });
  template <auto Method, class Op, class... A>
  auto reduce(Op op, A&&... arguments) const {
    return detail::reduction<T, Method, Op>::call(handle_, op, std::forward<A>(arguments)...);
  }
  /// As reduce, but returns a future at once.
  template <auto Method, class Op, class... A>
  [[nodiscard]] auto start_reduce(Op op, A&&... arguments) const {
    return detail::reduction<T, Method, Op>::start(handle_, op, std::forward<A>(arguments)...);
  }

  /// False for a group that was default-constructed.
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(handle_); }
  /// By the members; the order means nothing but lets groups be keys.
  friend bool operator==(const group& a, const group& b) noexcept { return a.handle_ == b.handle_; }
  friend std::strong_ordering operator<=>(const group& a, const group& b) noexcept { return a.handle_ <=> b.handle_; }
  template <class A>
  void serialize(A& a) {
    a & handle_;
  }

 private:
  template <class>
  friend class group;
  template <class>
  friend class member;
  friend struct detail::group_access;

  [[nodiscard]] const address* data() const noexcept { return handle_ ? handle_.data().members.data() : nullptr; }

  detail::group_handle handle_;
};

/// The first members by rank, and how many there are: "[0.3#1, 1.4#1]", "[0.3#1, ... 64 members]".
/// Throws std::bad_alloc only.
template <class T>
[[nodiscard]] std::string to_string(const group<T>& g);
template <class Traits, class T>
std::basic_ostream<char, Traits>& operator<<(std::basic_ostream<char, Traits>& out, const group<T>& g) {
  return out << to_string(g);
}

namespace detail {

struct group_access {
  template <class T>
  static const group_handle& handle(const group<T>& g) noexcept {
    return g.handle_;
  }
  template <class T>
  static group<T> make(group_handle h) noexcept {
    group<T> g;
    g.handle_ = std::move(h);
    return g;
  }
};

}  // namespace detail

template <class T>
std::string to_string(const group<T>& g) {
  return detail::group_access::handle(g).text();
}

/// `start(g)->m(args...)`: begins the call of all members and returns a future of their results, in
/// the order of the ranks.
template <class T>
[[nodiscard]] detail::bound_group<detail::group_start_mode, T> start(const group<T>& g) noexcept {
  return detail::bound_group<detail::group_start_mode, T>(detail::group_access::handle(g));
}
/// `post(g)->m(args...)`: a one-way message to all members. A failure is reported where it happens.
template <class T>
[[nodiscard]] detail::bound_group<detail::group_post_mode, T> post(const group<T>& g) noexcept {
  return detail::bound_group<detail::group_post_mode, T>(detail::group_access::handle(g));
}

// --- making and ending groups --------------------------------------------------------------------

namespace detail {

/// Makes the parts, reserves the members' places, and tells all parts who they are. Parks.
[[nodiscard]] group_handle reserve_group(const std::vector<std::uint32_t>& pes);

/// The constructor of each member.
template <class T, class... A>
struct construct_operation {
  using object = void;
  using result = void;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(constructor)"; }
  static void run_at(pe& self, slot& s, group_part& part, std::size_t index, const A&... arguments) {
    s.class_number = class_of<T>::value.number;
    try {
      T* object = nullptr;
      {
        const construction_scope scope(s, part, index);
        if constexpr (std::is_constructible_v<T, const A&...>) {
          object = make_object<T>(s, arguments...);
        } else {
          object = make_object<T>(s, A(arguments)...);
        }
      }
      note_class(self, class_of<T>::value);
      s.set_object(object);
    } catch (...) {
      if (s.watched) note_failed_constructor(self, s);
      part.member_gone(part.members()[index].rank);
      throw;
    }
  }
  template <class... X>
  static void run(pe&, slot&, void*, const X&...);  // for its result; not defined
};

/// The destructor of each member; then the part ends.
template <class T>
struct end_operation {
  using object = T;
  using result = void;
  using ends = void;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(destructor)"; }
  static void run(pe&, slot& s, T*) noexcept { end_process(s); }
};

}  // namespace detail

/// Creates a group of n processes: constructs a T from the arguments for each rank at its place,
/// all concurrently, and returns when that is done. The arguments travel once to each PE; each
/// constructor has its own copy of what it takes by value. If constructors throw, the other members
/// are destroyed and the exception of the lowest rank is thrown; not the process_gone of one that
/// waited for another whose constructor threw. Parks. Throws also usage_error (no such place),
/// node_lost, stopped.
///
///     auto fft = orrery::spawn_group<FFT3>(orrery::in_blocks(), 16, sign, data);
template <class T, class... A>
group<T> spawn_group(const placements& where, std::size_t n, A&&... arguments);

/// Ends all members: runs their destructors, each after the messages that were sent to it before,
/// and returns when that is done. Members that are gone already do not matter. Parks. Throws
/// process_gone if the group was destroyed before, node_lost, deadlock_error.
template <class T>
void destroy(const group<T>& g) {
  const detail::group_data& d = detail::group_access::handle(g).data();
  auto results = detail::call_parts<detail::end_operation<T>, detail::gather_fold>(d);
  detail::rethrow_first(results);
}
/// As destroy, but returns at once.
template <class T>
future<void> start_destroy(const group<T>& g) {
  return detail::start_parts<detail::end_operation<T>, detail::gather_fold>(
      detail::group_access::handle(g),
      [](const detail::group_data&, auto& results) { detail::rethrow_first(results); });
}

template <class T, class... A>
group<T> spawn_group(const placements& where, std::size_t n, A&&... arguments) {
  static_assert(std::is_class_v<T> && !std::is_abstract_v<T>,
                "orrery: spawn_group<T>: T must be a class that can be constructed");
  static_assert(
      std::is_constructible_v<T, const detail::travels_t<A>&...> ||
          ((std::is_copy_constructible_v<detail::travels_t<A>> && ...) &&
           std::is_constructible_v<T, detail::travels_t<A>...>),
      "orrery: spawn_group<T>(placements, n, args...): T has no constructor that takes copies of these arguments");
  auto g = detail::group_access::make<T>(detail::reserve_group(where.resolve(n)));
  try {
    const detail::group_data& d = detail::group_access::handle(g).data();
    auto results = detail::call_parts<detail::construct_operation<T, detail::travels_t<A>...>, detail::gather_fold,
                                      detail::travels_t<A>...>(d, std::forward<A>(arguments)...);
    detail::rethrow_first(results);
  } catch (...) {
    try {
      destroy(g);
    } catch (const error&) {  // the first exception says why
    }
    throw;
  }
  return g;
}

}  // namespace orrery

template <class T>
struct std::hash<orrery::group<T>> {
  [[nodiscard]] std::size_t operator()(const orrery::group<T>& g) const noexcept {
    return orrery::detail::group_access::handle(g).hash();
  }
};
