// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/world_session.hpp>

#include <orrery/scheduler/counters.hpp>
#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/vocabulary.hpp>
#include <orrery/transport/mpi/launcher.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {
namespace {

using transport::node_launcher;
using transport::shm_world;

constinit bool served = false;

[[noreturn]] void fail(const transport::transport_error& e) {
  throw world_error(errc::world_no_transport, verbatim, e.message);
}

std::chrono::milliseconds startup_limit(const options& o) {
  return std::chrono::ceil<std::chrono::milliseconds>(o.startup_timeout);
}

transport::world_config world_config_of(const options& o, const args& arguments,
                                        const scheduler::own_vocabulary& words) {
  transport::world_config config;
  config.words = &words.all();
  config.build_id = words.all().id;
  config.program =
      arguments.empty() ? program_invocation_short_name : std::filesystem::path(arguments[0]).filename().string();
  config.memory_limit = o.memory;
  config.rendezvous_dir = o.shm_dir;
  return config;
}

// The ranks that a launcher of MPI programs has started. Nothing if none has, or for one rank,
// which needs no MPI.
std::optional<transport::mpi_launch> launch_of(const options& o) {
  if (o.mpi == "off") return std::nullopt;
  auto launch = transport::find_mpi_launch();
  if (launch && launch->ranks == 1) return std::nullopt;
  return launch;
}

world_session open_machines(const transport::mpi_launch& launch, const options& o, const args& arguments) {
  if (o.nodes > 1)
    throw world_error(errc::world_bad_setting, verbatim,
                      fmt::format("{} is set, so MPI has started the nodes of this world: leave out --orrery-nodes, or "
                                  "say --orrery-mpi=off",
                                  launch.variable));
  const scheduler::own_vocabulary words;
  transport::mpi_config config;
  config.node = world_config_of(o, arguments, words);
  config.node.pe_count = o.pes;
  config.name = o.world;
  config.ring_bytes = o.ring;
  config.library = o.mpi == "auto" ? std::string{} : o.mpi;
  config.machine_ranks = o.machine_ranks;
  config.jitter = o.machine_jitter;
  config.piece = o.piece;
  config.traced = !o.trace.empty();
  config.patience = o.node_timeout;
  config.startup = o.startup_timeout;
  world_session s;
  auto world = transport::mpi_world::start(launch, config);
  if (!world) fail(world.error());
  transport::forget_mpi_launch();
  s.machines = std::move(*world);
  s.launched = served = !s.machines->is_first();
  scheduler::number_handlers(s.machines->word_numbers());
  return s;
}

pe_counters count_of(const transport::world& world, std::uint32_t pe) {
  std::array<std::uint64_t, scheduler::published_words> words;
  std::ranges::transform(world.counters(pe).first<scheduler::published_words>(), words.begin(),
                         [](const auto& w) { return w.load(std::memory_order_acquire); });
  return scheduler::decode_counters(words, transport::now_ns());
}

}  // namespace

bool has_served() noexcept { return served; }

world_session open_world(const scheduler::node_settings& settings, const options& o, const args& arguments) {
  world_session s;
  transport::enable_asymmetric_fences();  // with more threads the kernel takes 13 ms for it
  auto inherited = transport::take_inherited_world();
  if (!inherited) fail(inherited.error());
  s.launched = served = inherited->has_value();
  if (!s.launched)
    if (const auto launch = launch_of(o)) return open_machines(*launch, o, arguments);
  if (const auto missed = transport::missed_launch(); missed && !s.launched && o.mpi != "off" && !o.quiet)
    std::fputs(fmt::format("orrery: {}\n", *missed).c_str(), stderr);
  // Programs that are started from here are no ranks either.
  if (o.mpi == "off") transport::forget_mpi_launch();
  if (!s.launched && o.nodes <= 1 && o.world.empty()) return s;
  const scheduler::own_vocabulary words;
  transport::world_config config = world_config_of(o, arguments, words);
  config.pe_count =
      settings.pes != 0 ? settings.pes : std::max(1U, scheduler::available_cores() / std::max(1U, o.nodes));
  config.nodes = std::max(1U, o.nodes);
  auto world = s.launched         ? shm_world::join_inherited((*inherited)->fd, (*inherited)->node, config)
               : !o.world.empty() ? shm_world::create_or_join(o.world, config)
                                  : shm_world::create(config);
  if (!world) fail(world.error());
  s.world = std::move(*world);
  scheduler::number_handlers(s.world->word_numbers());
  if (!s.launched && s.world->reserved_nodes() > 1) {
    auto launcher = node_launcher::start(*s.world, arguments, startup_limit(o));
    if (!launcher) fail(launcher.error());
    s.launcher = std::move(*launcher);
  }
  return s;
}

void wait_for_nodes(world_session& s, const options& o) {
  if (!s.launcher) return;
  auto up = s.launcher->wait_for_nodes(startup_limit(o));
  if (up) return;
  // those that are there are to end with it, not to tell of each other's end
  s.world->leave();
  fail(up.error());
}

int end_world(world_session& s, int result) {
  constexpr auto patience = std::chrono::seconds(10);
  if (!s.launcher) return result;
  bool failed = false;
  for (const auto& e : s.launcher->wait_for_exit(patience)) {
    if (e.ok() || std::ranges::find(s.announced, e.node) != s.announced.end()) continue;
    std::fputs(fmt::format("orrery: node {} {}\n", e.node, e.how).c_str(), stderr);
    failed |= !e.killed || e.value != SIGKILL;
  }
  if (const auto left = s.launcher->running(); left != 0) {
    std::fputs(fmt::format("orrery: {} node{} did not end within {} s and {} killed\n", left, left == 1 ? "" : "s",
                           patience.count(), left == 1 ? "was" : "were")
                   .c_str(),
               stderr);
    failed = true;
  }
  return result == 0 && failed ? 1 : result;
}

void count_failures_of_launched(world_session& s) {
  if (s.machines != nullptr && s.machines->is_first())
    for (std::uint32_t pe = s.machines->pe_count(); pe < s.machines->pe_limit(); ++pe)
      s.failed_posts += count_of(*s.machines, pe).failed_posts;
  if (s.world == nullptr || !s.launcher) return;
  const std::uint32_t own = s.world->node();
  for (std::uint32_t place = 0; place < s.world->pe_limit(); ++place) {
    const std::uint32_t pe = s.world->pe_at(place);
    const std::uint32_t n = s.world->pe_node(pe);
    if (n == transport::no_node || n == own || s.world->info(n).launcher != own) continue;
    s.failed_posts += count_of(*s.world, pe).failed_posts;
  }
}

}  // namespace orrery::detail
