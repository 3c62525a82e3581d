// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/options.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/tracing.hpp>
#include <orrery/scheduler/node.hpp>

#include <orrery/transport/shm/launch.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

namespace orrery {

namespace detail {
void note_class(pe& self, const scheduler::class_info& cls) noexcept {
  if (cls.reentrant) self.owner().set_reentrant();
}
}  // namespace detail

std::uint32_t this_pe() { return detail::here_pe().id(); }
std::uint32_t this_node() { return detail::here_pe().owner().index(); }
std::uint32_t this_machine() { return 0; }
std::uint32_t world_pes() { return detail::here_pe().owner().world_pes(); }
std::uint32_t world_nodes() { return detail::here_pe().owner().world_nodes(); }
std::uint32_t world_machines() { return 1; }

void sleep_for(time_limit d) {
  detail::pe& self = detail::here_pe();
  self.require_process();
  (void)self.park_until(detail::deadline_after(d));
  if (self.refusing()) throw stopped("sleep_for");
}

std::vector<std::uint32_t> reachable_pes() {
  const scheduler::node& n = detail::here_pe().owner();
  std::vector<std::uint32_t> pes;
  for (std::uint32_t pe = 0; pe < n.world_pes(); ++pe)
    if (n.reachable(pe)) pes.push_back(pe);
  return pes;
}

void quiescence() { detail::here_pe().wait_for_quiescence(); }

void yield() {
  detail::pe& self = detail::here_pe();
  self.require_process();
  self.yield();
}

std::uint32_t placement::resolve() const {
  detail::pe& self = detail::here_pe();
  scheduler::node& n = self.owner();
  switch (what) {
    case kind::here:
      return self.id();
    case kind::pe:
      if (index >= n.world_pes())
        throw usage_error(errc::no_such_place, fmt::format("pe({}) in a world of {} PEs", index, n.world_pes()));
      return index;
    case kind::nowhere:
      throw usage_error(errc::null_pointer, "near(p)");
    case kind::node: {
      const auto [first, count] = n.pes_of(index);
      return first + n.turn() % count;
    }
    case kind::machine:
      if (index != 0) throw usage_error(errc::no_such_place, fmt::format("machine({}) in a world of 1 machine", index));
      [[fallthrough]];
    default:
      for (std::uint32_t tries = n.world_pes(); tries > 0; --tries)
        if (const std::uint32_t pe = n.turn() % n.world_pes(); n.reachable(pe)) return pe;
      return self.id();
  }
}

namespace {

using transport::node_launcher;
using transport::shm_world;

// One run of the runtime: what has to be torn down in the reverse order.
struct session {
  std::unique_ptr<shm_world> world;
  std::unique_ptr<node_launcher> launcher;
  bool launched = false;  // by another node: runs no main
};

[[noreturn]] void fail(const transport::transport_error& e) {
  throw world_error(errc::world_no_transport, verbatim, e.message);
}

session open_world(scheduler::node_settings& settings, const options& o, const args& arguments, std::uint64_t build) {
  session s;
  auto inherited = transport::take_inherited_world();
  if (!inherited) fail(inherited.error());
  s.launched = inherited->has_value();
  if (!s.launched && o.nodes <= 1 && o.world.empty()) return s;
  transport::world_config config;
  config.pe_count =
      settings.pes != 0 ? settings.pes : std::max(1U, scheduler::available_cores() / std::max(1U, o.nodes));
  config.nodes = std::max(1U, o.nodes);
  config.build_id = build;
  config.program = arguments.empty() ? "?" : std::filesystem::path(arguments[0]).filename().string();
  config.memory_limit = o.memory;
  config.rendezvous_dir = o.shm_dir;
  auto world = s.launched         ? shm_world::join_inherited((*inherited)->fd, (*inherited)->node, config)
               : !o.world.empty() ? shm_world::create_or_join(o.world, config)
                                  : shm_world::create(config);
  if (!world) fail(world.error());
  s.world = std::move(*world);
  if (!s.launched && s.world->reserved_nodes() > 1) {
    auto launcher = node_launcher::start(*s.world, arguments);
    if (!launcher) fail(launcher.error());
    s.launcher = std::move(*launcher);
  }
  return s;
}

int end_world(session& s, int result) {
  constexpr auto patience = std::chrono::seconds(10);
  if (s.launcher) {
    for (const auto& e : s.launcher->wait_for_exit(patience)) {
      if (e.ok()) continue;
      std::fputs(fmt::format("orrery: node {} {}\n", e.node, e.how).c_str(), stderr);
    }
    if (const auto left = s.launcher->running(); left != 0)
      std::fputs(
          fmt::format("orrery: {} nodes did not end within {} s and were killed\n", left, patience.count()).c_str(),
          stderr);
  }
  return result;
}

int run_checked(const args& all, const std::function<int(args)>& main) {
  const std::uint64_t build = scheduler::freeze_handlers();
  const auto [o, rest, warnings] = parse_options(all);
  if (o.help) {
    std::fputs(options_help(all.empty() ? "program" : all[0]).c_str(), stdout);
    return 0;
  }
  if (!o.quiet)
    for (const std::string& w : warnings) std::fputs(fmt::format("orrery: {}\n", w).c_str(), stderr);
  scheduler::node_settings settings = node_settings_of(o);
  detail::name_repository repository;
  settings.layer = &repository;
  session s = open_world(settings, o, all, build);
  int result = s.launched ? 0 : 1;
  {
    scheduler::node n(settings, s.world.get());
    if (s.launcher) {
      auto up = s.launcher->wait_for_nodes(std::chrono::ceil<std::chrono::milliseconds>(o.startup_timeout));
      if (!up) fail(up.error());
    }
    tracing trace(o, n, rest.empty() ? std::string{} : rest[0]);
    n.run([&](scheduler::pe& first) {
      if (s.launched) return;
      detail::start_function(first, [&] {
        try {
          result = main(rest);
        } catch (const std::exception& e) {
          if (n.is_dead()) return;  // that has been said
          std::fputs(fmt::format("orrery: the main function ended with an exception: {}\n", e.what()).c_str(), stderr);
        } catch (...) {
          std::fputs("orrery: the main function ended with an exception that is not a std::exception\n", stderr);
        }
        if (s.world != nullptr) s.world->leave();  // the first node's leave ends the world
        n.stop();
      });
    });
    trace.write();
  }
  if (s.world != nullptr) s.world->leave();
  result = end_world(s, result);
  if (s.world != nullptr) tracing::merge(o, *s.world);
  return result;
}

}  // namespace

int run(int argc, char** argv, const std::function<int(args)>& main) {
  try {
    return run_checked(args(argv, argv + argc), main);
  } catch (const std::exception& e) {
    std::fputs(fmt::format("orrery: {}\n", e.what()).c_str(), stderr);
    return 1;
  }
}

}  // namespace orrery
