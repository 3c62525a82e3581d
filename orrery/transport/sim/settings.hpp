// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::transport {

/// The cost of a message, in nanoseconds: the parameters of LogGP (Alexandrov, Ionescu, Schauser,
/// Scheiman 1995).
struct link_cost {
  double latency = 0;   ///< L: from the sender's network interface to the receiver's
  double overhead = 0;  ///< o: of the processor, to send and once more to receive
  double gap = 0;       ///< g: between two messages of one machine
  double byte = 0;      ///< G: for each byte of a long message

  friend bool operator==(const link_cost&, const link_cost&) = default;
};

namespace links {
/// Rings in shared memory between the PEs of one machine: a cache line travels in 60 ns, a core
/// copies 15 GB/s.
inline constexpr link_cost shared_memory{60, 10, 10, 1.0 / 15};
/// 10 Gb/s Ethernet with a kernel's TCP/IP in between.
inline constexpr link_cost ethernet_10g{15'000, 2'000, 1'000, 0.8};
/// A 200 Gb/s network of a cluster (InfiniBand HDR, Slingshot): 25 GB/s, a microsecond from end to
/// end.
inline constexpr link_cost network_200g{900, 150, 10, 0.04};
}  // namespace links

/// A simulated world: how large, on which network, and what is to go wrong.
struct sim_settings {
  struct loss {
    std::uint32_t node;
    std::int64_t at_ns;
    friend bool operator==(const loss&, const loss&) = default;
  };
  struct slowness {
    std::uint32_t node;
    double factor;
    friend bool operator==(const slowness&, const slowness&) = default;
  };

  /// The messages of one node to another are held up meanwhile.
  struct cut {
    static constexpr std::int64_t for_ever = INT64_MAX;
    std::uint32_t from;
    std::uint32_t to;
    std::int64_t at_ns;
    std::int64_t until_ns = for_ever;
    friend bool operator==(const cut&, const cut&) = default;
  };

  std::uint32_t machines = 1;
  std::uint32_t nodes = 1;  ///< of each machine
  std::uint32_t pes = 1;    ///< of each node
  link_cost local = links::shared_memory;  ///< between the PEs of one machine
  link_cost net = links::network_200g;     ///< between machines
  /// Time of the processor for each message executed and each wait that ends.
  std::int64_t message_ns = 20;
  /// Each message takes longer by a random time up to that, and what is due at once is done in
  /// random order.
  std::int64_t jitter_ns = 0;
  std::uint64_t seed = 1;
  /// Methods take the time that they take here; else only what the program says (orrery::compute).
  bool measured = false;
  double drive_byte = 0;  ///< ns for each byte that a drive reads or writes; 0: drives take no time
  std::int64_t drive_seek_ns = 0;  ///< more, for each transfer
  std::int64_t detect_ns = 100'000;  ///< until others learn that a node is lost
  /// Messages between machines go through carriers as under MPI: frames, mirrors of rings,
  /// evictions (carriers.hpp).
  bool carriers = false;
  /// With carriers and cuts: a node that is silent for so long is lost.
  std::int64_t silence_ns = 5'000'000'000;
  std::vector<loss> losses;
  std::vector<cut> cuts;  ///< with carriers, between machines
  std::vector<slowness> slow;

  [[nodiscard]] std::uint32_t all_nodes() const noexcept { return machines * nodes; }
  [[nodiscard]] std::uint32_t all_pes() const noexcept { return all_nodes() * pes; }
};

}  // namespace orrery::transport
