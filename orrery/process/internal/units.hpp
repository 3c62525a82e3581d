// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::detail {

/// Bytes, written like 4096, 64K or 2G; nothing if it is not so written.
[[nodiscard]] std::optional<std::uint64_t> to_size(const std::string& text);
/// Nanoseconds, written like 50us, 1ms or 2s, or 0.
[[nodiscard]] std::optional<std::uint64_t> to_time(const std::string& text);

}  // namespace orrery::detail
