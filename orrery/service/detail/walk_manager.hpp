// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/walk_gate.hpp>
#include <orrery/service/detail/walk_site.hpp>
#include <orrery/service/presence.hpp>
#include <orrery/service/session_options.hpp>
#include <orrery/service/spare_strategy.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::service {

/// A free process that has become one of the list, and what is left where it came from.
struct spare {
  remote<walk_process> process;  ///< null: none is free
  std::uint32_t manager = 0;     ///< who gave it
  spare_place place;
};

/// The work of the list processes of one PE.
struct walk_report {
  std::uint64_t processes = 0;  ///< that may be in the list (P)
  std::uint64_t free = 0;
  std::uint64_t items = 0;
  /// Requests to its processes, those included that they have passed on.
  std::uint64_t requests = 0;
  std::uint64_t jumps = 0;     ///< requests that they sent on through a shortcut
  std::uint64_t stale = 0;     ///< requests whose shortcut was stale
  std::uint64_t refused = 0;   ///< sends for which a mailbox had no room; counted with K automatic
  std::uint64_t shortcuts = 0;
  std::uint32_t granularity = 0;  ///< G now
  std::uint32_t forwards = 0;     ///< K now
  std::uint32_t window = 0;       ///< W of the session whose requests came last
  std::uint32_t pe = 0;
  bool tunes_granularity = false;  ///< G is automatic
};

/// Throws usage_error unless an empty list with room for so many items is to be filled with them.
void check_fill(std::uint64_t items, std::uint64_t held, std::uint64_t room);

/// The free processes of one PE, and what its list processes share (sections 3.3 and 3.6 of the
/// paper).
///
/// Problem: a list grows and shrinks all the time, and a process that is made for each item costs
/// more than the item.
///
/// A manager has a pool of free processes. A process that needs one calls the manager of its own
/// PE, with the items and the link that the free one is to have; so it goes on at once when the
/// answer comes. The strategy says which manager is to give one; if that has none, the request goes
/// around the ring of managers. If all are empty, the list is full. Managers are reentrant: two may
/// ask each other.
///
/// The number of processes may change while the list runs. Those that are too many stay, as
/// requests may be on their way to them, but are not given out.
///
/// With G automatic the manager doubles it when only a quarter of its processes is free, an eighth,
/// and so on.
///
/// The chain does not survive the loss of a node. Each manager watches the next one of the ring,
/// and tells all others when its node is lost. Then all requests fail with node_lost; nobody waits
/// for an answer that cannot come.
///
/// To the service_root of the list a manager is what a range is to other services. Made by
/// walking_list::make; lives until the list ends.
class walk_manager : public range_process {
 public:
  static constexpr bool orrery_reentrant = true;

  /// All managers in the order of their ring, and which one of them this is.
  void join(const std::vector<remote<walk_manager>>& all, std::uint32_t self, spare_order o);
  /// At most so many processes of this PE are in the list from now on; it makes what it has not.
  void set_processes(std::uint64_t count);
  /// G and K from now on, as the list has checked them. Items that processes hold stay there.
  void set_parameters(std::uint32_t granularity, std::uint32_t forwards);
  void set_head(remote<walk_process> head) { head_ = head; }
  /// A head for the list, which is on this PE and ends with this manager.
  remote<walk_process> make_head();
  [[nodiscard]] remote<walk_process> head() const { return head_; }

  /// For a list process of this PE: a free process begins with these items, and precedes `behind`.
  spare take(const walk_link& behind, std::span<const std::byte> items);
  /// The same for another manager, here or at one of the next `left` managers.
  spare pass(std::uint32_t left, const walk_link& behind, std::span<const std::byte> items);
  /// A process is free again.
  void put(remote<walk_process> p) { free_.push_back(p); }

  /// A gate on this PE for a session. It ends when the session and its streams have ended. Throws
  /// node_lost if a part of the list is lost.
  remote<walk_gate> open(remote<presence> session, consistency order);
  /// The session of the gate has ended. Parks.
  void close(remote<walk_gate> gate);
  /// The gate ends, if its session and its streams have. Parks.
  void end_if_unused(remote<walk_gate> gate);

  [[nodiscard]] std::uint64_t free() const;
  /// Parks.
  [[nodiscard]] walk_report describe();
  /// No session gets a gate any more, and gates take no requests. Returns when those that they have
  /// taken are answered. Parks.
  void finish_requests();
  /// Destroys all processes that it has made. No request may be on its way at any manager.
  void end();

  /// State that lives as long as this manager.
  [[nodiscard]] remote<presence> mark();
  /// The node of the next manager is lost.
  void next_lost(const std::string& why);
  /// A part of the list is lost.
  void list_lost(const std::string& why);

  /// Requests go to gates: throws usage_error.
  bytes serve(const batch_head& head, std::span<const std::byte> requests) final;
  range_report report() final;

 protected:
  virtual walk_settings& settings() noexcept = 0;
  virtual std::uint64_t shortcuts() noexcept = 0;
  virtual remote<walk_process> make_process(bool is_head) = 0;
  virtual remote<walk_gate> make_gate(remote<walk_process> head, consistency order) = 0;

 private:
  spare give(const walk_link& behind, std::span<const std::byte> items);
  [[nodiscard]] spare_place place() { return {free(), settings().requests}; }

  std::vector<remote<walk_manager>> managers_;
  std::uint32_t self_ = 0;
  wire::unique_ptr<spare_strategy> strategy_;
  std::vector<spare_place> places_;
  remote<walk_process> head_;
  remote<walk_process> own_head_;  // that this manager made
  std::vector<remote<walk_process>> all_;
  std::size_t begun_ = 0;  // the first ones have been in the list
  std::vector<remote<walk_process>> free_;  // of those
  std::vector<remote<walk_gate>> gates_;
  std::uint64_t most_ = 0;
  std::uint64_t few_ = 0;  // free processes; with less G is doubled
  remote<presence> mark_;
  bool closed_ = false;  // the list is about to end
  std::string lost_;  // why the list is lost; empty: it is not
};
ORRERY_PROCESS(walk_manager, join, set_processes, set_parameters, set_head, make_head, head, take, pass, put, open,
               close, end_if_unused, free, describe, finish_requests, end, mark, next_lost, list_lost);

}  // namespace orrery::service
