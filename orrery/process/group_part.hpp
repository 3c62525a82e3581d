// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/collective.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/wire/exception.hpp>

#include <compare>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// The parts of a group.
//   group_data    who its members are and where: constant, shared by all copies of a group inside a
//                 node
//   group_handle  the small value that refers to it: all there is in a group<T>
//   group_part    the process on each PE with members that broadcasts, reductions and barriers go
//                 through
namespace orrery::detail {

/// The members of a group. Does not change; everything that needs it holds on to it.
struct group_data {
  static constexpr std::uint32_t none = 0xffff'ffff;
  /// Set in the rank of a member whose constructor failed because another one's had: the other
  /// one's exception is what spawn_group throws.
  static constexpr std::uint32_t after_another = 0x8000'0000;
  struct part {
    address at;
    std::uint32_t first = none;  ///< its lowest rank
    std::uint32_t members = 0;
  };
  std::vector<address> members;  ///< by rank
  std::vector<part> parts;  ///< one for each PE with members, in the order of their lowest ranks
  std::vector<std::uint32_t> part_of;  ///< rank -> index in parts

  /// Throws bad_message unless there is exactly one part on each PE that has members.
  group_data(std::vector<address> members, const std::vector<address>& parts);
  /// The part on a PE, or null.
  [[nodiscard]] const part* on(std::uint32_t pe) const noexcept;
  /// The parts' results lie in runs of consecutive ranks: true if a run begins at this rank.
  [[nodiscard]] bool begins_run(std::size_t rank) const noexcept {
    return rank == 0 || part_of[rank] != part_of[rank - 1];
  }
};

/// usage_error: a rank that is not below the number of members.
[[noreturn]] void throw_no_member(const char* what, std::size_t rank, std::size_t size);

class group_handle;
[[nodiscard]] group_handle renamed(const references& r, const group_handle& before);

/// A value that refers to a group_data. Sending it to another node copies the data: afterwards each
/// member is one message away (the paper's deep copy in SetProcessGroup).
class group_handle {
 public:
  group_handle() noexcept = default;
  explicit group_handle(std::shared_ptr<const group_data> d) noexcept : data_(std::move(d)) {}

  [[nodiscard]] explicit operator bool() const noexcept { return data_ != nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return data_ != nullptr ? data_->members.size() : 0; }
  /// Throws usage_error if it refers to none.
  [[nodiscard]] const group_data& data() const {
    if (data_ == nullptr) [[unlikely]]
      throw_null();
    return *data_;
  }
  /// Throws also usage_error if there is no such rank.
  [[nodiscard]] const address& member(std::size_t rank) const {
    const group_data& d = data();
    if (rank >= d.members.size()) [[unlikely]]
      throw_no_member("group", rank, d.members.size());
    return d.members[rank];
  }
  friend bool operator==(const group_handle& a, const group_handle& b) noexcept {
    return a.data_ == b.data_ || (a.data_ != nullptr && b.data_ != nullptr && a.data_->members == b.data_->members);
  }
  friend std::strong_ordering operator<=>(const group_handle& a, const group_handle& b) noexcept {
    if (a.data_ == b.data_) return std::strong_ordering::equal;
    if (a.data_ == nullptr || b.data_ == nullptr) return (a.data_ != nullptr) <=> (b.data_ != nullptr);
    return a.data_->members <=> b.data_->members;
  }
  [[nodiscard]] std::size_t hash() const noexcept;
  [[nodiscard]] std::string text() const;

  template <class A>
  void serialize(A& a) {
    bool some = data_ != nullptr;
    a & some;
    if (!some) return;
    std::vector<address> parts;
    if constexpr (A::is_saving::value) {
      for (const auto& p : data_->parts) parts.push_back(p.at);
      a & data_->members & parts;
    } else {
      std::vector<address> members;
      a & members & parts;
      data_ = std::make_shared<const group_data>(std::move(members), parts);
      rename_after_restart(a, *this);
    }
  }

 private:
  [[noreturn]] static void throw_null();

