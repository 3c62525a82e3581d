// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/simulated_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/submit.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

namespace orrery::testing {
namespace {

void prepare_handlers() {
  scheduler::freeze_handlers();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (std::getenv("ORRERY_TEST_SERIALIZE") != nullptr) scheduler::send_through_wire(true);
}

template <class End>
void start_body(scheduler::pe& first, test_body body, End end) {
  detail::start_function(first, [body, end] {
    try {
      body();
    } catch (const std::exception& e) {
      ADD_FAILURE() << "the main process ended with an exception: " << e.what();
    }
    end();
  });
}

// Each node that is to be lost is cut off instead: it and the first one do not hear each other, in
// one direction or in both.
void cut_off_in_place_of_losses(transport::sim_settings& sim) {
  if (sim.losses.empty()) return;
  const auto way = static_cast<std::int64_t>(sim.net.latency) + sim.jitter_ns;
  sim.silence_ns = std::max<std::int64_t>(100'000, 20 * way);
  std::uint64_t kind = sim.seed;
  for (const transport::sim_settings::loss& l : std::exchange(sim.losses, {})) {
    if (l.node == 0) {
      sim.losses.push_back(l);
      continue;
    }
    if (kind % 3 != 0) sim.cuts.push_back({0, l.node, l.at_ns});
    if (kind % 3 != 1) sim.cuts.push_back({l.node, 0, l.at_ns});
    ++kind;
  }
}

}  // namespace

statistics in_simulation(const transport::sim_settings& what, const scheduler::node_settings& settings, test_body body,
                         scheduler::sim_report* report) {
  prepare_handlers();
  transport::sim_settings sim = what;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (std::getenv("ORRERY_TEST_CARRIERS") != nullptr) sim.carriers = true;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
  if (sim.carriers && std::getenv("ORRERY_TEST_CUTS") != nullptr) cut_off_in_place_of_losses(sim);
  statistics counts;
  detail::simulated_world world(sim, settings);
  world.simulator().run([&](scheduler::pe& first) {
    start_body(first, body, [&world] {
      world.leave();
      world.simulator().at(0).owner().stop();
    });
  });
  for (std::uint32_t i = 0; i < sim.all_pes(); ++i) counts.push_back(world.simulator().at(i).count());
  if (report != nullptr) *report = world.simulator().report();
  return counts;
}

statistics in_simulation(std::string_view sim, test_body body, scheduler::sim_report* report) {
  return in_simulation(parse_simulation(sim), {}, body, report);
}

statistics in_world(scheduler::node_settings settings, test_body body) {
  prepare_handlers();
  if (const char* spec = std::getenv("ORRERY_TEST_SIM")) {  // NOLINT(concurrency-mt-unsafe): nobody sets it
    transport::sim_settings sim = parse_simulation(spec);
    const std::uint32_t pes = settings.pes != 0 ? settings.pes : 2;
    (sim.machines > 1 ? sim.machines : sim.pes) = pes;
    return in_simulation(sim, settings, body);
  }
  statistics counts;
  scheduler::node world(settings, nullptr);
  const detail::open_entrance entrance(world);
  world.run([&](scheduler::pe& first) { start_body(first, body, [&] { world.stop(); }); });
  for (std::uint32_t i = 0; i < world.pe_count(); ++i) counts.push_back(world.local(i).count());
  return counts;
}

statistics in_world(std::uint32_t pes, test_body body) {
  scheduler::node_settings settings;
  settings.pes = pes;
  return in_world(settings, body);
}

}  // namespace orrery::testing
