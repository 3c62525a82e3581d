// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/counters.hpp>
#include <orrery/transport/mpi/cluster_status.hpp>
#include <orrery/transport/shm/view.hpp>
#include <orrery/wire/address.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace orrery::tool {

/// A running world at one moment.
struct pe_sample {
  std::uint32_t pe = 0;
  pe_counters counters;
};
struct node_sample {
  transport::node_info info;
  std::uint32_t machine = 0;
  std::vector<pe_sample> pes{};

  bool stopped = false;  ///< its OS process is, by a signal or a debugger; known on this machine only

  [[nodiscard]] bool here() const noexcept {
    return info.state == transport::node_state::alive || info.state == transport::node_state::leaving;
  }
};
/// For people: "stopped" of a node that is alive and whose OS process does not run.
[[nodiscard]] std::string_view state_in_words(const node_sample& n) noexcept;
/// As many letters of a host's name are shown.
inline constexpr std::size_t longest_host = 40;
/// A name that is published.
struct name_sample {
  std::string name;
  address process;
  std::string class_name;
  std::uint32_t node = 0;
};
struct world_sample {
  std::string name;
  std::string program;
  std::string state;  ///< running, ending, lost
  std::int32_t pid = 0;  ///< of the first node
  double age_s = 0;
  std::vector<std::string> machines;  ///< their names; none: it is a world of this machine alone
  std::vector<node_sample> nodes;  ///< gone ones too, but without PEs; by machine
  std::uint64_t name_count = 0;
  std::vector<name_sample> names;  ///< those that fit onto the boards of their nodes, in order
  std::vector<std::string> problems;  ///< what could not be read, and why
};

/// A world at which a tool looks: by its shared memory, or, where an MPI launcher has started it and
/// it has no name, by what its first node on this machine tells.
struct watched_world {
  std::optional<transport::world_view> view;
  std::uint64_t nonce = 0;  ///< without a view
  transport::peer_id creator{};  ///< without a view: the node that tells
};
/// A world without a name that an MPI launcher has started, as its first node on this machine tells.
struct unnamed_world {
  watched_world world;
  transport::cluster_status status;
};
/// Those of this user. None where worlds are looked for in another folder than the usual one.
[[nodiscard]] std::vector<unnamed_world> unnamed_worlds(const std::string& directory);
/// Tools call such a world by the OS process of its first node on this machine: "mpi-PID".
[[nodiscard]] std::string name_of(const transport::peer_id& teller);

/// `names`: those of other machines are asked for, too.
[[nodiscard]] world_sample take_sample(const watched_world& world, bool names = false);
/// True if it makes no sense to look again.
[[nodiscard]] bool is_over(const watched_world& world);

/// What a PE did between two samples, per second.
struct pe_rates {
  double messages = 0;  ///< executed, inline calls included
  double sent = 0;      ///< records to other PEs
  double sent_bytes = 0;
  double received_bytes = 0;
  double parks = 0;
  double idle = 0;  ///< 0 to 1
};
[[nodiscard]] pe_rates rates_between(const pe_counters& before, const pe_counters& after) noexcept;

/// Seconds since an OS process was started; 0 if it is gone.
[[nodiscard]] double age_of(const transport::peer_id& id);

// For --json. With `before` each PE also has its rates.
[[nodiscard]] nlohmann::ordered_json to_json(const world_sample& now, const world_sample* before = nullptr);

}  // namespace orrery::tool
