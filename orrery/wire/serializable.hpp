// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>

#include <orrery/wire/kinds.hpp>

// Which types can be sent, and one sentence about each that cannot.

namespace orrery::wire {

enum class problem {
  none,
  reference,
  constant,
  text_pointer,
  raw_pointer,
  function,
  union_type,
  base_class,
  inherited_serialize,
  fields,
  deleter,
  pointer_to_array,
  polymorphic,
  span_element,
  nested_view,
  no_default,
  unknown_class,
  unknown,
};

template <class T>
struct parts_of {
  using type = type_list<>;
};
template <class T>
  requires(kind_of<T> == kind::array)
struct parts_of<T> {
  using type = type_list<std::remove_cvref_t<decltype(std::declval<T&>()[0])>>;
};
template <class T>
  requires(kind_of<T> == kind::run || kind_of<T> == kind::sequence)
struct parts_of<T> {
  using type = type_list<typename T::value_type>;
};
template <class T>
  requires(kind_of<T> == kind::optional)
struct parts_of<T> {
  using type = type_list<typename T::value_type>;
};
template <class T>
  requires(kind_of<T> == kind::set)
struct parts_of<T> {
  using type = type_list<typename T::key_type>;
};
template <class T>
  requires(kind_of<T> == kind::map)
struct parts_of<T> {
  using type = type_list<typename T::key_type, typename T::mapped_type>;
};
template <class T>
  requires(kind_of<T> == kind::pointer)
struct parts_of<T> {
  using type = type_list<std::remove_const_t<typename T::element_type>>;
};
template <class T>
  requires(kind_of<T> == kind::aggregate && has_fields<T>)
struct parts_of<T> {
  using type = field_types<T>;
};
template <template <class...> class V, class... T>
  requires(kind_of<V<T...>> == kind::variant)
struct parts_of<V<T...>> {
  using type = type_list<T...>;
};

template <class T, class I>
struct tuple_parts;
template <class T, std::size_t... I>
struct tuple_parts<T, std::index_sequence<I...>> {
  using type = type_list<std::tuple_element_t<I, T>...>;
};
template <class T>
  requires(kind_of<T> == kind::tuple)
struct parts_of<T> {
  using type = typename tuple_parts<T, std::make_index_sequence<std::tuple_size<T>::value>>::type;
};

template <class T>
inline constexpr bool points_to_array = requires(const T& p) { p[0]; };
// By its name: <memory>, which declares it, is expensive to read (unique_ptr.hpp).
template <class D>
consteval bool is_default_delete() {
  return std::string_view(__PRETTY_FUNCTION__).find("D = std::default_delete<") != std::string_view::npos;
}
template <class T>
inline constexpr bool owns_with_delete = true;
template <class T>
  requires requires { typename T::deleter_type; }
inline constexpr bool owns_with_delete<T> = is_default_delete<typename T::deleter_type>();

template <class T>
inline constexpr bool is_good_view = true;  // a class that says so itself
template <class T, std::size_t N>
inline constexpr bool is_good_view<std::span<T, N>> = false;
template <class T>
inline constexpr bool is_good_view<std::span<const T>> = is_trivial<T> && alignof(T) <= wire_alignment;

template <class T>
consteval problem find_pointer_problem() {
  using pointee = std::remove_cv_t<typename T::element_type>;
  if constexpr (points_to_array<T>)
    return problem::pointer_to_array;
  else if constexpr (!owns_with_delete<T>)
    return problem::deleter;
  else if constexpr (std::is_polymorphic_v<pointee> && !std::is_final_v<pointee>)
    return problem::polymorphic;
  else
    return problem::none;
}

// The fault of T itself, whatever its parts are.
template <class T>
consteval problem find_own_problem() {
  constexpr kind k = kind_of<T>;
  if constexpr (std::is_reference_v<T>) {
    return problem::reference;
  } else if constexpr (std::is_const_v<T> || std::is_volatile_v<T>) {
    return problem::constant;
  } else if constexpr (k == kind::scalar || k == kind::boolean) {
    return problem::none;
  } else if constexpr (std::is_pointer_v<T>) {
    using pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_function_v<pointee>)
      return problem::function;
    else if constexpr (std::is_same_v<pointee, char>)
      return problem::text_pointer;
    else
      return problem::raw_pointer;
  } else if constexpr (std::is_member_pointer_v<T> || std::is_function_v<T>) {
    return problem::function;
  } else if constexpr (std::is_union_v<T>) {
    return problem::union_type;
  } else if constexpr (k == kind::none) {
    return std::is_class_v<T> ? problem::unknown_class : problem::unknown;
  } else if constexpr (k == kind::view) {
    return is_good_view<T> ? problem::none : problem::span_element;
  } else if constexpr (k == kind::pointer) {
    return find_pointer_problem<T>();
  } else if constexpr (k == kind::aggregate && !has_fields<T>) {
    return has_base<T> ? problem::base_class : problem::fields;
  } else if constexpr ((k == kind::member_serialize && inherits_member_serialize<T>) ||
                       (k == kind::free_serialize && inherits_free_serialize<T>)) {
    return problem::inherited_serialize;
  } else if constexpr (k == kind::array || std_kind<T> == kind::tuple) {
    return problem::none;  // if it has no default, neither has a part, which says more
  } else {
    return std::is_default_constructible_v<T> ? problem::none : problem::no_default;
  }
}

template <class T>
inline constexpr problem own_problem = find_own_problem<T>();

template <class T>
inline constexpr bool has_parts = !std::is_same_v<typename parts_of<T>::type, type_list<>>;

