// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

// The fields of an aggregate, without a word from its author.
//
// Boost.PFR does this too, and is what we would use if it did not count fields by conversions: that
// way it sees a C array as many fields (and fails to compile), costs a second for a class of 32 KiB
// and more memory than there is for one of a few MiB, and stops with an error of its own where a
// concept has to say no. Here a field is counted by the braces it takes: T{{}, {}} is valid for two
// fields of whatever kind and size, and nothing in their classes is instantiated.
//
// Neither it nor any library can see all: bit-fields and anonymous unions do not bind to names, so
// a class with one stops the compiler in this file; such a class needs its own serialize().

namespace orrery::wire {

/// More fields than this in one class need a serialize() of its own.
inline constexpr std::size_t max_fields = 64;

template <class... T>
struct type_list {};

// Lists of 1 to 64 things, written with eight names for the eights and eight for the ones. Element
// 13 (octal 15) of a list made by M is M(15). All are undefined at the end of the file.
#define ORRERY_ONES_0(M, q) M(q##0)
#define ORRERY_ONES_1(M, q) ORRERY_ONES_0(M, q), M(q##1)
#define ORRERY_ONES_2(M, q) ORRERY_ONES_1(M, q), M(q##2)
#define ORRERY_ONES_3(M, q) ORRERY_ONES_2(M, q), M(q##3)
#define ORRERY_ONES_4(M, q) ORRERY_ONES_3(M, q), M(q##4)
#define ORRERY_ONES_5(M, q) ORRERY_ONES_4(M, q), M(q##5)
#define ORRERY_ONES_6(M, q) ORRERY_ONES_5(M, q), M(q##6)
#define ORRERY_ONES_7(M, q) ORRERY_ONES_6(M, q), M(q##7)
#define ORRERY_EIGHTS_0(M)
#define ORRERY_EIGHTS_1(M) ORRERY_ONES_7(M, 0),
#define ORRERY_EIGHTS_2(M) ORRERY_EIGHTS_1(M) ORRERY_ONES_7(M, 1),
#define ORRERY_EIGHTS_3(M) ORRERY_EIGHTS_2(M) ORRERY_ONES_7(M, 2),
#define ORRERY_EIGHTS_4(M) ORRERY_EIGHTS_3(M) ORRERY_ONES_7(M, 3),
#define ORRERY_EIGHTS_5(M) ORRERY_EIGHTS_4(M) ORRERY_ONES_7(M, 4),
#define ORRERY_EIGHTS_6(M) ORRERY_EIGHTS_5(M) ORRERY_ONES_7(M, 5),
#define ORRERY_EIGHTS_7(M) ORRERY_EIGHTS_6(M) ORRERY_ONES_7(M, 6),
#define ORRERY_LIST(M, q, r) ORRERY_EIGHTS_##q(M) ORRERY_ONES_##r(M, q)
// clang-format off
#define ORRERY_EIGHT_TIMES(M, q) M(q, 0) M(q, 1) M(q, 2) M(q, 3) M(q, 4) M(q, 5) M(q, 6) M(q, 7)
#define ORRERY_64_TIMES(M)                                                   \
  ORRERY_EIGHT_TIMES(M, 0) ORRERY_EIGHT_TIMES(M, 1) ORRERY_EIGHT_TIMES(M, 2) \
  ORRERY_EIGHT_TIMES(M, 3) ORRERY_EIGHT_TIMES(M, 4) ORRERY_EIGHT_TIMES(M, 5) \
  ORRERY_EIGHT_TIMES(M, 6) ORRERY_EIGHT_TIMES(M, 7)
// clang-format on

/// The operations on an aggregate of N fields: `fits` tells whether T takes N pairs of braces (and
/// one more initializer `Extra`), `visit` calls f with every field of x.
template <std::size_t N>
struct arity {
  template <class T, class... Extra>
  static constexpr bool fits = false;
};

template <>
struct arity<0> {
  template <class T, class... Extra>
  static constexpr bool fits = requires { T{Extra()...}; };

