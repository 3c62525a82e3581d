// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/inbound.hpp>
#include <orrery/scheduler/outbound.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/envelope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace orrery::scheduler {

class pe;

/// The rings between a PE and others: the outbound rings that it sends over, and the inbound ones
/// that it receives from.
///
/// Problem: outbound rings are made when something is first sent, by two threads; nodes come and
/// go; a ring may be full just when something must be said, as an answer or a sign of flow control,
/// and the scheduler cannot wait. So rings that others make are handed over with a lock and an
/// announcement, and adopted between methods, as errands of other threads are. A process that finds
/// a ring full parks in the outbound ring's queue. A record of the scheduler itself (a *control
/// record*) is deferred instead, and new records queue up behind it. An outbound ring with waiters
/// or deferred records is *busy*, and served at each poll.
///
/// Owned by its PE, used on its thread, but for add_inbound and run_errand. Invariants: (1) a busy
/// outbound ring is slow(); (2) records of an outbound ring leave in the order in which they were
/// given to it.
class links {
 public:
  links(pe& of, transport::doorbell& bell, std::uint32_t world_pes) noexcept;
  links(const links&) = delete;
  links& operator=(const links&) = delete;

  // --- sending -----------------------------------------------------------------------------------
  /// Null if nothing was sent to that PE yet.
  [[nodiscard]] outbound* find(std::uint32_t to) const noexcept { return outbound_.find(to); }
  /// Makes an outbound ring. Throws node_lost, also where there is one to a lost node; world_error.
  outbound& open(std::uint32_t to);
  /// pe::outbound_to for what must be said, as replies and flow control: if the system has no
  /// memory for a ring, the two nodes treat each other as lost, so that nobody waits for it. Throws
  /// node_lost.
  [[nodiscard]] outbound& control_outbound_to(std::uint32_t to);
  /// pe::reserve where the ring is full: parks until it has room. Throws node_lost, stopped,
  /// usage_error.
  wire::envelope* await_space(outbound& c, std::uint32_t bytes);
  /// Sends a record without a payload of user data, from anywhere, never parking.
  void send_control(outbound& c, wire::record_kind kind, std::uint32_t slot, std::uint32_t generation,
                    std::uint64_t word, const void* payload = nullptr, std::size_t payload_bytes = 0,
                    std::uint64_t word2 = 0) noexcept;
  /// The payload in that block was read: its memory is the sender's again.
  void release_block(std::uint32_t source_pe, std::uint64_t offset) noexcept;
  /// Some outbound rings have waiters or deferred records.
  [[nodiscard]] bool has_busy() const noexcept { return !busy_.empty(); }
  /// Sends deferred records and wakes waiters where there is room. True if something was done.
  bool serve_busy();
  /// Wakes all who wait for space, as the runtime shuts down.
  void cancel_waits();

  // --- receiving ---------------------------------------------------------------------------------
  [[nodiscard]] std::vector<wire::unique_ptr<inbound>>& all_inbound() noexcept { return inbound_; }
  /// Something was announced: rings, nodes, errands.
  [[nodiscard]] bool has_news() const noexcept { return bell_.announce.load(std::memory_order_relaxed) != announced_; }
  /// Adopts what was announced: rings are received from, errands are done, what is for lost nodes
  /// ends.
  void take_news();
  /// There is something to receive, or a full ring has room again.
  [[nodiscard]] bool anything_new() noexcept {
    if (has_news()) return true;
    for (const auto& in : inbound_)
      if (!in->lost && (in->ring.front() != nullptr || in->ring.corrupt())) return true;
    return has_busy() && wake_for_room();
  }
  /// Gives senders the space of what was read. Called by a PE that has nothing to do.
  void release_space() noexcept {
    for (const auto& in : inbound_)
      if (!in->lost && in->ring.has_unreleased()) release_space(*in);
  }
  /// Receivers of full rings are to wake the PE, which is going to sleep, when there is room, or
  /// (false) need not any more.
  void ask_for_wakes(bool yes) noexcept;
  /// Called by any thread: a ring into this PE was made.
  void add_inbound(wire::unique_ptr<inbound> in);
  /// Called by any thread: the PE will call f(argument) between methods; f must not wait or throw.
  /// Throws std::bad_alloc, stopped (the PE has ended).
  void run_errand(void (*f)(void*), void* argument);

  // --- what is known of the world ----------------------------------------------------------------
  /// Bytes that went through the rings to and from PEs that are not lost: sent, received.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> traffic() const noexcept;
  /// How many nodes this PE knows to have left or to be lost.
  [[nodiscard]] std::uint64_t known_losses() const noexcept { return gone_nodes_; }
  void know_losses(std::uint64_t gone) noexcept { gone_nodes_ = gone; }
  /// outbound_table::table, for the simulator.
  [[nodiscard]] std::pair<const void*, std::size_t> table() const noexcept { return outbound_.table(); }

  // --- the end -----------------------------------------------------------------------------------
  /// Does errands that came too late, and ends what is left in rings. After the loop.
  void drop_leftovers() noexcept;
  /// Waits, in a world that goes on, until the receivers have opened the rings: else what was sent
  /// last would be lost unseen.
  void await_receivers() noexcept;

 private:
  void mark_busy(outbound& c);
  void wake_waiters(outbound& c);
  bool wake_for_room() noexcept;
  void release_space(inbound& in) noexcept;
  void adopt_arrivals();
  void lose_gone();
  void lose_outbound(outbound& c);
  void lose_inbound(inbound& in);
  void refuse_peer(std::uint32_t peer) noexcept;
  void forget_ended();

  pe& of_;
  transport::doorbell& bell_;
  std::uint32_t announced_ = 0;
  outbound_table outbound_;
  std::vector<outbound*> busy_;
  std::vector<wire::unique_ptr<inbound>> inbound_;
  std::uint64_t gone_nodes_ = 0;

  std::mutex arrivals_mutex_;  // of what follows
  std::vector<wire::unique_ptr<inbound>> arrivals_;  // rings that other threads have made
  std::vector<std::pair<void (*)(void*), void*>> errands_;
  bool errands_over_ = false;
};

}  // namespace orrery::scheduler
