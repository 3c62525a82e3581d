// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace orrery::transport {

/// Moves records between the PEs of this node and those of other machines.
///
/// Problem: rings lie in memory that sender and receiver share, and two machines share none. So the
/// carrier of a node copies what its PEs write into their rings to other machines, and brings what
/// comes from there into rings that its PEs read. It also keeps copies of the counters of PEs of
/// other machines.
///
/// Owned by the world. All calls may come from any thread of the node; none parks.
class carrier {
 public:
  carrier(const carrier&) = delete;
  carrier& operator=(const carrier&) = delete;
  virtual ~carrier() = default;

  /// Does what can be done now, unless another thread is at it. True if something came or went.
  virtual bool drive() noexcept = 0;

  /// The same between two looks at rings, by a PE that is busy or has just been told by drive()
  /// that something came: what PEs have written is sent, but whether something has come is looked
  /// at only now and then, since that takes a system call.
  virtual void poll(bool busy) noexcept = 0;

  /// A PE of this node is about to sleep, and has said so: if all do, who drives the carrier then
  /// begins to.
  virtual void pe_sleeps() noexcept = 0;

  /// A PE of this node has slept and goes on: who drives the carrier while all sleep has to look
  /// after it again.
  virtual void pe_woke() noexcept = 0;

  /// Called by a PE that has nothing to do: gives back memory of its rings to other machines that
  /// have been idle.
  virtual void reclaim_rings(std::uint32_t pe) noexcept = 0;

  /// Capacity for the next ring of a PE of this node to another machine: `wanted`, a power of two,
  /// or less.
  [[nodiscard]] virtual std::uint64_t next_ring_bytes(std::uint64_t wanted) noexcept = 0;

  /// Asks all other machines for the counters of their PEs. When counters_round() has reached the
  /// number that this returns, every copy was read there after this call.
  virtual std::uint64_t ask_for_counters() noexcept = 0;
  /// The last round of questions that was answered by all nodes which are there.
  [[nodiscard]] virtual std::uint64_t counters_round() const noexcept = 0;

  /// The names that processes of this node have published, for tools; at most `room` bytes.
  using names_source = std::function<std::vector<std::byte>(std::size_t room)>;
  /// From now on tools are told these; null: none. `source` is called by any thread, and uses no
  /// carrier. When this returns, the one before is not called any more.
  virtual void show_names(names_source source) noexcept = 0;

  /// Parts of blocks are in the library, which goes on with them only while it is called, and PE
  /// `pe`, which has nothing to do, is the one to stay awake for that.
  [[nodiscard]] virtual bool needs(std::uint32_t pe) noexcept = 0;

 protected:
  carrier() = default;
};

}  // namespace orrery::transport
