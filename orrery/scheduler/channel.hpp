// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
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
/// would fill the memory: there it is looked up.
class channel_table {
 public:
  static constexpr std::uint32_t dense_limit = 4096;

  explicit channel_table(std::uint32_t world_pes) noexcept : is_dense_(world_pes <= dense_limit) {}

  /// Null if there is none.
  [[nodiscard]] channel* find(std::uint32_t pe) const noexcept {
    if (pe < dense_.size()) [[likely]]
      return dense_[pe].get();
    return sparse_.empty() ? nullptr : find_sparse(pe);
  }
  channel& put(std::uint32_t pe, std::unique_ptr<channel> c) {
    channel& added = *c;
    all_.push_back(&added);
    if (!is_dense_) {
      sparse_.emplace(pe, std::move(c));
    } else {
      if (pe >= dense_.size()) dense_.resize(pe + 1);
      dense_[pe] = std::move(c);
    }
    return added;
  }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }

 private:
  [[nodiscard]] channel* find_sparse(std::uint32_t pe) const noexcept {
    const auto at = sparse_.find(pe);
    return at != sparse_.end() ? at->second.get() : nullptr;
  }

  std::vector<std::unique_ptr<channel>> dense_;
  std::unordered_map<std::uint32_t, std::unique_ptr<channel>> sparse_;
  std::vector<channel*> all_;
  bool is_dense_;
};

}  // namespace orrery::scheduler
