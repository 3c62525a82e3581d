// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/at_end.hpp>
#include <orrery/process/runtime.hpp>

#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/detail/tracing.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/internal/simulated_world.hpp>
#include <orrery/process/options.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/roles.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/submit.hpp>
#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/vocabulary.hpp>
#include <orrery/scheduler/wait_report.hpp>

#include <orrery/transport/mpi/launcher.hpp>
#include <orrery/transport/mpi/world.hpp>
#include <orrery/transport/shm/launch.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <system_error>

#include <fmt/format.h>

namespace orrery {

namespace detail {
void note_class(pe& self, const scheduler::class_info& cls) noexcept {
  if (cls.reentrant) self.owner().set_reentrant();
}
}  // namespace detail

std::uint32_t this_pe() { return detail::here_pe().id(); }
std::uint32_t this_node() { return detail::here_pe().owner().index(); }
std::uint32_t this_machine() {
  const scheduler::node& n = detail::here_pe().owner();
  return n.world() != nullptr ? n.world()->machine_of(n.index()) : 0;
}
std::uint32_t world_pes() { return detail::here_pe().owner().world_pes(); }
std::uint32_t world_nodes() { return detail::here_pe().owner().world_nodes(); }
std::uint32_t world_machines() {
  const scheduler::node& n = detail::here_pe().owner();
  return n.world() != nullptr ? n.world()->machines() : 1;
}

void sleep_for(time_limit d) {
  detail::pe& self = detail::here_pe();
  self.require_process();
  (void)self.park_until(detail::deadline_after(d));
  if (self.refusing()) self.shutdown().refuse("sleep_for");
}

std::vector<std::uint32_t> reachable_pes() {
  const scheduler::node& n = detail::here_pe().owner();
  std::vector<std::uint32_t> pes;
  for (std::uint32_t place = 0; place < n.world_pes(); ++place)
    if (const std::uint32_t pe = n.pe_at(place); n.takes_work(pe)) pes.push_back(pe);
  std::ranges::sort(pes);  // numbers of places that were used again are larger
  return pes;
}

std::vector<std::uint32_t> program_pes() {
  std::vector<std::uint32_t> pes = reachable_pes();
  const scheduler::node& n = detail::here_pe().owner();
  if (const transport::world* w = n.world(); w != nullptr && w->is_open()) {
    const std::uint32_t own = w->launch_of(w->node());
    std::erase_if(pes, [&](std::uint32_t pe) { return w->launch_of(w->pe_node(pe)) != own; });
  }
  return pes;
}

void quiescence() { detail::here_pe().quiescence().wait(); }

std::chrono::nanoseconds now() { return std::chrono::nanoseconds(transport::now_ns()); }

void compute(time_limit d) {
  detail::pe& self = detail::here_pe();
  if (self.simulated() != nullptr) self.simulated()->by->spend(self, std::max<std::int64_t>(d.time().count(), 0));
}

void carry(std::uint64_t bytes) {
  if (scheduler::simulated_pe* s = detail::here_pe().simulated()) s->carried += bytes;
}

void yield() {
  detail::pe& self = detail::here_pe();
  self.require_process();
  self.yield();
}

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

namespace {

// Set in a node that another one started, when it has joined: if it started nodes of its own for
// what follows in main, and those did, too, it would never end.
constinit bool has_served = false;

using transport::node_launcher;
using transport::shm_world;

// One run of the runtime: what has to be torn down in the reverse order.
struct session {
  wire::unique_ptr<shm_world> world;
  wire::unique_ptr<transport::mpi_world> machines;  // in its place where MPI starts the nodes
  wire::unique_ptr<node_launcher> launcher;
  bool launched = false;  // by another node, or a rank that is not the first: runs no main

