// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/internal/simulated_world.hpp>
#include <orrery/transport/sim/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <vector>

namespace orrery::detail {

namespace {

struct simulated_node {
  simulated_node(scheduler::simulator& s, std::uint32_t index, const scheduler::node_settings& settings,
                 membership_cache* cache)
      : world(s.universe(), index), names(cache), node(with(settings, names), &world) {
    s.add(node);
  }
  static scheduler::node_settings with(scheduler::node_settings s, name_repository& names) {
    s.layer = &names;
    return s;
  }
  transport::sim_world world;
  name_repository names;
  scheduler::node node;
};

}  // namespace

struct simulated_world::members {
  membership_cache cache;
  std::vector<wire::unique_ptr<simulated_node>> of;
};

simulated_world::simulated_world(const transport::sim_settings& what, const scheduler::node_settings& settings)
    : simulator_(what, settings.pe), members_(wire::make_unique<members>()) {
  scheduler::node_settings simulated = settings;
  simulated.pe = simulator_.settings_of_pes();
  if (simulated.pe.advise_for) simulated.pe.advise_for = what.net;
  for (std::uint32_t i = 0; i < what.all_nodes(); ++i)
    // what nodes know of each other differs where carriers tell them
    members_->of.push_back(
        wire::make_unique<simulated_node>(simulator_, i, simulated, what.carriers ? nullptr : &members_->cache));
}
simulated_world::~simulated_world() = default;

void simulated_world::leave() noexcept { members_->of.front()->world.leave(); }

}  // namespace orrery::detail
