// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <typeinfo>

namespace orrery::wire {

template <class>
struct keyed_type {};

/// A name for T that GCC and Clang spell in the same way: the mangled one of the Itanium ABI.
/// Programs compare what is made of these, after stable_key(). A T that is not complete, a
/// reference and a function have one too. Costs no more than a load.
template <class T>
[[nodiscard]] std::string_view type_key() noexcept {
  return typeid(keyed_type<T>).name();
}

/// Whether a text is such a key.
[[nodiscard]] bool is_type_key(std::string_view text) noexcept;

/// The key without what compilers still write differently.
[[nodiscard]] std::string stable_key(std::string_view key);

/// Whether the key has a part that means something in one build of one program only: a lambda, or a
/// type without a name. Compilers number these.
[[nodiscard]] bool is_local_key(std::string_view key);

/// The type that the key is of, for people: as Clang writes it, without allocators and other
/// default arguments of the standard library.
[[nodiscard]] std::string readable_key(std::string_view key);

/// The same as one text for each type, made at the first call. Texts that travel or are compared
/// use this one: that of `__PRETTY_FUNCTION__` depends on the compiler.
template <class T>
[[nodiscard]] std::string_view canonical_name() {
  // outlives what is static
  static const std::string& name = *new std::string(readable_key(type_key<T>()));
  return name;
}

}  // namespace orrery::wire
