// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/program.hpp>
#include <tools/orrery_cc/source.hpp>

#include <string>
#include <string_view>

namespace orrery_cc {

/// Translates what the parser has found to C: definitions become structures and tables, and all other bytes stay as they are, with the line numbers that
/// they had. `file` is the source as the user named it: tasks that are defined in it, not in a header, must have their functions. Throws source_error with
/// all that is missing, or if `old_standard`, the option that asks for C of before 1999, is not empty.
[[nodiscard]] std::string generate(const source& from, const program& found, std::string_view file,
                                   std::string_view old_standard = {});

}  // namespace orrery_cc
