// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/time_limit.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

/// The program's own arguments: those the runtime did not take; [0] is the program.
using args = std::vector<std::string>;

namespace detail {
/// The main function of a program, where it lies.
struct main_function {
  void* at;
  int (*call)(void* at, args&& rest);
};
int run(int argc, char** argv, main_function main);
}  // namespace detail

/// Runs the program: starts the PEs (and with --orrery-nodes=N the other nodes), runs `main` as a
/// process on the first PE, and returns what it returned (0 if that is nothing) when everything has
/// shut down. `main` takes the program's arguments, or none. An exception that leaves main, and a
/// world that cannot be started, is one line on stderr and exit code 1 (--orrery-help lists the
/// options and exits with 0).
///
/// To be called from the main thread, once at a time: inside a process it throws usage_error
/// (already_running). Nodes that others started run no main: there, run serves until the world ends
/// and returns 0; so what stands before and after it runs once in each OS process. A program may
/// run again: such a node takes part in one world only, and there the next run returns 0 at once.
template <class F>
  requires(std::is_invocable_v<F&, args> || std::is_invocable_v<F&>)
int run(int argc, char** argv, F&& main) {
  auto call = [&main](args&& rest) -> int {
    const auto f = [&]() -> decltype(auto) {
      if constexpr (std::is_invocable_v<F&, args>) {
        return main(std::move(rest));
      } else {
        return main();
      }
    };
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return 0;
    } else {
      return f();
    }
  };
  return detail::run(
      argc, argv, {&call, [](void* at, args&& rest) { return (*static_cast<decltype(call)*>(at))(std::move(rest)); }});
}

/// Number of this PE, node, machine; how many there are. The numbers are 0, 1, 2 and so on, and
/// name one PE or node for ever. In a named world whose programs come and go, places of those that
/// have left are used again, by PEs and nodes with other numbers, which may be large: there
/// world_pes() and world_nodes() count the places, and reachable_pes() has the numbers.
[[nodiscard]] std::uint32_t this_pe();
[[nodiscard]] std::uint32_t this_node();
[[nodiscard]] std::uint32_t this_machine();
[[nodiscard]] std::uint32_t world_pes();
[[nodiscard]] std::uint32_t world_nodes();
[[nodiscard]] std::uint32_t world_machines();

/// The PEs that can be reached now, in ascending order: all of them, but for those of nodes that
/// have left a named world or were lost.
[[nodiscard]] std::vector<std::uint32_t> reachable_pes();
/// Those of them that run this program: its own nodes, without those of programs that have joined
/// the same named world, and without ranks of the same MPI launch that run another program.
[[nodiscard]] std::vector<std::uint32_t> program_pes();

/// Parks the calling process for that long; its PE goes on. Throws stopped.
void sleep_for(time_limit d);
/// Parks the calling process until no message is queued, executed or on its way anywhere in the
/// world, and every other process is idle or parked for something that only a message can bring.
/// Throws stopped.
void quiescence();
/// Lets the other processes of this PE run first. Throws stopped.
void yield();

/// The time since some fixed moment: of the machine's steady clock, or of this PE in a simulation.
/// Programs that measure themselves use it so that they can be simulated.
[[nodiscard]] std::chrono::nanoseconds now();
/// In a simulation: what the running method does now takes that long. Elsewhere it takes as long as
/// it takes, and this does nothing. Does not park.
void compute(time_limit d);
/// In a simulation: the next message that the running method sends to another PE, or its answer,
/// takes as long as if it had that many bytes more. So a program can be simulated whose data would
/// fit nowhere: to be called right before that message. Elsewhere this does nothing. Does not park.
void carry(std::uint64_t bytes);

}  // namespace orrery
