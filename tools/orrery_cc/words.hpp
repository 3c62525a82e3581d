// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace orrery_cc {

/// A keyword of C, which nothing can have as its name.
[[nodiscard]] bool is_word_of_c(std::string_view name) noexcept;
/// One of C++ that is none of C.
[[nodiscard]] bool is_word_of_cpp(std::string_view name) noexcept;
/// What --cpp-namespace= takes: `weather`, `weather::posts`.
[[nodiscard]] bool is_namespace(std::string_view name) noexcept;

}  // namespace orrery_cc
