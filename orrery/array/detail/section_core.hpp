// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/core.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

// Reductions over a section of an array, as far as they do not depend on the types of elements and
// indices.
namespace orrery::detail {

/// The part of a section on one PE, its *agent*: it counts for those members whose home this is.
///
/// Problem: members move and are destroyed while reductions are under way, and each reduction has
/// to be exact. The home of an index never changes. So contributions go there wherever the element
/// is, the agents form a tree that never changes either, and what has to come in is known:
/// contribution k of each member that is alive or was destroyed after it had contributed k times
/// (`departed_contributions_`). A section gets no new members; so an agent without members, below
/// which there are none, says so once and is not asked any more.
///
/// Owned by its process (section_agent); used on the PE's thread, also while a method of that
/// process is parked. Invariants: (1) open_ is sorted by number, above passed_; (2) reductions end
/// in their order.
class section_core {
 public:
  struct description {
    std::uint64_t id = 0;
    std::uint32_t array = 0;
    std::uint32_t parent = 0;  ///< PE; the agent's own: it is the root, where results come out
    std::vector<std::uint32_t> children;  ///< PEs
    template <class A>
    void serialize(A& a) {
      a & id & array & parent & children;
    }
  };

  /// Throws process_gone if there is no such array.
  section_core(pe& self, description s, std::size_t members);
  section_core(const section_core&) = delete;
  section_core& operator=(const section_core&) = delete;
  virtual ~section_core();

  [[nodiscard]] const description& about() const noexcept { return about_; }
  /// A member contributes, or a child has all of its part (p.child).
  void receive(const partial_result& p, wire::unique_ptr<accumulator> value, wire::unique_ptr<reduction_target> target,
               std::exception_ptr error);
  /// A member has ended that contributed so often; `index` says which.
  void left(sequence_number contributed, orrery::reader& index);
  /// Nobody below that child will contribute to what comes after that reduction.
  void child_ended(std::uint32_t pe, sequence_number after);
  [[nodiscard]] std::size_t open_reductions() const noexcept { return open_.size(); }
  /// Elements of the array were lost: those that are not over fail, and later ones.
  void elements_lost(const std::string& array) noexcept;
  /// Those that are not over never will be.
  void fail_reductions(const std::string& array) noexcept;
  /// Lines on its reductions that are not over.
  [[nodiscard]] std::string explain_waits(const std::string& array) const;

 protected:
  pe& self_;
  /// It is not a member any more.
  virtual void remove(orrery::reader& index) = 0;

 private:
  struct child {
    std::uint32_t pe = 0;
    sequence_number done = before_first;  // its last reduction
    bool has_ended = false;
    sequence_number ended = before_first;  // after that one
  };
  [[nodiscard]] open_reduction& open(sequence_number number);
  [[nodiscard]] std::uint64_t expected(sequence_number number) const noexcept;
  void forget_children() noexcept;
  void pass_on();
  void fail_lost_reductions(const std::string& array) noexcept;
  void tell_end();

  description about_;
  std::uint64_t alive_;
  // last reduction of members that ended, how many
  std::vector<std::pair<sequence_number, std::uint32_t>> departed_contributions_;
  std::vector<child> children_;  // that take part in reductions above passed_
  std::deque<open_reduction> open_;
  sequence_number passed_ = before_first;
  bool told_end_ = false;
};

[[noreturn]] void throw_null_section();
[[noreturn]] void throw_no_member(const std::string& element);
/// Tells the agent on `home` that a member has ended. `index` is packed.
void leave_section(array_core& part, std::uint32_t home, const membership& m, const bytes& index);
/// The element's membership. Throws usage_error if it is not in the section.
[[nodiscard]] membership& require_member(cell_base& c, std::uint64_t section);

}  // namespace orrery::detail
