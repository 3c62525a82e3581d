// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace orrery_cc {

/// Each `@file` replaced by the words in that file, those that begin with @ in it, too. Words are separated by white space; quotation marks of both
/// kinds hold them together, and a backslash takes the next character as it is. A file that cannot be read stays a word, as for GCC.
/// Throws failed if files name each other in a circle.
[[nodiscard]] std::vector<std::string> with_response_files(const std::vector<std::string>& arguments);

}  // namespace orrery_cc
