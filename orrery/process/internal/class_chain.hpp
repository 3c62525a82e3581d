// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/handler.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace orrery::detail {

/// The names of a class and of its described bases, its own first: what can be said of a class to a
/// node that does not have the process.
using class_chain = std::vector<std::string>;

[[nodiscard]] class_chain chain_of(const scheduler::class_info& cls);
/// Whether `wanted` is the class or a base of it.
[[nodiscard]] bool is_kind_of(const class_chain& chain, std::string_view wanted) noexcept;

}  // namespace orrery::detail