  [[nodiscard]] transport::world* any() const noexcept {
    return machines != nullptr ? static_cast<transport::world*>(machines.get()) : world.get();
  }
  std::vector<std::uint32_t> announced;  // nodes that are known to be lost
  std::uint64_t failed_posts = 0;
};

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

session open_machines(const transport::mpi_launch& launch, const options& o, const args& arguments) {
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
  session s;
  auto world = transport::mpi_world::start(launch, config);
  if (!world) fail(world.error());
  transport::forget_mpi_launch();
  s.machines = std::move(*world);
  s.launched = has_served = !s.machines->is_first();
  scheduler::number_handlers(s.machines->word_numbers());
  return s;
}

session open_world(scheduler::node_settings& settings, const options& o, const args& arguments) {
  session s;
  transport::enable_asymmetric_fences();  // with more threads the kernel takes 13 ms for it
  auto inherited = transport::take_inherited_world();
  if (!inherited) fail(inherited.error());
  s.launched = has_served = inherited->has_value();
  if (!s.launched)
    if (const auto launch = launch_of(o)) return open_machines(*launch, o, arguments);
  if (const auto missed = transport::missed_launch(); missed && !s.launched && o.mpi != "off" && !o.quiet)
    std::fputs(fmt::format("orrery: {}\n", *missed).c_str(), stderr);
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

// Waits until the nodes that this one has started have ended. A node that did not end as it should
// turns main's 0 into 1, as no process is left to be told; a node that somebody killed does not.
int end_world(session& s, int result) {
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

pe_counters count_of(const transport::world& world, std::uint32_t pe) {
  std::array<std::uint64_t, scheduler::published_words> words;
  std::ranges::transform(world.counters(pe).first<scheduler::published_words>(), words.begin(),
                         [](const auto& w) { return w.load(std::memory_order_acquire); });
  return scheduler::decode_counters(words, transport::now_ns());
}

// The counters of the nodes that this one has started. They have ended; their counters outlive
// them.
void count_failures_of_launched(session& s) {
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

// A program has not done its work if messages failed whose failure nobody has seen.
int exit_code(int result, std::uint64_t failed_posts, const options& o) {
  if (result != 0 || failed_posts == 0 || o.failed_exit == 0) return result;
  std::fputs(fmt::format("orrery: {} one-way message{} failed, so the exit code is {} (--orrery-failed-exit sets it)\n",
                         failed_posts, failed_posts == 1 ? "" : "s", o.failed_exit)
                 .c_str(),
             stderr);
  return static_cast<int>(o.failed_exit);
}

// The world ends when it has executed what was sent, and has heard of failures; that of another
// program goes on by itself.
void settle(scheduler::pe& first) noexcept {
  constexpr std::int64_t limit_ns = 200'000'000;
  const scheduler::node& n = first.owner();
  if (n.is_dead() || (n.world() != nullptr && n.index() != 0)) return;
  try {
    first.quiescence().settle(limit_ns);
  } catch (const std::exception&) {  // no memory: then it ends at once
  }
}

// The main function as a process of the first PE. When it has ended, `leave` ends the world, and
// the node stops.
void start_main(scheduler::pe& first, const std::function<int()>& main, const std::function<void()>& leave,
                int& result) {
  detail::start_function(first, [&first, &main, &leave, &result] {
    scheduler::node& n = first.owner();
    try {
      result = main();
      if (!scheduler::is_forked_child) result = detail::end_main(result);
    } catch (const std::exception& e) {
      if (scheduler::is_forked_child) scheduler::end_forked_child();
      if (n.is_dead()) return;  // that has been said
      std::fputs(fmt::format("orrery: the main function ended with an exception: {}\n", e.what()).c_str(), stderr);
    } catch (...) {
      std::fputs(fmt::format("orrery: the main function ended with an exception: {}\n",
                             scheduler::text_of(std::current_exception()))
                     .c_str(),
                 stderr);
    }
    // it must not leave in its parent's name
    if (scheduler::is_forked_child) scheduler::end_forked_child();
    settle(first);
    leave();
    n.stop();
  });
}

// The role that a node without a main runs by itself. The end of the world ends it, too.
void start_role(scheduler::pe& first, const std::function<void()>& role) {
  detail::start_function(first, [&first, &role] {
    try {
      role();
    } catch (const stopped&) {
    } catch (const std::exception& e) {
      if (scheduler::is_forked_child) scheduler::end_forked_child();
      if (first.owner().is_dead()) return;  // that has been said
      std::fputs(
          fmt::format("orrery: the role of node {} ended with an exception: {}\n", first.owner().index(), e.what())
              .c_str(),
          stderr);
    }
    if (scheduler::is_forked_child) scheduler::end_forked_child();
  });
}

void check_role(const options& o, const roles& with) {
  if (o.role.empty()) return;
  if (!o.sim.empty())
    throw world_error(errc::world_bad_setting, verbatim,
                      "--orrery-role does not go together with --orrery-sim: simulated nodes run no roles");
  if (with.contains(o.role)) return;
  std::vector<std::string> names;
  for (const auto& [name, role] : with) names.push_back(name);
  throw world_error(errc::world_bad_setting, verbatim,
                    names.empty() ? fmt::format("--orrery-role={}: this program has no roles", o.role)
                                  : fmt::format("--orrery-role={}: the roles of this program are {}", o.role,
                                                fmt::join(names, ", ")));
}

int run_simulated(const scheduler::node_settings& settings, const options& o, const std::function<int()>& main) {
  const transport::sim_settings sim = parse_simulation(o.sim);
  detail::simulated_world world(sim, settings);
  int result = 1;
  const std::function<void()> leave = [&] { world.leave(); };
  world.simulator().run([&](scheduler::pe& first) { start_main(first, main, leave, result); });
  if (!o.quiet) std::fputs((describe(sim, world.simulator().report()) + "\n").c_str(), stderr);
  const bool dead = world.simulator().at(0).owner().is_dead();
  if (dead && result == 0) result = 1;
  std::uint64_t failed_posts = 0;
  for (std::uint32_t i = 0; i < sim.all_pes(); ++i) failed_posts += world.simulator().at(i).count().failed_posts;
  return exit_code(result, failed_posts, o);
}

// Runs this node until its world ends. Returns what main has, 0 in nodes that were started for it.
int run_node(session& s, const scheduler::node_settings& settings, const options& o, const args& rest,
             const std::function<int(args)>& main, const roles& with, bool& dead) {
  int result = s.launched ? 0 : 1;
  scheduler::node n(settings, s.any());
  if (s.launcher) {
    if (auto up = s.launcher->wait_for_nodes(startup_limit(o)); !up) {
      // those that are there are to end with it, not to tell of each other's end
      s.world->leave();
      fail(up.error());
    }
  }
  tracing trace(o, n, rest.empty() ? std::string{} : rest[0], s.machines.get());
  const std::function<int()> own_main = [&] { return main(rest); };
  const std::function<void()> own_role = [&] { with.at(o.role)(rest); };
  const std::function<void()> leave = [&] {
    if (s.any() != nullptr) s.any()->begin_leave();  // the first node's ends the world
  };
  const detail::open_entrance entrance(n);
  n.run([&](scheduler::pe& first) {
    if (!s.launched) start_main(first, own_main, leave, result);
    if (s.launched && !o.role.empty()) start_role(first, own_role);
  });
  trace.write();
  dead = n.is_dead();
  s.failed_posts = n.failed_posts();
  if (s.launcher)
    for (std::uint32_t place = 0; place < n.world_nodes(); ++place)
      if (const std::uint32_t i = n.node_at(place); i != transport::no_node && n.has_announced(i))
        s.announced.push_back(i);
  return result;
}

int run_checked(const args& all, const std::function<int(args)>& main, const roles& with) {
  if (has_served) return 0;
  scheduler::freeze_handlers();
  scheduler::number_handlers({});  // an earlier run may have been part of a world
  const auto [o, rest, warnings] = parse_options(all);
  if (o.help) {
    std::fputs(options_help(all.empty() ? "program" : all[0]).c_str(), stdout);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
    throw std::system_error(errno, std::generic_category(), "the help cannot be printed");
  }
  if (!o.quiet)
    for (const std::string& w : warnings) std::fputs(fmt::format("orrery: {}\n", w).c_str(), stderr);
  check_role(o, with);
  scheduler::send_through_wire(o.serialize);
  scheduler::node_settings settings = node_settings_of(o);
  if (!o.sim.empty() && (o.pes != 0 || o.nodes > 1 || !o.world.empty() || !o.trace.empty()))
    throw world_error(
        errc::world_bad_setting, verbatim,
        "--orrery-sim does not go together with --orrery-pes, --orrery-nodes, --orrery-world and --orrery-trace: leave one "
        "out; the nodes and PEs of a simulated world are in its list (machines=4,nodes=2,pes=8)");
  if (!o.sim.empty()) return run_simulated(settings, o, [&main, &rest] { return main(rest); });
  detail::name_repository repository;
  settings.layer = &repository;
  session s = open_world(settings, o, all);
  settings.ends_are_reported = s.machines == nullptr;
  if (s.launched) settings.launcher = s.machines != nullptr ? 0 : s.world->info(s.world->node()).launcher;
  bool dead = false;
  int result = run_node(s, settings, o, rest, main, with, dead);
  // Counters of nodes that this one has started lie in the tables until this node leaves, unless it
  // ends the world.
  const bool leaves_last = s.launcher && !s.world->is_first();
  if (s.any() != nullptr && !leaves_last) s.any()->leave();
  // a main that takes no notice of it has not done what it was to do
  if (dead && result == 0) result = 1;
  if (leaves_last) s.world->begin_leave();
  result = end_world(s, result);
  count_failures_of_launched(s);
  if (leaves_last) s.world->leave();
  if (!s.launched) result = exit_code(result, s.failed_posts, o);
  if (s.world != nullptr && s.world->is_first()) tracing::merge(o, s.world->nonce(), s.world->node_limit());
  if (s.machines != nullptr && s.machines->is_first()) {
    s.machines->take_parts({});
    tracing::merge(o, s.machines->number(), s.machines->node_limit());
  }
  return result;
}

}  // namespace

int detail::run(int argc, char** argv, main_function main) {
  return orrery::run(argc, argv, [main](args rest) { return main.call(main.at, std::move(rest)); }, roles{});
}

int run(int argc, char** argv, const std::function<int(args)>& main, const roles& with) {
  if (scheduler::current_pe != nullptr) throw usage_error(errc::already_running, "run");
  if (scheduler::is_forked_child) detail::throw_not_running();
  try {
    return run_checked(args(argv, argv + argc), main, with);
  } catch (const std::exception& e) {
    std::fputs(fmt::format("orrery: {}\n", e.what()).c_str(), stderr);
    transport::let_launcher_hear();
    return 1;
  }
}

}  // namespace orrery
