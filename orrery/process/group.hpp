// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/broadcast.hpp>
#include <orrery/process/member.hpp>

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstddef>
#include <functional>
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

// --- where ---------------------------------------------------------------------------------------

/// Where the members of a group are to live: places that are used in turn (rank i at place i mod
/// their number), or in blocks of consecutive ranks. A single placement is a list of one; `node(1)`
/// and the like choose anew for each member.
class placements {
 public:
  placements(placement one) : list_{one} {}  // NOLINT(google-explicit-constructor)
  placements(std::initializer_list<placement> l) : list_(l) {}
  placements(std::vector<placement> l) : list_(std::move(l)) {}  // NOLINT(google-explicit-constructor)
  placements(std::span<const placement> l) : list_(l.begin(), l.end()) {}  // NOLINT(google-explicit-constructor)

  /// The PE of each of n members, seen from the calling process. Throws usage_error (no such place,
  /// no place at all), node_lost.
  [[nodiscard]] std::vector<std::uint32_t> resolve(std::size_t n) const;

 private:
  friend placements everywhere();
  friend placements in_blocks(placements places);
  placements() = default;

  std::vector<placement> list_;  // empty: all PEs of the world
  bool all_ = false;
  bool blocks_ = false;
};

/// All PEs that are there, in turn, from the first on: neighbours by rank are on different PEs (a
/// cyclic distribution).
[[nodiscard]] placements everywhere();
/// The same places, but in blocks: with 64 members on 2 PEs ranks 0 to 31 are on the first.
/// Neighbours by rank are mostly on one PE.
[[nodiscard]] placements in_blocks(placements places = everywhere());

// --- calls to all members ------------------------------------------------------------------------

namespace detail {

/// Calling a method of each member, with arguments that all of them share.
template <class M, class R, class... P>
struct broadcast_method {
  using object = typename M::object;
  using result = R;
  static constexpr std::string_view class_name() noexcept { return type_name<object>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  static decltype(auto) run(pe&, slot&, object* o, const std::remove_cvref_t<P>&... arguments) {
    if constexpr (requires { M::call(*o, arguments...); }) {
      return M::call(*o, arguments...);  // what it takes by value is copied
    } else {
      static_assert(
          (std::is_copy_constructible_v<std::remove_cvref_t<P>> && ...),
          "orrery: each member of a group needs an argument of its own where its method takes one by value or `&&`: it "
          "must be copyable");
      return M::call(*o, std::remove_cvref_t<P>(arguments)...);
    }
  }
};

struct group_call_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static auto invoke(const group_handle& g, P&&... arguments) {
    const group_data& d = g.data();
    auto results = call_parts<broadcast_method<M, R, P...>, gather_fold, P...>(d, arguments...);
    return merge<value_t<R>>(d, results);
  }
};

struct group_start_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static auto invoke(const group_handle& g, P&&... arguments) {
    return start_parts<broadcast_method<M, R, P...>, gather_fold, P...>(
        g, [](const group_data& d, auto& results) { return merge<value_t<R>>(d, results); }, arguments...);
  }
};

struct group_post_mode {
  using target = group_handle;
  template <class M, class R, class... P>
  static void invoke(const group_handle& g, P&&... arguments) {
    post_parts<broadcast_method<M, R, P...>, gather_fold, P...>(g.data(), arguments...);
  }
};

/// The proxy of a class for all members of a group.
template <class Mode, class T>
[[nodiscard]] const auto* view_all(const group_handle& g) noexcept {
  static_assert(
      is_described<T>,
      "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use "
      "it, put the line before the class, behind a forward declaration");
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(std::is_empty_v<proxy> && sizeof(proxy) == 1);
  return std::launder(reinterpret_cast<const proxy*>(&g));
}

/// The result of start(g) and post(g). Used at once, in the same expression.
template <class Mode, class T>
class bound_group {
 public:
  explicit bound_group(const group_handle& g) noexcept : group_(&g) {}
  [[nodiscard]] const auto* operator->() const noexcept { return view_all<Mode, T>(*group_); }

 private:
  const group_handle* group_;
};