  std::shared_ptr<const group_data> data_;
};

class group_part;
struct broadcast_base;

/// A member that waits in a collective call; lies on its stack.
struct arrival {
  scheduler::fiber* waiter = nullptr;
  arrival* next = nullptr;
  std::uint32_t index = 0;  ///< among the members of its PE
  bool done = false;
  bool failed = false;
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
  /// never will, stopped, usage_error at all members if they do not call the same.
  void arrive(const collective& what, arrival& a);
  /// The members of this PE that have arrived, in any order.
  [[nodiscard]] arrival* arrivals() const noexcept { return first_; }
  /// The collective in which all members of this PE wait, or null.
  [[nodiscard]] const collective* current() const noexcept {
    return arrived_ != 0 && arrived_ == members_.size() ? what_ : nullptr;
  }
  /// The collective is over: all who wait go on.
  void complete() noexcept { release(false); }
  std::unique_ptr<reduction_base> reduction;
  /// The values that other parts have sent for the members of this one, by the number of the
  /// collective: the present one, or the next.
  std::unique_ptr<reduction_base> exchanges[2];

  static const collective barrier;
  /// The running method comes after all members that have arrived, or were heard of, in the present
  /// collective.
  void follow_all() { self_.take_order(order_of(completed_)); }
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
  [[nodiscard]] bool is_broken() const noexcept { return broken_ != nullptr; }
  void pes_lost(pe& self) noexcept override;
  void cancel_waits(pe& self) noexcept override;
  [[nodiscard]] std::string explain_waits() const override;

  // --- broadcasts --------------------------------------------------------------------------------
  broadcast_base* outstanding = nullptr;  ///< list of those that members have still to execute
  bool ending = false;  ///< the part ends when there are none any more

 private:
  /// The key of run_state::give_order for a collective. Some may be one ahead, and others still
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
  arrival* first_ = nullptr;
  arrival* last_ = nullptr;
  std::uint32_t arrived_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t barriers_ = 0;  // of these
  std::uint32_t round_ = 0;
  bool exchanging_ = false;  // all members of this PE are in the barrier
  std::vector<std::uint64_t> received_;  // messages of each round, of all barriers
  std::exception_ptr broken_;
  std::uint64_t broken_from_ = 0;
};

/// The answer of a part to a broadcast or reduction: the results of its members by rank (for a
/// reduction: of runs of consecutive ranks), or the exception of the lowest rank.
template <class R>
struct part_result {
  using values_type = std::vector<std::conditional_t<std::is_void_v<R>, char, R>>;
  values_type values;
  std::uint32_t failed = group_data::none;  ///< the lowest rank that threw
  std::exception_ptr error;
  const scheduler::handler* method = nullptr;

  template <class A>
  void serialize(A& a) {
    a & failed;
    if (failed == group_data::none) {
      a & values;
      return;
    }
    wire_exception form;
    where at;
    if constexpr (A::is_saving::value) {
      form = encode_exception(error);
      if (method != nullptr) at = {std::string(method->class_name), std::string(method->method), 0};
      at.pe = here_pe().id();
    }
    a & form & at.class_name & at.method & at.pe;
    if constexpr (A::is_loading::value) error = decode_exception(form, at);
  }
};

/// The part at an address of this PE, or null if it is gone.
[[nodiscard]] group_part* find_part(pe& self, std::uint32_t index, std::uint32_t generation) noexcept;

/// Throws the exception of the lowest rank, if there is one.
template <class Results>
void rethrow_first(const Results& results) {
  std::uint32_t rank = group_data::none;
  const std::exception_ptr* first = nullptr;
  for (const auto& r : results) {
    if (r.failed >= rank) continue;
    rank = r.failed;
    first = &r.error;
  }
  if (first != nullptr) std::rethrow_exception(*first);
}

/// Combines the results of runs in the order of the ranks. `results` are by part.
template <class R, class Results, class Op>
R fold_runs(const group_data& d, Results& results, const Op& op) {
  std::vector<std::size_t> next(d.parts.size());
  auto take = [&](std::size_t rank) -> R {
    const std::uint32_t p = d.part_of[rank];
    return std::move(results[p].values.at(next[p]++));
  };
  R all = take(0);
  for (std::size_t rank = 1; rank < d.members.size(); ++rank)
    if (d.begins_run(rank)) all = op(std::move(all), take(rank));
  return all;
}

}  // namespace orrery::detail
