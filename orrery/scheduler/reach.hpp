// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery::scheduler {

class pe;

/// Whether messages from a PE can come to another one: node::reachable, for templates.
[[nodiscard]] bool reaches(const pe& from, std::uint32_t to) noexcept;
/// Whether a PE with this number is one of the same node.
[[nodiscard]] bool shares_node(const pe& with, std::uint32_t other) noexcept;

}  // namespace orrery::scheduler
