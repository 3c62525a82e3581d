// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <orrery/wire/error.hpp>

namespace orrery {

/// An exception on its way to another node. An aggregate of strings and numbers: serializable as it
/// is, see serialize.hpp.
struct wire_exception {
  std::uint16_t kind = 0;  ///< which class it becomes again; see exception.cpp
  std::int32_t value = 0;  ///< the value of a std::error_code, or an orrery::errc
  std::string what;  ///< the what() of the exception, or what else is known of it
  std::string type;  ///< the thrown class as C++ writes it, "std::out_of_range"
  std::string state;  ///< what the class of a program keeps beside it; see ORRERY_EXCEPTION
  where origin;  ///< where a remote_error came from; empty for all others

  friend bool operator==(const wire_exception&, const wire_exception&) = default;
};

/// The wire form of an exception that a method threw. Does not throw: short of memory it makes the
/// form of std::bad_alloc, and a null pointer becomes the form of an unknown type. Does not park.
[[nodiscard]] wire_exception encode_exception(const std::exception_ptr& thrown) noexcept;

/// The exception to throw at the caller of the method, never null.
///
/// - Standard exceptions come back as the same class with the same what(): std::exception, the
///   classes of stdexcept, bad_alloc, bad_array_new_length, bad_cast, bad_typeid, bad_exception,
///   bad_weak_ptr, bad_function_call, bad_optional_access, bad_variant_access, bad_any_cast, and
///   std::system_error of the generic, system and iostream categories, as which also
///   ios_base::failure and filesystem_error arrive.
/// - Orrery's own exceptions come back as the same class, code and what().
/// - Classes of the program that have a line ORRERY_EXCEPTION (exception_class.hpp) come back as
///   themselves.
/// - Anything else, including classes derived from those, becomes a remote_error that names the
///   type and `at`, the method that threw.
///
/// Throws std::bad_alloc only. The form may be forged or damaged. Does not park.
[[nodiscard]] std::exception_ptr decode_exception(const wire_exception& form, const where& at);

/// The exception for the caller of a method that threw, inside a node: the same as from another
/// node, so that a program does not depend on where its processes are. Shares nothing with
/// `thrown`: the two may be used by different threads. Does not throw or park.
[[nodiscard]] std::exception_ptr as_received(const std::exception_ptr& thrown, const where& at) noexcept;

/// True if a caller gets this exception in the class in which it was thrown. Does not throw or
/// park.
[[nodiscard]] bool keeps_class(const std::exception_ptr& thrown) noexcept;

}  // namespace orrery
