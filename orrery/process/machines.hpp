// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Descriptions of the machines of the world. (Givelberg 2014, section 5: system functions that
// describe the state of the hardware.)
namespace orrery {

/// A file system of a machine, as the calling node of that machine sees it.
struct file_system {
  std::string folder;  ///< where it is mounted
  std::string device;  ///< "/dev/nvme0n1p2", "server:/export"
  std::string type;  ///< "ext4", "nfs4"
  std::uint64_t bytes = 0;
  std::uint64_t free_bytes = 0;  ///< for users other than root
  bool rotates = false;  ///< it is on one drive, whose disks rotate
};

/// A machine, as it is now.
struct machine_state {
  std::uint32_t number = 0;
  std::string name;  ///< of its host; see machine_names()
  std::string system;  ///< kernel and architecture: "Linux 6.1.0 x86_64"
  std::string processor;  ///< its model; empty if the system does not say it
  std::uint32_t cores = 0;  ///< hardware threads that are online; in a simulation, its PEs
  double load = 0;  ///< threads that run or want to, over the last minute
  std::uint64_t memory = 0;  ///< bytes
  std::uint64_t free_memory = 0;  ///< bytes that programs can have without swapping
  /// The machines of the world that are there and can be reached, in ascending order.
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> pes;  ///< theirs
  /// Those with room for files, each once; no pseudo ones such as /proc.
  std::vector<file_system> file_systems;
};

/// The names of all machines, by number: those of their hosts. Where several machines have one
/// name, as in simulations, those behind the first are called "name#2", "name#3" and so on. Does
/// not park.
[[nodiscard]] std::vector<std::string> machine_names();

/// Asks a machine what it is. Parks until one of its PEs answers. Throws usage_error if there is no
/// such machine, node_lost, stopped.
///
///     for (std::uint32_t m = 0; m < orrery::world_machines(); ++m) {
///       const orrery::machine_state s = orrery::describe_machine(m);
///       fmt::print("{}: {} cores, {} file systems\n", s.name, s.cores, s.file_systems.size());
///     }
[[nodiscard]] machine_state describe_machine(std::uint32_t machine);

/// Some PE of the machine with that name, or with that name up to its first dot; successive uses
/// take its PEs in turn. Throws usage_error, which names the machines that there are. Does not
/// park.
///
///     auto device = spawn<PageDevice>(machine("node7"), "pagefile", 1024, 32 << 20);
[[nodiscard]] placement machine(std::string_view host);

namespace detail {
/// The number of the machine that is called so among these, by its whole name or up to the first
/// dot.
[[nodiscard]] std::optional<std::uint32_t> find_machine(std::span<const std::string> names, std::string_view host);
}  // namespace detail

namespace detail {
/// Bytes that programs can have on this machine now without swapping, as far as their control group
/// lets them. Reads files of the kernel.
[[nodiscard]] std::uint64_t free_memory_here();
}  // namespace detail

}  // namespace orrery