template <class T, class... Seen>
consteval bool is_sendable();

template <class Whole, class Part, class... Seen>
consteval bool is_sendable_part() {
  if constexpr (is_view<Part> && !is_view<Whole>)
    return false;
  else if constexpr (!std::is_class_v<Part> && !std::is_array_v<Part>)
    return own_problem<Part> == problem::none;
  else
    return is_sendable<Part, Seen...>();
}

template <class Whole, class... Seen, class... Part>
consteval bool are_sendable(type_list<Part...>) {
  return (is_sendable_part<Whole, Part, Seen...>() && ...);
}

// Seen are the aggregates around this one: a class may hold a container of itself.
template <class T, class... Seen>
consteval bool is_sendable() {
  if constexpr ((std::is_same_v<T, Seen> || ...))
    return true;
  else if constexpr (own_problem<T> != problem::none)
    return false;
  else if constexpr (is_trivial<T> || !has_parts<T>)
    return true;
  else if constexpr (kind_of<T> == kind::aggregate)
    return are_sendable<T, T, Seen...>(typename parts_of<T>::type{});
  else
    return are_sendable<T, Seen...>(typename parts_of<T>::type{});
}

}  // namespace orrery::wire

namespace orrery {

/// A type whose values can be sent to another node and received there. False, never an error, for
/// all others; `require_serializable<T>()` says why.
template <class T>
concept serializable = wire::is_sendable<T>();

namespace wire {

// `Cause` is there to be read in the compiler's notes.
template <problem P, class Cause>
consteval void say_why() {
  static_assert(P != problem::reference,
                "orrery: a reference cannot be sent to another node: send the value itself, or a "
                "remote pointer to it");
  static_assert(P != problem::constant, "orrery: a const or volatile part cannot be received: let it be neither");
  static_assert(P != problem::text_pointer,
                "orrery: a char pointer cannot be sent to another node: use std::string, or "
                "std::string_view as an argument");
  static_assert(P != problem::raw_pointer,
                "orrery: a raw pointer cannot be sent to another node: use std::unique_ptr to send "
                "what it points to, std::span<const T> for an array, or a remote pointer");
  static_assert(P != problem::function,
                "orrery: a function or member pointer cannot be sent to another node: it differs "
                "there; send what selects the function, such as an enum");
  static_assert(P != problem::union_type,
                "orrery: a union cannot be sent to another node: nobody knows which member it "
                "holds; use std::variant");
  static_assert(P != problem::base_class,
                "orrery: this class cannot be sent to another node, as it has a base class: give it "
                "`template <class A> void serialize(A& a)` that names the members of both");
  static_assert(P != problem::inherited_serialize,
                "orrery: this class would lose its own members on the way to another node, as it "
                "only inherits serialize(): give it one that calls its base's and names the others");
  static_assert(P != problem::fields,
                "orrery: this class cannot be sent to another node, as it has more than 64 members, "
                "or one with no default or an explicit default constructor: give it `template "
                "<class A> void serialize(A& a)` that names its members");
  static_assert(P != problem::deleter,
                "orrery: a std::unique_ptr with a deleter of its own cannot be sent to another "
                "node: give the class that holds it `template <class A> void serialize(A& a)`");
  static_assert(P != problem::pointer_to_array,
                "orrery: a smart pointer to an array cannot be sent to another node, as it does not "
                "know its length: use std::vector, or a::block() in a serialize()");
  static_assert(P != problem::polymorphic,
                "orrery: a smart pointer to a class with virtual functions cannot be sent to another "
                "node, as a derived object would be cut: make the class final, or use std::variant");
  static_assert(P != problem::span_element,
                "orrery: only a std::span<const T> of dynamic extent, of numbers, enums or classes of "
                "them without padding, can be sent to another node, as it is read in place: use "
                "std::vector");
  static_assert(P != problem::nested_view,
                "orrery: a view (std::span, std::string_view) can be sent as an argument but not "
                "inside a value, where it would outlive its message: use std::vector or std::string");
  static_assert(P != problem::no_default,
                "orrery: this class cannot be received from another node, as it has no public "
                "default constructor to receive it into: give it one");
  static_assert(P != problem::unknown_class,
                "orrery: this class cannot be sent to another node: give it `template <class A> "
                "void serialize(A& a)`, public, that names its members: a & x & y;");
  static_assert(P != problem::unknown, "orrery: this type cannot be sent to another node: it is no value");
}

template <class T, class... Seen>
consteval void explain();

template <class Whole, class Part, class... Seen>
consteval void explain_part() {
  if constexpr (is_view<Part> && !is_view<Whole>)
    say_why<problem::nested_view, Part>();
  else if constexpr (!is_sendable<Part, Seen...>())
    explain<Part, Seen...>();
}

template <class Whole, class... Seen, class... Part>
consteval void explain_parts(type_list<Part...>) {
  (explain_part<Whole, Part, Seen...>(), ...);
}

// Follows what cannot be sent down to the part that is the cause; the compiler's notes then show
// the way: "explain<Outer>", "explain<Inner, Outer>", and the sentence.
template <class T, class... Seen>
consteval void explain() {
  if constexpr (own_problem<T> != problem::none)
    say_why<own_problem<T>, T>();
  else
    explain_parts<T, T, Seen...>(typename parts_of<T>::type{});
}

}  // namespace wire

/// Stops the compiler with one sentence about the part of T that cannot be sent, if there is one.
template <class T>
consteval void require_serializable() {
  if constexpr (!serializable<T>) wire::explain<T>();
}

}  // namespace orrery
