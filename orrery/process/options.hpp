// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/mpi/cluster.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace orrery {

/// The behaviour of a PE with nothing to do until a message comes: the strategies of the task and
/// message framework (Gingras 2018, section 3.9), for a whole PE.
enum class waiting : std::uint8_t {
  wait,       ///< spins: answers in 0.1 us and takes a core
  notify,     ///< spins for a while, then sleeps
  immediate,  ///< sleeps at once: takes nothing and answers in some 20 us
};

/// With what a program was started that is the runtime's business.
struct options {
  std::uint32_t pes = 0;  ///< of each node; 0: cores / nodes
  std::uint32_t nodes = 1;
  std::string world;  ///< name; empty: none
  std::string sim;    ///< what to simulate; see parse_simulation; empty: nothing
  /// "auto": if a launcher of MPI has started the program; "off"; or the path of a library.
  std::string mpi = "auto";
  /// For tests: so many ranks are a machine; 0: those of one host.
  std::uint32_t machine_ranks = 0;
  /// For tests: what comes from other machines is late by up to that.
  std::chrono::nanoseconds machine_jitter{};
  /// For tests: parts of large arguments between machines.
  std::uint64_t piece = transport::cluster_map::usual_piece;
  std::string role;  ///< that a node without a main runs; empty: none
  std::chrono::nanoseconds node_timeout =
      std::chrono::seconds(5);  ///< after which a silent node of another machine is lost

  orrery::waiting waiting = orrery::waiting::notify;
  std::chrono::nanoseconds spin{scheduler::pe_settings{}.spin_ns};
  bool pin = scheduler::node_settings{}.pin;

  std::uint64_t method_stack = scheduler::pe_settings{}.method_stack;
  std::uint64_t function_stack = scheduler::pe_settings{}.function_stack;
  std::uint64_t mailbox = scheduler::pe_settings{}.mailbox_bytes;
  std::uint64_t ring = scheduler::pe_settings{}.ring_bytes;
  std::uint64_t queue_memory = 0;  ///< of all mailboxes of a node; 0: the scheduler's default
  std::uint64_t memory = 0;  ///< of each node for messages on their way; 0: the transport's default
  std::string shm_dir;
  std::chrono::nanoseconds startup_timeout = std::chrono::seconds(30);

  std::chrono::nanoseconds stuck = std::chrono::seconds(10);  ///< 0: never
  std::uint32_t failed_exit = 1;
  bool serialize = false;  ///< also inside nodes
  std::string trace;  ///< path; empty: no trace
  std::uint64_t trace_memory = 32U << 20;
  bool check_sharing = false;
  bool advise = false;
  std::string advise_net = "10g";  ///< the network to advise for; see parse_network
  bool quiet = false;
  bool help = false;
};

/// One option, for the parser, --orrery-help and the docs.
struct option_info {
  /// Where the value is; says its type too.
  using member = std::variant<bool options::*, std::uint32_t options::*, std::uint64_t options::*,
                              std::chrono::nanoseconds options::*, std::string options::*, waiting options::*>;
  std::string_view name;  ///< --orrery-NAME; the environment variable has the same letters
  member value;
  std::string_view meaning;  ///< a clause without a full stop
  /// The meaning of a value of 0 or ""; such a number is written `auto`.
  std::string_view automatic = {};
  std::uint64_t least = 0;  ///< allowed, for numbers: in bytes and nanoseconds
  std::uint64_t most = UINT64_MAX;
  bool command_line_only = false;

  [[nodiscard]] std::string flag() const;  ///< --orrery-ring
  [[nodiscard]] std::string variable() const;  ///< ORRERY_RING; empty if there is none
  [[nodiscard]] std::string placeholder() const;  ///< SIZE
  /// The default value, as --orrery-help writes it.
  [[nodiscard]] std::string default_text() const;
};

/// All options, in the order of --orrery-help. The only place where they are listed.
[[nodiscard]] std::span<const option_info> option_table();

/// The command line of a program, taken apart.
struct started_with {
  options values;
  std::vector<std::string> rest;  ///< for the program; [0] is its name
  std::vector<std::string> warnings;  ///< environment variables that look like an option's
};

/// The environment: as getenv.
using environment = std::function<std::optional<std::string>(std::string_view variable)>;

/// Takes the options of the runtime out of the arguments and the environment; the command line
/// wins, and of two on it the last. `--` ends them: it and what follows is the program's. Throws
/// world_error (world_bad_setting) that names the option, its value and what is allowed. `roles`
/// are the names of the program's roles, for such an error.
[[nodiscard]] started_with parse_options(std::span<const std::string> arguments,
                                         std::span<const std::string> roles = {});
/// The same with another environment; `variables` are the names of all it has.
[[nodiscard]] started_with parse_options(std::span<const std::string> arguments, const environment& environment,
                                         std::span<const std::string> variables,
                                         std::span<const std::string> roles = {});

/// The text of --orrery-help.
[[nodiscard]] std::string options_help(std::string_view program);
/// The same as a table for the docs.
[[nodiscard]] std::string options_markdown();

/// The settings that the scheduler needs.
[[nodiscard]] scheduler::node_settings node_settings_of(const options& o);

}  // namespace orrery
