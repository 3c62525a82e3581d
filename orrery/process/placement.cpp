// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/placement.hpp>

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/transport/world.hpp>

#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery {

namespace {
// The PEs of a machine in turn; those of a lost node only if it has no others: what is sent there
// says what has become of it.
std::uint32_t pe_of_machine(scheduler::node& n, std::uint32_t machine) {
  const std::uint32_t machines = world_machines();
  if (machine >= machines)
    throw usage_error(errc::no_such_place, fmt::format("machine({}) in a world of {} machine{}", machine, machines,
                                                       machines == 1 ? "" : "s"));
  std::vector<std::pair<std::uint32_t, std::uint32_t>> there;  // first PE and count of each node
  std::uint32_t pes = 0;
  std::uint32_t lost = n.first_pe();
  for (std::uint32_t place = 0; place < n.world_nodes(); ++place) {
    const std::uint32_t i = n.node_at(place);
    if (i == transport::no_node) continue;
    if (n.world() != nullptr && n.world()->machine_of(i) != machine) continue;
    // whoever joins is not there yet
    if (n.world() != nullptr && !n.world()->knows_node(i)) continue;
    const auto [first, count] = n.pes_of(i);
    if (count == 0) continue;
    lost = first;
    if (!n.takes_work(first)) continue;
    there.emplace_back(first, count);
    pes += count;
  }
  if (there.empty()) return lost;
  std::uint32_t left = n.turn() % pes;
  auto at = there.begin();
  for (; left >= at->second; ++at) left -= at->second;
  return at->first + left;
}
}  // namespace

std::uint32_t placement::resolve() const {
  detail::pe& self = detail::here_pe();
  scheduler::node& n = self.owner();
  switch (what) {
    case kind::here:
      return self.id();
    case kind::pe:
      if (!n.knows(index))
        throw usage_error(errc::no_such_place, fmt::format("pe({}) in a world of {} PEs", index, n.world_pes()));
      return index;
    case kind::nowhere:
      throw usage_error(errc::null_pointer, "near(p)");
    case kind::node: {
      const auto [first, count] = n.pes_of(index);
      // its number was reserved, but it never came
      if (count == 0) throw node_lost(fmt::format("node({})", index));
      return first + n.turn() % count;
    }
    case kind::machine:
      return pe_of_machine(n, index);
    default:
      for (std::uint32_t tries = n.world_pes(); tries > 0; --tries)
        if (const std::uint32_t pe = n.pe_at(n.turn() % n.world_pes()); n.takes_work(pe)) return pe;
      return self.id();
  }
}

}  // namespace orrery
