// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spread.hpp>

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/detail/spread_map.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>

#include <fmt/format.h>

namespace orrery::detail {

// Handles outlive runs, in variables of the program, and are read by any thread: so this is no
// part of a node.
constinit std::atomic<std::uint64_t> spread_epoch{1};

spread_value find_spread(pe& self, const spread_name& name) {
  const auto& all = local_waits::of(self).spread_values();
  const auto at = all.find({name.pe, name.number});
  return at != all.end() ? at->second : nullptr;
}

void keep_spread(pe& self, const spread_name& name, spread_value value) {
  local_waits::of(self).spread_values().emplace(std::pair{name.pe, name.number}, std::move(value));
}

spread_name new_spread(pe& self) { return {self.id(), local_waits::of(self).next_spread()}; }

std::uint32_t first_of_node(pe& self) noexcept { return self.owner().first_pe(); }

std::vector<std::uint32_t> other_nodes(pe& self) {
  std::vector<std::uint32_t> firsts;
  std::uint32_t before = self.owner().index();
  for (const std::uint32_t p : program_pes()) {
    const std::uint32_t n = self.owner().node_of(p);
    if (n != before && n != self.owner().index()) firsts.push_back(p);
    before = n;
  }
  return firsts;
}

void throw_no_spread(const char* why) {
  throw usage_error(errc::bad_argument, fmt::format("spread: there is no such value: {}", why));
}

}  // namespace orrery::detail
