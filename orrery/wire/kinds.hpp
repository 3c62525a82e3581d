// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <orrery/wire/archive.hpp>
#include <orrery/wire/fields.hpp>

// The kinds of types on the wire. Standard types that everybody pays for anyway are known by name;
// all others, from this library or another, by what they can do, so that <map>, <chrono> or
// <filesystem> are compiled only by those who use them.

namespace orrery {

/// Opts a class in to travel as its bytes: specialize it as true for a trivially copyable class
/// that is no aggregate (it has constructors or private members) and holds no pointers, padding or
/// bool. Vectors of such a class are one copy, and it can be the element of a view.
///
///     template <> inline constexpr bool orrery::send_as_bytes<vec3> = true;
template <class T>
inline constexpr bool send_as_bytes = false;

/// Whether a received T points into the message: true for std::span<const T>, std::string_view, and
/// classes that say `static constexpr bool is_view = true`. The reader of one keeps the buffer
/// alive for as long as the value. Views can be arguments, and members of classes that are views;
/// anything else that holds one is not serializable.
template <class T>
inline constexpr bool is_view = requires { requires static_cast<bool>(T::is_view); };
template <class T, std::size_t N>
inline constexpr bool is_view<std::span<T, N>> = true;
template <class C, class Traits>
inline constexpr bool is_view<std::basic_string_view<C, Traits>> = true;

namespace wire {

enum class kind : unsigned char {
  none,
  scalar,
  boolean,
  member_serialize,  // void T::serialize(A&)
  free_serialize,  // void serialize(A&, T&)
  bytes,  // send_as_bytes
  array,  // T[N], std::array
  run,  // contiguous and resizable, of elements that are sent as their bytes
  sequence,  // emplace_back
  bools,  // std::vector<bool>
  bits,  // std::bitset
  set,
  map,
  tuple,
  optional,
  variant,
  pointer,  // unique_ptr, shared_ptr
  path,
  duration,
  time_point,
  complex,
  view,
  aggregate,
};

template <class T>
inline constexpr bool is_int128 = false;
#ifdef __SIZEOF_INT128__
__extension__ using int128 = __int128;
__extension__ using uint128 = unsigned __int128;
template <>
inline constexpr bool is_int128<int128> = true;
template <>
inline constexpr bool is_int128<uint128> = true;
#endif

/// Bytes of a scalar that mean something: all but the padding of an x87 long double.
template <class T>
inline constexpr std::size_t scalar_size = sizeof(T);
template <>
inline constexpr std::size_t scalar_size<long double> =
    std::numeric_limits<long double>::digits == 64 ? 10 : sizeof(long double);

template <class T>
consteval bool is_boolean() {
  if constexpr (std::is_enum_v<T>) {
    return std::is_same_v<std::underlying_type_t<T>, bool>;
  } else {
    return std::is_same_v<T, bool>;
  }
}

template <class T>
concept has_member_serialize = requires(T& x, sizer& s, writer& w, reader& r) {
  x.serialize(s);
  x.serialize(w);
  x.serialize(r);
};

void serialize() = delete;  // so that the name below is looked up by its arguments alone

template <class T>
concept has_free_serialize = requires(T& x, sizer& s, writer& w, reader& r) {
  serialize(s, x);
  serialize(w, x);
  serialize(r, x);
};

template <class C, class M>
std::type_identity<C> declaring_class(M C::*);

/// As large as Base if there is room for a member in the padding at its end.
template <class Base>
struct one_more : Base {
  char c;
};

/// Whether a class that inherits a function from Declaring may have members of its own, which that
/// function does not know: to send what it names would lose them silently.
template <class T, class Declaring>
inline constexpr bool adds_members = false;
template <class T, class Base>
  requires(!std::is_same_v<T, Base> && !std::is_empty_v<Base>)
inline constexpr bool adds_members<T, std::type_identity<Base>> =
    sizeof(T) != sizeof(Base) || sizeof(one_more<Base>) == sizeof(Base);

template <class T>
concept inherits_member_serialize =
    requires { requires adds_members<T, decltype(declaring_class(&T::template serialize<sizer>))>; };

/// Converts to references to true bases of T only.
template <class T>
struct base_reference {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U&() const;
};
template <class T>
struct own_reference {
  template <class U>
    requires std::is_same_v<U, T>
  operator U&() const;
};

template <class T>
concept inherits_free_serialize = requires(sizer& s, base_reference<T> base) { serialize(s, base); } &&
                                  !requires(sizer& s, own_reference<T> own) { serialize(s, own); };

template <class T>
concept resizable_contiguous = requires(T& x, std::size_t n) {
  requires std::is_same_v<decltype(x.data()), typename T::value_type*>;
  x.resize(n);
  x.size();
};

template <class T>
concept growable = requires(T& x) {
  typename T::value_type;
  x.begin();
  x.end();
  x.size();
  x.clear();
  x.emplace_back();
  x.back();
};

template <class T>
concept set_like = requires(T& x, typename T::key_type& k) {
  x.begin();
  x.size();
  x.clear();
  x.emplace_hint(x.end(), std::move(k));
};

template <class T>
concept map_like = requires(T& x, typename T::key_type& k, typename T::mapped_type& v) {
  x.begin();
  x.size();
  x.clear();
  x.emplace_hint(x.end(), std::move(k), std::move(v));
};

template <class T>
concept path_like = requires(const T& x) {
  typename T::string_type;
  x.lexically_normal();
  x.native();
  T(typename T::string_type());
};

template <class T>
concept duration_like = requires(const T& x) {
  typename T::period;
  T(typename T::rep());
  x.count();
};

template <class T>
concept time_point_like = requires(const T& x) {
  typename T::clock;
  T(typename T::duration());
  x.time_since_epoch();
};

template <class T>
inline constexpr bool like_complex = false;
template <template <class> class C, class T>
inline constexpr bool like_complex<C<T>> = std::is_floating_point_v<T> && requires(const C<T>& x) {
  x.real();
  x.imag();
  requires sizeof(C<T>) == 2 * sizeof(T);
  C<T>(T(), T());
};

template <class T>
inline constexpr bool like_bits = false;
template <template <std::size_t> class B, std::size_t N>
inline constexpr bool like_bits<B<N>> = requires(B<N>& x) {
  x.to_ullong();
  x.reset();
  x.set(N);
  x.test(N);
};

template <class T>
consteval bool find_trivial();
/// Whether a T is sent as its bytes.
template <class T>
inline constexpr bool is_trivial = find_trivial<T>();

template <class T>
inline constexpr kind std_kind = kind::none;
template <class T, std::size_t N>
inline constexpr kind std_kind<T[N]> = kind::array;
template <class T, std::size_t N>
inline constexpr kind std_kind<std::array<T, N>> = kind::array;
template <class C, class Traits, class A>
inline constexpr kind std_kind<std::basic_string<C, Traits, A>> = kind::run;
template <class T, class A>
inline constexpr kind std_kind<std::vector<T, A>> = is_trivial<T> ? kind::run : kind::sequence;
template <class A>
inline constexpr kind std_kind<std::vector<bool, A>> = kind::bools;
template <class T, class U>
inline constexpr kind std_kind<std::pair<T, U>> = kind::tuple;
template <class... T>
inline constexpr kind std_kind<std::tuple<T...>> = kind::tuple;
template <class T>
inline constexpr kind std_kind<std::optional<T>> = kind::optional;
template <class... T>
inline constexpr kind std_kind<std::variant<T...>> = kind::variant;
template <class T, std::size_t N>
inline constexpr kind std_kind<std::span<T, N>> = kind::view;
template <class C, class Traits>
inline constexpr kind std_kind<std::basic_string_view<C, Traits>> = kind::view;

// By their names, as <memory> is expensive to read (unique_ptr.hpp). A class that is like them may
// have a serialize() of its own, or be derived from one.
template <class T>
consteval bool is_named_owner() {
  const std::string_view name = __PRETTY_FUNCTION__;
  return name.find("T = std::unique_ptr<") != std::string_view::npos ||
         name.find("T = std::shared_ptr<") != std::string_view::npos;
}
template <class T>
concept standard_owner =
    (requires { typename T::deleter_type; } || requires { typename T::weak_type; }) && is_named_owner<T>();

template <class T>
consteval kind find_container_kind() {
  if constexpr (requires { requires adds_members<T, decltype(declaring_class(&T::clear))>; }) {
    return kind::none;
  } else if constexpr (map_like<T>) {
    return kind::map;
  } else if constexpr (set_like<T>) {
    return kind::set;
  } else if constexpr (growable<T>) {
    if constexpr (resizable_contiguous<T>) {
      if (is_trivial<typename T::value_type>) return kind::run;
    }
    return kind::sequence;
  } else {
    return kind::none;
  }
}

template <class T>
consteval kind find_class_kind() {
  // Known types first: a serialize() template of somebody's that takes anything does not get them.
  // Then what the author of the class wrote, then what can be found out.
  if constexpr (std_kind<T> != kind::none)
    return std_kind<T>;
  else if constexpr (standard_owner<T>)
    return kind::pointer;
  else if constexpr (has_member_serialize<T>)
    return kind::member_serialize;
  else if constexpr (has_free_serialize<T>)
    return kind::free_serialize;
  else if constexpr (send_as_bytes<T>)
    return kind::bytes;
  else if constexpr (requires { std::tuple_size<T>::value; })
    return kind::tuple;
  else if constexpr (std::is_aggregate_v<T>)
    return kind::aggregate;
  else if constexpr (find_container_kind<T>() != kind::none)
    return find_container_kind<T>();
  else if constexpr (duration_like<T>)
    return kind::duration;
  else if constexpr (time_point_like<T>)
    return kind::time_point;
  else if constexpr (like_complex<T>)
    return kind::complex;
  else if constexpr (like_bits<T>)
    return kind::bits;
  else if constexpr (path_like<T>)
    return kind::path;
  else
    return kind::none;
}

template <class T>
consteval kind find_kind() {
  if constexpr (is_boolean<T>())
    return kind::boolean;
  else if constexpr (std::is_arithmetic_v<T> || is_int128<T>)
    return kind::scalar;
  else if constexpr (std::is_enum_v<T>)
    return has_free_serialize<T> ? kind::free_serialize : kind::scalar;
  else if constexpr (std::is_class_v<T>)
    return find_class_kind<T>();
  else if constexpr (std::is_bounded_array_v<T>)
    return kind::array;
  else
    return kind::none;
}

template <class T>
inline constexpr kind kind_of = find_kind<T>();

template <class... F>
consteval bool fields_are_trivial(std::size_t size, type_list<F...>) {
  return (is_trivial<F> && ...) && (sizeof(F) + ... + 0) == size;  // equal: there is no padding
}

template <class T>
consteval bool find_trivial() {
  if constexpr (!std::is_same_v<T, std::remove_cv_t<T>>) {
    return false;  // cannot be received
  } else if constexpr (std::is_array_v<T>) {
    return is_trivial<std::remove_all_extents_t<T>>;
  } else {
    constexpr kind k = kind_of<T>;
    if constexpr (k == kind::scalar) {
      return scalar_size<T> == sizeof(T);
    } else if constexpr (k == kind::bytes) {
      static_assert(std::is_trivially_copyable_v<T>, "orrery: send_as_bytes is for trivially copyable classes only");
      return true;
    } else if constexpr (k == kind::array) {
      return is_trivial<typename T::value_type> && sizeof(T) == std::tuple_size_v<T> * sizeof(typename T::value_type);
    } else if constexpr (k == kind::complex) {
      return is_trivial<typename T::value_type> && std::is_trivially_copyable_v<T>;
    } else if constexpr (k == kind::duration) {
      return is_trivial<typename T::rep> && sizeof(T) == sizeof(typename T::rep);
    } else if constexpr (k == kind::time_point) {
      return is_trivial<typename T::duration> && sizeof(T) == sizeof(typename T::duration);
    } else if constexpr (k == kind::tuple && requires(T& x) {
                           x.first;
                           x.second;
                         }) {
      // A std::pair is trivial but for its assignment.
      if constexpr (std::is_trivially_copy_constructible_v<T>) {
        return fields_are_trivial(sizeof(T), type_list<typename T::first_type, typename T::second_type>{});
      } else {
        return false;
      }
    } else if constexpr (k == kind::aggregate && std::is_trivially_copyable_v<T>) {
      if constexpr (has_fields<T>) {
        return !std::is_empty_v<T> && fields_are_trivial(sizeof(T), field_types<T>{});
      } else {
        return false;
      }
    } else {
      return false;
    }
  }
}

}  // namespace wire

/// Whether a T travels as its bytes, one copy for any number of them: arithmetic types but bool,
/// enums, std::complex, durations, and pairs, arrays and aggregates of those that have no padding,
/// and what `send_as_bytes` names. Such a T can be the element of a std::span argument.
template <class T>
concept trivially_serializable = wire::is_trivial<T>;

}  // namespace orrery
