// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

namespace orrery::scheduler {

struct fiber;
struct simulated_link;

/// The way from one PE to another. Owned by the sending PE.
struct channel {
  transport::ring_producer ring;
  transport::doorbell* bell = nullptr;
  std::uint32_t pe = 0;
  bool remote = false;  ///< another node
  bool shared_bell = false;  ///< the doorbell lies in shared memory, as all do in a world
  bool lost = false;  ///< the node is gone
  bool slow = false;  ///< lost, or somebody waits for space: new records have to queue up
  simulated_link* link = nullptr;  ///< in a simulation: decides when a record arrives
  std::uint64_t offset = 0;  ///< of the ring in this node's memory, if remote
  std::uint32_t stops_heard = 0;  ///< of those that the receiver has counted in the ring
  std::uint32_t blocks_out = 0;  ///< payload blocks that the receiver has not given back, as far as is known
  fiber* waiters = nullptr;  ///< processes that wait for space, oldest first
  fiber* last_waiter = nullptr;
  std::list<std::vector<std::byte>> deferred;  ///< records of the scheduler itself, which must not wait
};

/// A ring that this PE receives from.
struct inbound {
  transport::ring_consumer ring;
  std::uint32_t pe = 0;
  bool remote = false;
  bool lost = false;
  bool refused = false;  ///< its node is treated as lost, and was told if it lives
};

/// The channels of one PE, by the number of the other PE.
///
/// In worlds of up to `dense_limit` PEs that is an index. In larger ones, which are simulated, the tables of all PEs
/// would fill the memory: there it is looked up in a hash table with open addressing, of which one line is touched mostly.
class channel_table {
 public:
  static constexpr std::uint32_t dense_limit = 4096;

  explicit channel_table(std::uint32_t world_pes) noexcept : is_dense_(world_pes <= dense_limit) {}

  /// Null if there is none.
  [[nodiscard]] channel* find(std::uint32_t pe) const noexcept {
    if (pe < dense_.size()) [[likely]]
      return dense_[pe];
    return sparse_.empty() ? nullptr : sparse_[place_of(pe)].to;
  }
  /// There must be none to this PE.
  channel& put(std::uint32_t pe, std::unique_ptr<channel> c) {
    if (is_dense_) {
      if (pe >= dense_.size()) dense_.resize(pe + 1);
    } else if (2 * (all_.size() + 1) > sparse_.size()) {
      grow();
    }
    channel& added = *all_.emplace_back(std::move(c));
    if (is_dense_) {
      dense_[pe] = &added;
    } else {
      sparse_[place_of(pe)] = {pe, &added};
    }
    return added;
  }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }
  /// What find() looks at in large worlds, and how many bytes that is.
  [[nodiscard]] std::pair<const void*, std::size_t> table() const noexcept {
    return {sparse_.data(), sparse_.size() * sizeof(entry)};
  }

 private:
  struct entry {
    std::uint32_t pe = 0;
    channel* to = nullptr;  // null: the entry is free
  };

  // Of the PE's entry, or the free one where it would be.
  [[nodiscard]] std::size_t place_of(std::uint32_t pe) const noexcept {
    const std::size_t mask = sparse_.size() - 1;
    std::size_t i = (pe * std::uint64_t{0x9e37'79b9'7f4a'7c15} >> 32) & mask;
    while (sparse_[i].to != nullptr && sparse_[i].pe != pe) i = (i + 1) & mask;
    return i;
  }
  void grow() {
    const std::vector<entry> old = std::exchange(sparse_, std::vector<entry>(sparse_.empty() ? 4 : 2 * sparse_.size()));
    for (const entry& e : old)
      if (e.to != nullptr) sparse_[place_of(e.pe)] = e;
  }

  std::vector<channel*> dense_;
  std::vector<entry> sparse_;  // a power of two, at most half full
  std::vector<std::unique_ptr<channel>> all_;
  bool is_dense_;
};

}  // namespace orrery::scheduler
