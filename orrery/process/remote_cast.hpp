// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/class_info.hpp>
#include <orrery/process/remote.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace orrery {
namespace detail {

template <class T>
inline constexpr bool is_remote = false;
template <class T>
inline constexpr bool is_remote<remote<T>> = true;

template <class T, class U>
inline constexpr bool is_relative = std::is_array_v<T> || std::is_array_v<U>;
template <class T, class U>
  requires(std::is_class_v<T> && std::is_class_v<U> && !is_remote<T>)
inline constexpr bool is_relative<T, U> = std::is_base_of_v<T, U> || std::is_base_of_v<U, T>;

/// The name of the class that a `remote<T>` stands for: for remote data that of the process behind
/// it.
template <class T>
[[nodiscard]] std::string_view class_name_of() {
  static_assert(std::is_class_v<T> || std::is_array_v<T>,
                "orrery: lookup<T>, await_name<T> and remote_cast<T> need the class of a process");
  static_assert(
      !is_remote<T>,
      "orrery: lookup<T>, await_name<T> and remote_cast<T>: T is the class of the process, not remote<class>");
  if constexpr (std::is_array_v<T>) {
    return wire::canonical_name<typename description_of<T>::orrery_object>();
  } else if constexpr (requires { class_of<T>::value; }) {
    return wire::canonical_name<T>();
  } else {
    return class_of<T>::info().name;  // a class of the runtime's own, such as function
  }
}

[[nodiscard]] std::string ask_class_name(const address& process);
/// Throws bad_remote_cast unless the process is of that class or of one derived from it.
void require_class(const address& process, std::string_view class_name);

}  // namespace detail

/// The class of the object behind a remote pointer, as C++ writes it; "process function" for a
/// function. Asks the PE where the process lives, not the process: a busy one need not finish
/// first.
///
/// May park. Throws usage_error (a null pointer, outside of the runtime), process_gone, node_lost,
/// stopped.
template <class T>
[[nodiscard]] std::string remote_class_name(const remote<T>& p) {
  return detail::ask_class_name(p.address());
}

/// A pointer to the derived class that the process is of: `remote_cast<ArrayPageDevice>(device)`.
/// Asks the PE where the process lives. A cast to the same class or to a base asks nobody.
///
/// May park. Throws bad_remote_cast, which names the class that the process is of, and what
/// remote_class_name throws.
template <class T, class U>
[[nodiscard]] remote<T> remote_cast(const remote<U>& p) {
  if constexpr (std::is_class_v<T> && !detail::is_remote<T>)
    static_assert(detail::is_relative<T, U>,
                  "orrery: remote_cast<T>(p): the class of p is neither T nor a base of T nor derived from it");
  if constexpr (!std::convertible_to<remote<U>, remote<T>>)
    detail::require_class(p.address(), detail::class_name_of<T>());
  return remote<T>(p.address());
}

}  // namespace orrery