  template <class T, class F>
  static constexpr decltype(auto) visit(T&, F&& f) {
    return f();
  }
};

#define ORRERY_BRACES(i) \
  {                      \
  }
#define ORRERY_NAME(i) f##i
#define ORRERY_ARITY(q, r)                                                                      \
  template <>                                                                                   \
  struct arity<8 * q + r + 1> {                                                                 \
    template <class T, class... Extra>                                                          \
    static constexpr bool fits = requires { T{ORRERY_LIST(ORRERY_BRACES, q, r), Extra()...}; }; \
    template <class T, class F>                                                                 \
    static constexpr decltype(auto) visit(T& x, F&& f) {                                        \
      auto& [ORRERY_LIST(ORRERY_NAME, q, r)] = x;                                               \
      return f(ORRERY_LIST(ORRERY_NAME, q, r));                                                 \
    }                                                                                           \
  };

ORRERY_64_TIMES(ORRERY_ARITY)

/// Initializes any field by value or by reference; never defined, only its type is looked at.
struct any_value {
  template <class U>
  operator U() const;
};
struct any_reference {
  template <class U>
  operator U&() const;
};

/// Initializes a base class of T and nothing else.
template <class T>
struct any_base_of {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const;
};
struct nothing {};

inline constexpr std::size_t no_fields_known = static_cast<std::size_t>(-1);

template <class T, std::size_t N = 0>
consteval std::size_t count_fields() {
  if constexpr (arity<N + 1>::template fits<T>) {
    return count_fields<T, N + 1>();
  } else if constexpr (arity<N>::template fits<T, any_value> || arity<N>::template fits<T, any_reference>) {
    return no_fields_known;  // there is one more: field 65, or one that braces cannot initialize
  } else {
    return N;
  }
}

/// True for an aggregate with a base class, whose fields cannot be told apart from its base's. (A
/// first field that takes anything at all, such as std::any, is no sign of a base.)
template <class T>
inline constexpr bool has_base = arity<0>::fits<T, any_base_of<T>> && !arity<0>::fits<T, nothing>;

template <class T>
consteval std::size_t find_field_count() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T>) {
    return no_fields_known;
  } else if constexpr (!arity<0>::fits<T>) {
    return no_fields_known;  // some field has no default
  } else if constexpr (std::is_empty_v<T>) {
    return has_base<T> ? no_fields_known : 0;
  } else if constexpr (has_base<T>) {
    return no_fields_known;
  } else {
    return count_fields<T>();
  }
}

/// The number of fields of the aggregate T, or `no_fields_known` if T is no aggregate, has a base
/// class, more than `max_fields` fields, or a field that cannot be initialized from {}.
template <class T>
inline constexpr std::size_t field_count = find_field_count<T>();

/// A class whose fields can be visited.
template <class T>
concept has_fields = field_count<std::remove_const_t<T>> != no_fields_known;

/// Calls f(field, field, ...) with references to all fields of x, in the order of declaration.
template <class T, class F>
  requires has_fields<T>
constexpr decltype(auto) visit_fields(T& x, F&& f) {
  return arity<field_count<std::remove_const_t<T>>>::visit(x, std::forward<F>(f));
}

struct list_types {
  template <class... F>
  constexpr type_list<F...> operator()(F&...) const {
    return {};
  }
};

/// The types of the fields of T, with their const.
template <class T>
  requires has_fields<T>
using field_types = decltype(visit_fields(std::declval<T&>(), list_types{}));

#undef ORRERY_ONES_0
#undef ORRERY_ONES_1
#undef ORRERY_ONES_2
#undef ORRERY_ONES_3
#undef ORRERY_ONES_4
#undef ORRERY_ONES_5
#undef ORRERY_ONES_6
#undef ORRERY_ONES_7
#undef ORRERY_EIGHTS_0
#undef ORRERY_EIGHTS_1
#undef ORRERY_EIGHTS_2
#undef ORRERY_EIGHTS_3
#undef ORRERY_EIGHTS_4
#undef ORRERY_EIGHTS_5
#undef ORRERY_EIGHTS_6
#undef ORRERY_EIGHTS_7
#undef ORRERY_LIST
#undef ORRERY_EIGHT_TIMES
#undef ORRERY_64_TIMES
#undef ORRERY_BRACES
#undef ORRERY_NAME
#undef ORRERY_ARITY

}  // namespace orrery::wire
