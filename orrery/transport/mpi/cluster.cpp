// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/cluster.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace orrery::transport {

std::uint32_t cluster_map::node_of(std::uint32_t pe) const noexcept {
  if (pe >= pes()) return no_node;
  const auto next = std::ranges::upper_bound(nodes_, pe, {}, &place::first_pe);
  return static_cast<std::uint32_t>(next - nodes_.begin()) - 1;
}

std::uint32_t cluster_map::node_at_local(std::uint32_t local_node) const noexcept {
  for (std::uint32_t n = 0; n < nodes(); ++n)
    if (!is_far(n) && at(n).local_node == local_node) return n;
  return no_node;
}

std::vector<std::string> distinct_names(std::vector<std::string> hosts) {
  std::map<std::string, int> seen;
  for (std::string& host : hosts)
    if (const int n = ++seen[host]; n > 1) host += fmt::format("#{}", n);
  return hosts;
}

cluster_members::cluster_members(std::uint32_t nodes, std::uint32_t own)
    : own_(own), states_(nodes), world_(static_cast<std::uint32_t>(world_state::running)) {
  for (auto& s : states_) s.store(static_cast<std::uint32_t>(node_state::alive), std::memory_order_relaxed);
}

bool cluster_members::change(std::uint32_t node, node_state to, std::string_view how) {
  const std::scoped_lock lock{mutex_};
  const node_state before = state(node);
  if (before == node_state::dead || before == node_state::left || before == to) return false;
  // SYNC: release, with state, gone and epoch
  states_[node].store(static_cast<std::uint32_t>(to), std::memory_order_release);
  if (to == node_state::dead) lost_.store(true, std::memory_order_relaxed);
  if (to == node_state::dead || to == node_state::left) gone_.fetch_add(1, std::memory_order_acq_rel);
  if (node == 0 && world() == world_state::running)
    world_.store(static_cast<std::uint32_t>(to == node_state::dead ? world_state::lost : world_state::ending),
                 std::memory_order_release);
  epoch_.fetch_add(1, std::memory_order_acq_rel);
  if (node != own_) events_.push_back({node, to, std::string(how)});
  return true;
}

void cluster_members::tell(membership_observer& observer) {
  std::vector<event> events;
  {
    const std::scoped_lock lock{mutex_};
    events.swap(events_);
  }
  for (const event& e : events) {
    switch (e.state) {
      case node_state::leaving:
        observer.node_leaving(e.node);
        if (e.node == 0) observer.world_ending();
        break;
      case node_state::left:
        observer.node_left(e.node);
        if (e.node == 0) observer.world_ending();
        break;
      default:
        observer.node_lost(e.node, e.how);
        if (e.node == 0) observer.world_lost(e.how);
        break;
    }
  }
}

}  // namespace orrery::transport
