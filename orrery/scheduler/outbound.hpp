// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/ring.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <list>
#include <utility>
#include <vector>

namespace orrery::scheduler {

class causality;
struct fiber;
struct simulated_link;

/// The way from one PE to another. Owned by the sending PE.
struct outbound {
  transport::ring_producer ring;
  transport::doorbell* bell = nullptr;
  std::uint32_t pe = 0;
  bool remote = false;  ///< another node
  bool shared_bell = false;  ///< the doorbell lies in shared memory, as all do in a world
  bool lost = false;  ///< the node is gone
  bool returned = false;  ///< the ring's memory was given back: its receiver's node has ended
  std::uint8_t detour = 0;  ///< not 0: new records cannot simply be written into the ring
  causality* order = nullptr;  ///< not null: an annex goes before each record
  simulated_link* link = nullptr;  ///< in a simulation: decides when a record arrives
  std::uint64_t offset = 0;  ///< of the ring in this node's memory, if remote
  std::uint32_t users = 0;  ///< fibers that are parked in the middle of a send
  std::uint32_t stops_heard = 0;  ///< of those that the receiver has counted in the ring
  /// Payload blocks that the receiver has not given back, as far as is known.
  std::uint32_t blocks_out = 0;
  fiber* waiters = nullptr;  ///< processes that wait for space, oldest first
  fiber* last_waiter = nullptr;
  /// Records of the scheduler itself, which must not wait.
  std::list<std::vector<std::byte>> deferred;

  /// Space for a record, as pe::reserve gives it; null if there is none just now.
  [[nodiscard]] wire::envelope* try_reserve(std::uint32_t bytes) noexcept {
    return detour == 0 ? ring.reserve(bytes) : try_reserve_after_annex(bytes);
  }
  /// Lost, or somebody waits for space: new records have to queue up.
  [[nodiscard]] bool slow() const noexcept { return (detour & is_slow) != 0; }
  void set_slow(bool yes) noexcept { detour = static_cast<std::uint8_t>(yes ? detour | is_slow : detour & ~is_slow); }
  /// Messages over it are followed.
  void follow(causality& c) noexcept {
    order = &c;
    detour |= is_followed;
  }

 private:
  static constexpr std::uint8_t is_slow = 1;
  static constexpr std::uint8_t is_followed = 2;
  [[nodiscard, gnu::cold]] wire::envelope* try_reserve_after_annex(std::uint32_t bytes) noexcept;
};

/// The outbound rings of one PE, by the number of the other PE.
///
/// For numbers below `dense_limit`, in worlds of no more PEs, that is an index. In larger ones,
/// which are simulated, the tables of all PEs would fill the memory; and numbers of PEs in the
/// place of others that have left are large. Those are looked up in a hash table with open
/// addressing, of which one line is touched mostly.
class outbound_table {
 public:
  static constexpr std::uint32_t dense_limit = 4096;

  explicit outbound_table(std::uint32_t world_pes) noexcept : is_dense_(world_pes <= dense_limit) {}

  /// Null if there is none.
  [[nodiscard]] outbound* find(std::uint32_t pe) const noexcept {
    if (pe < dense_.size()) [[likely]]
      return dense_[pe];
    return sparse_.empty() ? nullptr : sparse_[place_of(pe)].to;
  }
  /// There must be none to this PE.
  outbound& put(std::uint32_t pe, wire::unique_ptr<outbound> c);
  /// Ends all outbound rings for which that is true. Costs a look at every outbound ring.
  template <class Predicate>
  void erase_if(Predicate&& is_over) {
    if (std::erase_if(all_, [&](const auto& c) { return is_over(*c); }) == 0) return;
    dense_.assign(dense_.size(), nullptr);
    sparse_.assign(sparse_.size(), entry{});
    for (const auto& c : all_) enter(c->pe, *c);
  }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }
  /// The memory that find() looks at in large worlds, and its size.
  [[nodiscard]] std::pair<const void*, std::size_t> table() const noexcept {
    return {sparse_.data(), sparse_.size() * sizeof(entry)};
  }

 private:
  struct entry {
    std::uint32_t pe = 0;
    outbound* to = nullptr;  // null: the entry is free
  };

  [[nodiscard]] bool is_dense(std::uint32_t pe) const noexcept { return is_dense_ && pe < dense_limit; }
  void enter(std::uint32_t pe, outbound& to) noexcept {
    if (is_dense(pe)) {
      dense_[pe] = &to;
    } else {
      sparse_[place_of(pe)] = {pe, &to};
    }
  }
  // The place of the PE's entry, or of the free one where it would be.
  [[nodiscard]] std::size_t place_of(std::uint32_t pe) const noexcept {
    const std::size_t mask = sparse_.size() - 1;
    std::size_t i = (pe * std::uint64_t{0x9e37'79b9'7f4a'7c15} >> 32) & mask;
    while (sparse_[i].to != nullptr && sparse_[i].pe != pe) i = (i + 1) & mask;
    return i;
  }
  void grow();

  std::vector<outbound*> dense_;
  std::vector<entry> sparse_;  // a power of two, at most half full
  std::vector<wire::unique_ptr<outbound>> all_;
  bool is_dense_;
};

}  // namespace orrery::scheduler
