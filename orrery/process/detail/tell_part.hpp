// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/node.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

namespace orrery::detail {

/// Sends a message from one part of a group to another. Never parks. It goes to a fresh slot rather
/// than to the part, which may be gone: then nobody needs the message.
template <auto F, class... A>
void tell_part(pe& self, address part, const A&... args) noexcept {
  const scheduler::handler& h = told_handler<F>::instance;
  try {
    scheduler::outbound& c = self.links().control_outbound_to(part.pe);
    const auto room = [&] {
      if constexpr (has_fixed_wire_size<A...>) {
        return std::array<std::byte, wire_size<std::uint32_t, std::uint32_t, A...>()>{};
      } else {
        return std::vector<std::byte>(wire_size(part.slot, part.generation, args...));
      }
    };
    auto payload = room();
    orrery::writer w(payload);
    orrery::write(w, part.slot, part.generation, args...);
    self.links().send_control(c, wire::record_kind::message, wire::no_slot, 0, 0, payload.data(), payload.size(),
                              c.remote ? h.index : reinterpret_cast<std::uint64_t>(&h));
  } catch (const std::exception&) {  // its node is gone: the part hears of that in pes_lost
  }
}

}  // namespace orrery::detail
