// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace orrery::scheduler {

/// Ends the program with a line: there is no address space for the stack of `what`, whose size
/// `option` sets. For code that cannot be unwound instead.
[[noreturn]] void end_without_stack(std::string_view what, std::string_view option) noexcept;

}  // namespace orrery::scheduler
