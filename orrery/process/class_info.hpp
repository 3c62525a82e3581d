// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/scheduler/handler.hpp>

#include <type_traits>

namespace orrery {

/// Specialize as std::true_type, or give the class a `static constexpr bool orrery_reentrant = true`, to let a process take further
/// messages while one of its methods is parked. Its methods must then keep the object consistent whenever they may wait.
template <class T>
    struct reentrant : std::bool_constant < requires {
  requires T::orrery_reentrant;
}>{};

namespace detail {

template <class T>
struct class_of;

// The described base of T that class_info names: the nearest one.
template <class T>
struct base_of {
  using own = description_of<T>;
  template <class D>
  struct object_of {
    using type = typename D::orrery_object;
  };
  template <class D>
    requires std::is_same_v<D, no_description>
  struct object_of<D> {
    using type = void;
  };
  static auto pick() {
    if constexpr (std::is_same_v<own, no_description>) {
      return std::type_identity<void>{};
    } else if constexpr (std::is_same_v<typename own::orrery_object, T>) {
      return std::type_identity<typename object_of<typename own::base>::type>{};
    } else {
      return std::type_identity<typename own::orrery_object>{};
    }
  }
  using type = typename decltype(pick())::type;
};

template <class T>
struct class_of {
  static const scheduler::class_info& info() noexcept { return value; }
  static void destroy(void* object) { delete static_cast<T*>(object); }

  using base = typename base_of<T>::type;
  static void* to_base(void* object) {
    if constexpr (std::is_void_v<base>) {
      return nullptr;
    } else {
      return static_cast<base*>(static_cast<T*>(object));
    }
  }
  static constexpr auto base_info() {
    if constexpr (std::is_void_v<base>) {
      return nullptr;
    } else {
      return &class_of<base>::info;
    }
  }
  static constexpr scheduler::class_info::base bases[1] = {{base_info(), &to_base}};
  static constexpr scheduler::class_info value{
      type_name<T>(), &destroy, std::span(bases).first(std::is_void_v<base> ? 0 : 1), reentrant<T>::value, false};
};

/// The T inside a process, or null if it is of another class.
template <class T>
[[nodiscard]] inline T* object_in(const scheduler::class_info* cls, void* object) noexcept {
  if (cls == &class_of<T>::info()) [[likely]]
    return static_cast<T*>(object);
  if (cls == nullptr || object == nullptr) return nullptr;
  return static_cast<T*>(scheduler::cast_object(*cls, object, class_of<T>::info()));
}

}  // namespace detail
}  // namespace orrery