// A method that is named by a pointer: &T::m.
template <class T, auto F>
struct pointed_method {
  using object = T;
  static constexpr std::string_view name = [] {
    const std::string_view s = type_name<function_name<F>>();
    const std::size_t begin = s.find('<') + 1;
    const std::string_view whole = s.substr(begin, s.rfind('>') - begin);  // &Class::method
    return whole.substr(std::min(whole.rfind("::") + 2, whole.size()));
  }();
  template <class... A>
  static auto call(T& o, A&&... arguments) -> decltype((o.*F)(std::forward<A>(arguments)...)) {
    return (o.*F)(std::forward<A>(arguments)...);
  }
};

template <class T, auto F, class Op, class R, class... P>
struct reduction_calls {
  static_assert(!std::is_void_v<R>, "orrery: reduce needs a method that returns something");
  static_assert((can_be_parameter<P> && ...),
                "orrery: a method of a process cannot take a pointer or a non-const reference");
  using V = value_t<R>;
  using operation = broadcast_method<pointed_method<T, F>, R, P...>;
  // Parts combine with what can be made there: an op without state.
  static constexpr bool at_parts = std::is_empty_v<Op> && std::is_default_constructible_v<Op>;
  using fold = std::conditional_t<at_parts, reduce_fold<Op>, gather_fold>;

  static V combine(const group_data& d, std::vector<part_result<V>>& results, const Op& op) {
    if constexpr (at_parts) {
      rethrow_first(results);
      return fold_runs<V>(d, results, op);
    } else {
      std::vector<V> all = merge<V>(d, results);
      V value = std::move(all[0]);
      for (std::size_t i = 1; i < all.size(); ++i) value = op(std::move(value), V(std::move(all[i])));
      return value;
    }
  }
  static V call(const group_handle& g, const Op& op, P... arguments) {
    const group_data& d = g.data();
    require_members(d);
    auto results = call_parts<operation, fold, P...>(d, arguments...);
    return combine(d, results, op);
  }
  static future<V> start(const group_handle& g, const Op& op, P... arguments) {
    require_members(g.data());
    return start_parts<operation, fold, P...>(
        g, [op](const group_data& d, auto& results) { return combine(d, results, op); }, arguments...);
  }
  static void require_members(const group_data& d) {
    if (d.members.empty()) throw usage_error(errc::bad_argument, "reduce: the group has no members");
  }
};

template <class T, auto F, class Op, class Pointer = decltype(F)>
struct reduction;
#define ORRERY_REDUCTION(qualifiers)                                 \
  template <class T, auto F, class Op, class C, class R, class... P> \
  struct reduction<T, F, Op, R (C::*)(P...) qualifiers> : reduction_calls<T, F, Op, R, P...> {};
ORRERY_REDUCTION()
ORRERY_REDUCTION(const)
ORRERY_REDUCTION(noexcept)
ORRERY_REDUCTION(const noexcept)
#undef ORRERY_REDUCTION

struct group_access;

}  // namespace detail

// --- the group -----------------------------------------------------------------------------------

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
  class iterator;
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

/// Goes through the members of a group in the order of their ranks; random access, by value.
template <class T>
class group<T>::iterator {
 public:
  using iterator_concept = std::random_access_iterator_tag;
  using iterator_category = std::input_iterator_tag;
  using value_type = remote<T>;
  using difference_type = std::ptrdiff_t;
  using reference = remote<T>;
  using pointer = void;

  iterator() noexcept = default;
  remote<T> operator*() const noexcept { return remote<T>(*at_); }
  remote<T> operator[](difference_type n) const noexcept { return remote<T>(at_[n]); }
  iterator& operator++() noexcept { return *this += 1; }
  iterator operator++(int) noexcept { return iterator(at_++, 0); }
  iterator& operator--() noexcept { return *this -= 1; }
  iterator operator--(int) noexcept { return iterator(at_--, 0); }
  iterator& operator+=(difference_type n) noexcept {
    at_ += n;
    return *this;
  }
  iterator& operator-=(difference_type n) noexcept { return *this += -n; }
  friend iterator operator+(iterator i, difference_type n) noexcept { return i += n; }
  friend iterator operator+(difference_type n, iterator i) noexcept { return i += n; }
  friend iterator operator-(iterator i, difference_type n) noexcept { return i -= n; }
  friend difference_type operator-(const iterator& a, const iterator& b) noexcept { return a.at_ - b.at_; }
  friend auto operator<=>(const iterator&, const iterator&) noexcept = default;

 private:
  friend class group;
  iterator(const address* first, std::size_t rank) noexcept : at_(first + rank) {}

  const address* at_ = nullptr;
};

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
