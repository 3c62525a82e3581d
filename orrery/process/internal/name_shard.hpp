// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/nearest.hpp>
#include <orrery/process/detail/system.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/internal/name_records.hpp>
#include <orrery/process/placement.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace orrery::detail {

class name_repository;

/// The entry of a name in a shard.
struct name_answer {
  enum class is : std::uint8_t {
    retry,        ///< the shard sees another membership than the one that asks
    missing,
    here,         ///< `process` has it
    other_class,  ///< `process` has it and is of `class_name`
  };
  is what = is::retry;
  address process{};
  std::string class_name;
};

struct listed_name {
  std::string name;
  address process;
  std::uint32_t cls = 0;  ///< index in `classes`
};
struct name_list {
  bool retry = false;
  std::uint32_t slices = 1;
  std::vector<std::string> classes;
  std::vector<listed_name> names;
};

struct nearest_names {
  bool retry = false;
  std::vector<suggestion> best;
};

// The names that one PE keeps for the world; a system process of each PE.
//
// Problem: a shard must answer from memory, and yet never say "there is no such name" while nodes
// come and go, nor name a process of a node that is gone. So each request says which membership it
// was sent in. A shard answers only when it sees the same one, and has made itself complete for it:
// at the first request after a change it drops what is not its own any more and what named
// processes of nodes that are gone, and asks every node for the names of its processes that have
// become its own. A world that does not use names pays nothing.
//
// Where only nodes came or went that keep no names, there is nothing to ask: each name was given by
// the shard that has it now. So a program that has joined the world and is stopped holds up nobody.
//
// While it asks it is parked and requests wait in its mailbox; those it asks answer between two
// methods of their PE, so that there is no cycle of waits.
//
// Used by its own PE only. Invariants: (1) in the membership `complete_`, it has every confirmed
// name that it owns; (2) all entries are owned by it among `base_`; (3) if `settled_`, it was
// complete once among these keepers, and has given all names since that it owns.
class name_shard {
 public:
  static constexpr system_slot place = system_slot::names;

  name_shard(pe& home, name_records& records);

  // --- requests of other processes; `in` is the membership they were sent in ---
  /// Who has the name, if it is a `cls` or derived from it.
  [[nodiscard]] name_answer find(std::string_view name, std::string_view cls, std::uint64_t in);
  /// The same; if the name is missing, waiter `ticket` of PE `from` is told when it comes, unless
  /// the membership changes before.
  [[nodiscard]] name_answer subscribe(std::string_view name, std::string_view cls, std::uint64_t in, std::uint32_t from,
                                      std::uint64_t ticket);
  void unsubscribe(std::string_view name, std::uint32_t from, std::uint64_t ticket);
  /// Gives the name to the process unless another one has it: `here` or `other_class`, and who has
  /// it.
  [[nodiscard]] name_answer put(std::string_view name, address process, const class_chain& classes, std::uint64_t in);
  /// Takes the name from the process if it has it. False: retry.
  [[nodiscard]] bool erase(std::string_view name, address process, std::uint64_t in);
  [[nodiscard]] name_list list(std::string_view prefix, slice part, std::uint64_t in);
  [[nodiscard]] nearest_names nearest(std::string_view name, std::uint64_t in);

  // --- for the code that runs on this PE ---
  [[nodiscard]] name_records& records() noexcept { return records_; }
  /// The membership as this PE sees it; `sure`: look at the nodes even if the epoch is the same.
  [[nodiscard]] const membership_ptr& members(bool sure);

  /// A process of this PE that waits for a name. Lies on its stack.
  struct waiter {
    std::uint64_t ticket = 0;
    std::uint64_t membership = 0;     ///< that it subscribed in
    scheduler::fiber* parked = nullptr;
    bool woken = false;
  };
  void add(waiter& w);
  void remove(const waiter& w) noexcept { waiters_.erase(w.ticket); }
  /// Parks until the waiter is woken; false if the deadline came first.
  [[nodiscard]] bool wait(waiter& w, std::int64_t deadline_ns);
  void wake(std::uint64_t ticket) noexcept;
  /// Wakes those that subscribed in another membership.
  void membership_changed() noexcept;

 private:
  struct entry {
    address process;
    const class_chain* cls;
    std::uint64_t hash;
    bool confirmed;  ///< while the shard makes itself complete: nobody else can have the name
  };
  struct subscriber {
    std::uint32_t pe;
    std::uint64_t ticket;
  };
  using entries = std::unordered_map<std::string, entry, name_hash, std::equal_to<>>;

  [[nodiscard]] bool is_ready(std::uint64_t in, bool sure);
  [[nodiscard]] bool complete(membership_ptr now);
  [[nodiscard]] std::vector<digest> keep_own(const world_membership& now);
  [[nodiscard]] placement whom_to_ask(const member& m) const noexcept;
  [[nodiscard]] bool take_over(const world_membership& now, std::size_t node, pull request, future<pulled> asked);
  void merge(const world_membership& now, std::size_t node, pulled& from);
  void forget(const world_membership& now, std::size_t node);
  [[nodiscard]] const class_chain* intern(const class_chain& classes);
  [[nodiscard]] static name_answer tell(const entry& e, std::string_view cls);
  void tell_subscribers(std::string_view name);

  pe& home_;
  name_records& records_;
  membership_ptr members_;
  std::uint64_t complete_ = 0;  // the id of the membership
  std::vector<member> base_;
  bool settled_ = false;  // complete when `base_` was
  entries entries_;
  std::unordered_map<std::string, std::vector<subscriber>, name_hash, std::equal_to<>> subscribers_;
  std::map<std::string, class_chain, std::less<>> classes_;  // by the name of the class
  std::unordered_map<std::uint64_t, waiter*> waiters_;
  std::uint64_t tickets_ = 0;
};
ORRERY_PROCESS(name_shard, find, subscribe, unsubscribe, put, erase, list, nearest);

/// The shard of the calling PE. Throws stopped when that has come to its end, usage_error outside
/// of the runtime.
[[nodiscard]] name_shard& shard_here(pe& self);

}  // namespace orrery::detail
