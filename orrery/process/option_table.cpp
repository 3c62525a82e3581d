// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/option_value.hpp>
#include <orrery/process/internal/units.hpp>
#include <orrery/transport/shm/numbers.hpp>

#include <cctype>
#include <chrono>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery {

using namespace detail;

namespace {

constexpr option_info table[] = {
    {.name = "pes",
     .value = &options::pes,
     .meaning = "PEs of each node",
     .automatic = "as many as there are cores for it",
     .least = 1,
     .most = transport::max_pes},
    {.name = "nodes",
     .value = &options::nodes,
     .meaning = "OS processes of this program, which starts the others itself",
     .least = 1,
     .most = transport::max_nodes},
    {.name = "world",
     .value = &options::world,
     .meaning = "name of the world to join, or to create if it does not run yet; under MPI, for orrery top",
     .automatic = "a world without a name"},
    {.name = "sim",
     .value = &options::sim,
     .meaning = "run in a simulated world and in virtual time, on one OS thread; for instance "
                "machines=512,pes=8,net=200g,seed=7",
     .automatic = "no simulation"},
    {.name = "mpi",
     .value = &options::mpi,
     .meaning =
         "auto makes the ranks that mpirun has started one world; off makes each a world of its own; or the file of "
         "the MPI library"},
    {.name = "role",
     .value = &options::role,
     .meaning = "what a node that runs no main runs beside serving: a rank of an MPI launch that is not the first, or "
                "another node of --orrery-nodes",
     .automatic = "nothing"},
    {.name = "machine-ranks",
     .value = &options::machine_ranks,
     .meaning = "for tests of what crosses machines: so many ranks are taken for one machine",
     .automatic = "the ranks of one host",
     .least = 1,
     .most = transport::max_nodes},
    {.name = "machine-jitter",
     .value = &options::machine_jitter,
     .meaning = "for tests of what crosses machines: what comes from other ranks is late by a random time, up to this",
     .most = second},
    {.name = "piece",
     .value = &options::piece,
     .meaning =
         "the parts in which large arguments travel between machines; other messages wait for two of them at most",
     .least = 4096,
     .most = transport::cluster_map::largest_piece},
    {.name = "node-timeout",
     .value = &options::node_timeout,
     .meaning = "under MPI: how long a node may be silent before it is taken for lost",
     .least = 1000 * microsecond,
     .most = 24 * 3600 * second},
    {.name = "waiting",
     .value = &options::waiting,
     .meaning = "what a PE with nothing to do does: wait spins, notify spins for a while and then sleeps, "
                "immediate sleeps at once"},
    {.name = "spin",
     .value = &options::spin,
     .meaning = "how long a PE spins before it sleeps, with --orrery-waiting=notify; eight times as long "
                "where there are other machines; more PEs than cores never spin",
     .most = 3600 * second},
    {.name = "pin", .value = &options::pin, .meaning = "bind each PE to a core if there are enough cores"},
    {.name = "method-stack",
     .value = &options::method_stack,
     .meaning = "stack of a method; only pages that are touched cost memory",
     .least = 16 * kib,
     .most = gib},
    {.name = "function-stack",
     .value = &options::function_stack,
     .meaning = "stack of a process function",
     .least = 16 * kib,
     .most = gib},
    {.name = "mailbox",
     .value = &options::mailbox,
     .meaning = "bytes of messages that may wait at one process before its senders do",
     .least = 4 * kib,
     .most = 2 * gib},
    {.name = "queue-memory",
     .value = &options::queue_memory,
     .meaning =
         "bytes of messages that may wait at all processes of a node together; a node with more ends with a report",
     .automatic = "half of the machine's memory for its nodes",
     .least = mib,
     .most = 64 * tib},
    {.name = "ring",
     .value = &options::ring,
     .meaning = "bytes of messages on their way from one PE to another, a power of two",
     .least = 32 * kib,
     .most = gib},
    {.name = "memory",
     .value = &options::memory,
     .meaning =
         "shared memory of each node for payloads on their way to other nodes, beside its rings; who has waited 50 ms for some goes beyond it",
     .automatic = "a share of the machine's memory",
     .least = mib,
     .most = 64 * tib},
    {.name = "shm-dir",
     .value = &options::shm_dir,
     .meaning = "directory in which named worlds are found",
     .automatic = "/dev/shm"},
    {.name = "startup-timeout",
     .value = &options::startup_timeout,
     .meaning = "how long the nodes of a world may take to start",
     .least = 1000 * microsecond,
     .most = 24 * 3600 * second},
    {.name = "stuck",
     .value = &options::stuck,
     .meaning = "how long a method may wait without using the processor, and let nothing else run on its PE, before "
                "stderr says so; longer where PEs share cores; 0 is for ever",
     .most = 24 * 3600 * second},
    {.name = "failed-exit",
     .value = &options::failed_exit,
     .meaning = "exit code of a program whose main function returned 0, but whose one-way messages failed",
     .most = 255},
    {.name = "serialize",
     .value = &options::serialize,
     .meaning =
         "write and read arguments, results and elements that move also inside a node, to find mistakes that only "
         "several nodes would show; slow"},
    {.name = "trace",
     .value = &options::trace,
     .meaning = "file for a trace of all methods, to be opened with https://ui.perfetto.dev",
     .automatic = "no trace"},
    {.name = "trace-memory",
     .value = &options::trace_memory,
     .meaning = "memory of each PE for its trace; what happens later is not traced",
     .least = 64 * kib,
     .most = 64 * gib},
    {.name = "check-sharing",
     .value = &options::check_sharing,
     .meaning = "follow what happens before what, and tell of accesses to shared data that nothing orders; slow"},
    {.name = "advise",
     .value = &options::advise,
     .meaning = "count accesses to shared data, and tell which behaviours would be faster; slow"},
    {.name = "advise-net",
     .value = &options::advise_net,
     .meaning =
         "the network that the advice is for: shm, 10g, 200g or L:o:g:B as in --orrery-sim; a simulation has its own"},
    {.name = "quiet", .value = &options::quiet, .meaning = "say nothing on stderr but errors"},
    {.name = "help", .value = &options::help, .meaning = "print this list and exit", .command_line_only = true},
};

}  // namespace

