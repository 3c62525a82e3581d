// SPDX-License-Identifier: Apache-2.0
// How much of a transfer is on its way at once, so that memory for messages stays bounded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::detail {

/// Elements of one request or answer, in bytes.
constexpr std::uint64_t transfer_piece_bytes = 512 << 10;

/// Requests, or messages of a scope, that one process has on their way.
constexpr std::size_t transfer_window = 16;

}  // namespace orrery::detail
