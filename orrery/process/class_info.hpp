// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/type_key.hpp>

#include <array>
#include <new>
#include <type_traits>
#include <utility>

namespace orrery {

/// Specialize as std::true_type, or give the class a
/// `static constexpr bool orrery_reentrant = true`, to let a process take further messages while
/// one of its methods is parked. Its methods must then keep the object consistent whenever they may
/// wait.
template <class T>
    struct reentrant : std::bool_constant < requires {
  requires T::orrery_reentrant;
}>{};

namespace detail {

template <class T>
struct class_of;

// The described classes that T derives from and that class_info names: the nearest ones.
template <class... Base>
struct base_list {};
template <class Description>
struct object_of {
  using type = base_list<typename Description::orrery_object>;
};
template <>
struct object_of<no_description> {
  using type = base_list<>;
};
template <>
struct object_of<ambiguous_description> {
  using type = base_list<>;
};
template <class... Description>
struct object_of<joined_description<Description...>> {
  using type = base_list<typename Description::orrery_object...>;
};
template <class T, class Own>
struct bases_by : object_of<Own> {};  // T has no line of its own
template <class T, class Own>
  requires std::is_same_v<typename Own::orrery_object, T>
struct bases_by<T, Own> : object_of<typename Own::base> {};
template <class T, class = void>
struct bases_of {  // it derives from several, and has no line that names them
  using type = base_list<>;
};
template <class T>
struct bases_of<T, std::void_t<description_of<T>>> : bases_by<T, description_of<T>> {};

template <class T, class Bases>
struct base_table;
template <class T, class... Base>
struct base_table<T, base_list<Base...>> {
  template <class B>
  static void* cast(void* object) {
    return static_cast<B*>(static_cast<T*>(object));
  }
  static constexpr std::array<scheduler::class_info::base, sizeof...(Base)> value{
      scheduler::class_info::base{&class_of<Base>::info, &cast<Base>}...};
};

/// Objects of T lie in the table of their PE, not on the heap.
template <class T>
inline constexpr bool is_small =
    sizeof(T) <= scheduler::slot::small_object && alignof(T) <= scheduler::slot::small_object &&
    !requires { T::operator new(sizeof(T)); };

/// Constructs the object of a process; set_object shows it to others.
template <class T, class... A>
[[nodiscard]] T* make_object(scheduler::slot& s, A&&... arguments) {
  if constexpr (is_small<T>) {
    return ::new (s.open_room()) T(std::forward<A>(arguments)...);
  } else {
    return new T(std::forward<A>(arguments)...);
  }
}

template <class T>
struct class_of {
  static const scheduler::class_info& info() noexcept { return value; }
  static void destroy(void* object) {
    if constexpr (is_small<T>) {
      static_cast<T*>(object)->~T();
    } else {
      delete static_cast<T*>(object);
    }
  }

  inline static const scheduler::class_info value{
      wire::canonical_name<T>(), &destroy, base_table<T, typename bases_of<T>::type>::value, reentrant<T>::value};
};

/// The T inside a process, or null if it is of another class or has no object.
template <class T>
[[nodiscard]] inline T* object_in(scheduler::slot& s) noexcept {
  if (s.class_number == class_of<T>::info().number && s.has_object) [[likely]]
    return static_cast<T*>(is_small<T> ? static_cast<void*>(s.room) : s.where_apart());
  if (s.cls() == nullptr || !s.has_object) return nullptr;
  return static_cast<T*>(scheduler::cast_object(*s.cls(), s.object(), class_of<T>::info()));
}

}  // namespace detail
}  // namespace orrery