std::string option_info::flag() const { return fmt::format("{}{}", option_prefix, name); }

std::string option_info::variable() const {
  if (command_line_only) return {};
  std::string v{variable_prefix};
  for (const char c : name) v += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return v;
}

std::string option_info::placeholder() const {
  return std::visit(visitor{
                        [](bool options::*) { return std::string("yes|no"); },
                        [](std::uint32_t options::*) { return std::string("N"); },
                        [](std::uint64_t options::*) { return std::string("SIZE"); },
                        [](std::chrono::nanoseconds options::*) { return std::string("TIME"); },
                        [](std::string options::* m) {
                          return std::string(m == &options::world || m == &options::role ? "NAME"
                                             : m == &options::sim                        ? "LIST"
                                             : m == &options::advise_net                 ? "NET"
                                             : m == &options::mpi                        ? "auto|off|PATH"
                                                                                         : "PATH");
                        },
                        [](waiting options::*) { return fmt::format("{}", fmt::join(waiting_names, "|")); },
                    },
                    value);
}

std::string option_info::default_text() const {
  if (!automatic.empty()) return std::string(automatic);
  const options o;
  return std::visit(
      visitor{
          [&](bool options::* m) { return std::string(o.*m ? "yes" : "no"); },
          [&](std::uint32_t options::* m) { return std::to_string(o.*m); },
          [&](std::uint64_t options::* m) { return size_text(o.*m); },
          [&](std::chrono::nanoseconds options::* m) { return time_text(static_cast<std::uint64_t>((o.*m).count())); },
          [&](std::string options::* m) { return o.*m; },
          [&](waiting options::* m) { return std::string(waiting_names[static_cast<std::size_t>(o.*m)]); },
      },
      value);
}

std::span<const option_info> option_table() { return orrery::table; }

}  // namespace orrery
