// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

#include <string>
#include <string_view>

namespace orrery_cc {

/// Makes a header for C++ of the messages and tasks that the parser has found in a header or source of C: a class for each message, whose strings and arrays own
/// what they have, and for each task its tags. `file` is its name; everything stands in the namespace `in`, or in one named as the file if that is empty.
/// Throws source_error with all that C++ cannot have.
[[nodiscard]] std::string generate_cpp_header(const source& from, const program& found, std::string_view file,
                                              std::string_view in);

}  // namespace orrery_cc
