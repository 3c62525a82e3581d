// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/envelope.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::scheduler {

struct inbound;
class pe;

/// Sends the beginning of a message back to its sender, as this program has no handler of that
/// number. Never parks.
void return_unknown(pe& self, std::uint32_t source_pe, std::uint64_t handler, std::uint32_t slot, std::uint64_t reply,
                    std::span<const std::byte> payload) noexcept;

/// A message has come back that another program has no handler for: ends the call, or reports the
/// post.
void receive_unknown(pe& self, inbound& in, const wire::envelope& e, std::uint32_t bytes);

}  // namespace orrery::scheduler
