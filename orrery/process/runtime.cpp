// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/at_end.hpp>
#include <orrery/process/runtime.hpp>

#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/detail/tracing.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/internal/simulated_world.hpp>
#include <orrery/process/internal/world_session.hpp>
#include <orrery/process/options.hpp>
#include <orrery/process/placement.hpp>
#include <orrery/process/roles.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/process/submit.hpp>
#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/simulator.hpp>
#include <orrery/scheduler/wait_report.hpp>

#include <orrery/transport/mpi/world.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
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
  if (const transport::world* w = n.world(); w != nullptr && w->has_other_programs()) {
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
      detail::open_names(first);
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

void say_role_failed(scheduler::pe& first, std::string_view why) {
  if (scheduler::is_forked_child) scheduler::end_forked_child();
  if (first.owner().is_dead()) return;  // that has been said
  std::fputs(
      fmt::format("orrery: the role of node {} ended with an exception: {}\n", first.owner().index(), why).c_str(),
      stderr);
}

// The role that a node without a main runs by itself. The end of the world ends it, too.
void start_role(scheduler::pe& first, const std::function<void()>& role) {
  detail::start_function(first, [&first, &role] {
    try {
      role();
    } catch (const stopped&) {
    } catch (const std::exception& e) {
      say_role_failed(first, e.what());
    } catch (...) {
      say_role_failed(first, scheduler::text_of(std::current_exception()));
    }
    if (scheduler::is_forked_child) scheduler::end_forked_child();
  });
}

std::vector<std::string> names_of(const roles& with) {
  std::vector<std::string> names;
  for (const auto& [name, role] : with) names.push_back(name);
  return names;
}

void check_role(const options& o, const roles& with) {
  if (o.role.empty()) return;
  if (!o.sim.empty())
    throw world_error(errc::world_bad_setting, verbatim,
                      "--orrery-role does not go together with --orrery-sim: simulated nodes run no roles");
  if (with.contains(o.role)) return;
  const std::vector<std::string> names = names_of(with);
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
int run_node(detail::world_session& s, const scheduler::node_settings& settings, const options& o, const args& rest,
             const std::function<int(args)>& main, const roles& with, bool& dead) {
  int result = s.launched ? 0 : 1;
  scheduler::node n(settings, s.any());
  detail::wait_for_nodes(s, o);
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
  if (detail::has_served()) return 0;
  scheduler::freeze_handlers();
  scheduler::number_handlers({});  // an earlier run may have been part of a world
  const auto [o, rest, warnings] = parse_options(all, names_of(with));
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
        "--orrery-sim does not go together with --orrery-pes, --orrery-nodes, --orrery-world and --orrery-trace (ORRERY_PES "
        "... in the environment): leave one out; the nodes and PEs of a simulated world are in its list "
        "(machines=4,nodes=2,pes=8)");
  if (!o.sim.empty()) return run_simulated(settings, o, [&main, &rest] { return main(rest); });
  detail::name_repository repository;
  settings.layer = &repository;
  detail::world_session s = detail::open_world(settings, o, all);
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
  result = detail::end_world(s, result);
  detail::count_failures_of_launched(s);
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
    transport::let_launcher_end();
    return 1;
  }
}

}  // namespace orrery
