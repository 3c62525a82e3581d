// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace orrery::detail {

/// The values of spread() that a PE knows, by the PE that made them and its number for them.
struct spread_map : std::map<std::pair<std::uint32_t, std::uint64_t>, std::shared_ptr<const void>> {};

}  // namespace orrery::detail
