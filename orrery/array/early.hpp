// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

/// The fate of a message for an index where no element has been created yet (paper, "Creation"). A
/// class says it for each of its methods:
///
///     struct Word {
///       static constexpr orrery::early when_early(std::string_view method) {
///         return method == "link" ? orrery::early::create_at_home : orrery::early::wait;
///       }
///     };
///
/// An index whose element was destroyed is another matter: a message to it is an error, or creates
/// the element anew.
enum class early : std::uint8_t {
  wait,  ///< it waits at the home of the index until the element is created; the default
  create_at_home,  ///< the element is default-constructed on the home PE
  /// The same on the PE where the message was sent; at the home, if the array is not on that PE.
  create_at_sender,
  /// It fails with process_gone, unless others wait there already: then it comes after them.
  refuse,
};

namespace detail {
template <class T>
constexpr early early_policy(std::string_view method) {
  if constexpr (requires { T::when_early(method); }) {
    return T::when_early(method);
  } else {
    return early::wait;
  }
}
}  // namespace detail
}  // namespace orrery
