// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/collective.hpp>
#include <orrery/process/detail/group_data.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace orrery {
struct wire_exception;
}

namespace orrery::detail {

class group_part;
struct broadcast_base;

/// A member that waits in a collective call; lies on its stack.
struct arrival {
  scheduler::fiber* waiter = nullptr;
  arrival* next = nullptr;
  std::uint32_t index = 0;  ///< among the members of its PE
  bool done = false;
  std::exception_ptr failed;
};

/// The values that the parts have gathered of a reduction; at the first part.
struct reduction_base {
  const collective* what;
  explicit reduction_base(const collective& w) noexcept : what(&w) {}
  virtual ~reduction_base() = default;
};

/// The part of a group that lives on one PE.
///
/// Problem: sixty-four members on two PEs that meet in a barrier, or hear a broadcast, should not
/// cost sixty-four messages between the PEs. So each PE with members has one process of this class.
/// A message to all members travels once to each part; the part hands it to its members inside its
/// PE. For a barrier it counts their arrivals, exchanges one message with log2(PEs) others
/// (dissemination: Hensgen, Finkel and Manber 1988), and lets them go on.
///
/// Its handlers never park, so that it is idle whenever something arrives: what it hands on stays
/// in order with the messages that the same sender sends to single members.
///
/// Made by spawn_group, ends with destroy of the group (or the runtime). Used by the thread of its
/// PE only. Invariants: (1) the arrivals are those of collective number completed_; (2) a message
/// of another part that is ahead of this one by a barrier is counted, not lost: counts never go
/// back; (3) once a member is gone nobody waits for it: collectives from number broken_from_ on
/// fail.
class group_part final : public scheduler::wait_watcher {
 public:
  struct local {
    std::uint32_t rank;
    std::uint32_t slot;
    std::uint32_t generation;
  };

  group_part(pe& self, address at);
  group_part(const group_part&) = delete;
  group_part& operator=(const group_part&) = delete;
  ~group_part();

  /// Learns which group it is part of, before the members are constructed. Throws bad_message,
  /// std::bad_alloc.
  void adopt(const group_handle& g);

  [[nodiscard]] address at() const noexcept { return at_; }
  [[nodiscard]] const group_handle& group() const noexcept { return group_; }
  [[nodiscard]] std::uint32_t index() const noexcept { return index_; }  ///< among the parts
  [[nodiscard]] const std::vector<local>& members() const noexcept { return members_; }
  [[nodiscard]] bool begins_run(std::size_t i) const noexcept {
    return i == 0 || members_[i].rank != members_[i - 1].rank + 1;
  }
  [[nodiscard]] slot* find(std::size_t i) const noexcept;
  /// The index among members() of a process of this PE; members().size() if it is none.
  [[nodiscard]] std::size_t index_of(const slot& s) const noexcept;

  // --- members that wait for each other ----------------------------------------------------------
  /// Waits until all members of the group have arrived. Throws process_gone or node_lost if one
  /// never will, or the group was dismissed, stopped, usage_error at all members if they do not
  /// call the same. The part may be gone when it returns.
  void arrive(const collective& what, arrival& a);
  /// The members of this PE that have arrived, in any order.
  [[nodiscard]] arrival* arrivals() const noexcept { return first_; }
  /// The collective in which all members of this PE wait, or null.
  [[nodiscard]] const collective* current() const noexcept {
    return arrived_ != 0 && arrived_ == members_.size() ? what_ : nullptr;
  }
  /// The collective is over: all who wait go on.
  void complete() noexcept { release(false); }
  wire::unique_ptr<reduction_base> reduction;
  /// The values that other parts have sent for the members of this one, by the number of the
  /// collective: the present one, or the next.
  wire::unique_ptr<reduction_base> exchanges[2];

  static const collective barrier;
  /// The running method comes after all members that have arrived, or were heard of, in the present
  /// collective.
  void follow_all() { self_.order().take(order_of(completed_)); }
  /// The number of the collective that its members are in, or will call next.
  [[nodiscard]] std::uint64_t number() const noexcept { return completed_; }
  /// Another part is in `what`, as the collective with that number.
  void hear(std::uint64_t number, const collective& what) noexcept;
  /// Another part says that its side of a barrier's round is done.
  void barrier_message(std::uint32_t round, std::uint64_t number);
  /// A member ends: collectives from `number` on will not complete.
  void member_gone(std::uint32_t rank) noexcept;
  /// The same of a member of another part.
  void hear_of_end(std::uint64_t number, std::uint32_t rank) noexcept;
  void broken(std::uint64_t number, std::exception_ptr why) noexcept;
  /// This part cannot do its share in the present collective: that and later ones fail at all
  /// parts.
  void broken_everywhere(const std::exception_ptr& why) noexcept;
  /// The same of another part, which is on that PE.
  void hear_of_failure(std::uint64_t number, const wire_exception& why, std::uint32_t at_pe) noexcept;
  /// From now on the ends of all members are noticed, on all PEs: each part watches those of its
  /// PE. (Members that spawn_group has made of a class with the base `member` tell it themselves.)
  /// Throws std::bad_alloc.
  void watch_members();
  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }
  void pes_lost(pe& self) noexcept override;
  void cancel_waits(pe& self) noexcept override;
  [[nodiscard]] std::string explain_waits() const override;

  // --- broadcasts --------------------------------------------------------------------------------
  broadcast_base* outstanding = nullptr;  ///< list of those that members have still to execute
  /// The last one to end, if it failed at a member; in no collective since.
  struct failure {
    const scheduler::handler* method = nullptr;
    std::uint32_t rank = 0;
    std::exception_ptr error;
    std::uint64_t before = 0;  ///< the number of the collective that was to come
  } last_failure;
  bool ending = false;  ///< the part ends when there are none any more

 private:
  void tell_failure(std::uint64_t number, const wire_exception& why, std::uint32_t at_pe) noexcept;
  /// The key of happens_before::give for a collective. Some may be one ahead, and others still
  /// leave the one before.
  [[nodiscard]] const void* order_of(std::uint64_t number) const noexcept {
    return reinterpret_cast<const char*>(this) + number % 4;
  }
  void disagree(std::uint64_t number, const collective& one, const collective& other) noexcept;
  void exchange();
  void signal(std::uint32_t round);
  void release(bool failed) noexcept;

  pe& self_;
  address at_;
  group_handle group_;
  std::vector<local> members_;
  std::uint32_t index_ = 0;

  const collective* what_ = nullptr;  // that has begun
  collective_order order_;
  std::vector<char> inside_;  // by member: it has arrived
  arrival* first_ = nullptr;
  arrival* last_ = nullptr;
  std::uint32_t arrived_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t barriers_ = 0;  // of these
  std::uint32_t round_ = 0;
  bool exchanging_ = false;  // all members of this PE are in the barrier
  bool watching_ = false;
  std::vector<std::uint64_t> received_;  // messages of each round, of all barriers
  std::exception_ptr broken_;
  std::uint64_t broken_from_ = 0;
};

/// The part at an address of this PE, or null if it is gone.
[[nodiscard]] group_part* find_part(pe& self, std::uint32_t index, std::uint32_t generation) noexcept;

}  // namespace orrery::detail
