// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace orrery::transport {

/// Memory of messages, more than a page of it, begins so many bytes behind the beginning of a page.
///
/// Problem: some copies are slow where the destination lies some bytes behind the source, both
/// modulo 4 KiB (wire::copies_slowly). Data of users often begins with a page, or 16 bytes behind,
/// where malloc puts it. In a socket's memory it begins behind the heads of a message library, some
/// ten bytes, and the kernel copies. So memory of messages begins farther behind than both.
inline constexpr std::size_t page_lead = 256;
inline constexpr std::size_t page_bytes = 4096;

}  // namespace orrery::transport
