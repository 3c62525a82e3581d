// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>
#include <orrery/process/detail/part_result.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery {

template <class T>
class group;

namespace detail {

// Members that are being constructed, on this PE; the base class finds its own here.
class construction_scope {
 public:
  construction_scope(const slot& process, group_part& part, std::size_t index) noexcept
      : process_(&process), part_(&part), index_(static_cast<std::uint32_t>(index)), next_(first_) {
    if (next_ != nullptr) next_->previous_ = this;
    first_ = this;
  }
  construction_scope(const construction_scope&) = delete;
  construction_scope& operator=(const construction_scope&) = delete;
  ~construction_scope() {
    (previous_ != nullptr ? previous_->next_ : first_) = next_;
    if (next_ != nullptr) next_->previous_ = previous_;
  }

 private:
  friend class member_base;
  const slot* process_;
  group_part* part_;
  std::uint32_t index_;
  construction_scope* previous_ = nullptr;
  construction_scope* next_;
  static constinit thread_local construction_scope* first_;
};

/// The common base of the members of all groups. Not copyable: a member has one rank.
class member_base {
 public:
  member_base(const member_base&) = delete;
  member_base& operator=(const member_base&) = delete;

  /// The place of this process in its group, from 0 on. Does not park. Throws usage_error if it is
  /// in none.
  [[nodiscard]] std::size_t rank() const {
    check();
    return rank_;
  }
  /// The number of members. Does not park. Throws usage_error as rank().
  [[nodiscard]] std::size_t size() const {
    check();
    return handle_->size();
  }
  /// Returns when all members have called it; until then the process is parked in its method, and
  /// its PE goes on. Throws process_gone or node_lost when a member ends that the others wait for,
  /// stopped, and usage_error (at all members, if some call another collective at the same point:
  /// it names both, and later collectives of the group fail too).
  void barrier() {
    arrival a;
    meet(group_part::barrier, a);
  }

 protected:
  member_base() noexcept = default;
  ~member_base();

  void check() const {
    if (handle_ == nullptr) [[unlikely]]
      throw_alone();
  }
  /// Waits until all members have arrived.
  void meet(const collective& what, arrival& a);
  /// Joins the group if the process is being constructed by spawn_group; `where` is to hold it.
  void join(group_handle& where) noexcept;

 private:
  [[noreturn]] static void throw_alone();

  group_handle* handle_ = nullptr;
  address part_;
  std::uint32_t rank_ = 0;
  std::uint32_t index_ = 0;  // among the members of this PE
};

template <class V, class Op>
struct all_reducer;

/// The exchanges of values among the members of a group; M: a member, or a communicator.
template <class M>
class exchanging {
 public:
  /// Combines the values of all members in the order of the ranks and returns the result, the same
  /// to all; a barrier with a value. `op` is associative; it need not be commutative. Throws as
  /// barrier, and what op throws.
  template <class V, class Op = std::plus<>>
  [[nodiscard]] V all_reduce(V value, Op op = {}) {
    return *reduce_with(std::move(value), op);
  }
  /// For functions that members call together: as all_reduce, but with at_root only that member
  /// gets the result, and the others nothing.
  template <class V, class Op>
  [[nodiscard]] std::optional<V> reduce_with(V value, const Op& op) {
    typename all_reducer<V, Op>::entry mine{{}, std::move(value), &op, std::nullopt, nullptr};
    static_cast<M&>(*this).meet(all_reducer<V, Op>::what, mine);
    if (mine.error != nullptr) std::rethrow_exception(mine.error);
    return std::move(mine.out);
  }

  /// For functions that members call together: each gives a value, and gets the result that the
  /// exchange makes of the values of all.
  template <class Exchange, class V>
  [[nodiscard]] typename Exchange::result meet_with(V value) {
    typename Exchange::entry mine{{}, std::move(value), {}, nullptr};
    static_cast<M&>(*this).meet(Exchange::what, mine);
    if (mine.error != nullptr) std::rethrow_exception(mine.error);
    return std::move(mine.out);
  }
};

/// The member, or communicator, itself.
template <class M>
[[nodiscard]] M& participant(exchanging<M>& m) noexcept {
  return static_cast<M&>(m);
}

}  // namespace detail

/// The base of a class whose processes know their group: the paper's ProcessGroupMember (Givelberg
/// 2014, section 3.2).
///
///     struct FFT3 : orrery::member<FFT3> {
///       void transform();   // ... barrier(); this_group()[(rank() + 1) % size()]->take(page); ...
///     };
///
/// Each member has the group itself at hand, so that talking to a peer costs one message. All this
/// can be used in the methods and, as the places of all members are known before the first is
/// constructed, in the constructors too: a call to a peer that is not yet constructed waits until
/// it is. A process that spawn made alone is in no group: then all functions throw usage_error.
template <class T>
class member : public detail::member_base, public detail::exchanging<member<T>> {
 public:
  /// The group, as this PE knows it. Does not park.
  [[nodiscard]] const orrery::group<T>& this_group() const {
    check();
    return group_;
  }

 protected:
  member() noexcept { join(group_.handle_); }
  ~member() = default;

 private:
  friend class detail::exchanging<member<T>>;
  orrery::group<T> group_;
};

namespace detail {

/// An operation of a reduction whose result only one member gets.
template <class Op>
struct at_root {
  Op op;
  std::size_t root;

  template <class V>
  V operator()(V a, V b) const {
    return op(std::move(a), std::move(b));
  }
};
/// The member that alone gets the result; none: all do.
template <class Op>
[[nodiscard]] constexpr std::uint64_t root_of(const Op&) noexcept {
  return group_data::none;
}
template <class Op>
[[nodiscard]] constexpr std::uint64_t root_of(const at_root<Op>& op) noexcept {
  return op.root;
}

// A reduction among members. Each part combines the values of its members, the first part those of
// the parts, and sends the result to all, or to the part of the root: two messages for each PE.
template <class V, class Op>
struct all_reducer {
  struct entry : arrival {
    V in;
    const Op* op;
    std::optional<V> out;
    std::exception_ptr error;
  };
  struct gathered : reduction_base {
    std::vector<part_result<V>> from;
    std::uint32_t count = 0;
    gathered(const collective& w, std::size_t parts) : reduction_base(w), from(parts) {}
  };

  static void all_here(pe& self, group_part& part) {
    part_result<V> mine;
    try {
      std::vector<entry*> by_rank(part.members().size());
      for (arrival* a = part.arrivals(); a != nullptr; a = a->next) by_rank[a->index] = static_cast<entry*>(a);
      for (std::size_t i = 0; i < by_rank.size(); ++i) {
        if (part.begins_run(i)) {
          mine.values.push_back(std::move(by_rank[i]->in));
        } else {
          mine.values.back() = (*by_rank[i]->op)(std::move(mine.values.back()), std::move(by_rank[i]->in));
        }
      }
    } catch (...) {
      mine.failed = part.members().front().rank;
      mine.error = std::current_exception();
    }
    if (part.index() == 0) {
      take(self, part, 0, std::move(mine));
    } else {
      const address root = part.group().data().parts[0].at;
      tell_call<&up>(orrery::pe(root.pe), root.slot, root.generation, part.index(), part.number(), std::move(mine));
    }
  }

  static void up(std::uint32_t index, std::uint32_t generation, std::uint32_t from, std::uint64_t number,
                 part_result<V> r) {
    pe& self = here_pe();
    group_part* part = find_part(self, index, generation);
    if (part == nullptr) return;
    part->hear(number, what);
    take(self, *part, from, std::move(r));
  }
  static void down(std::uint32_t index, std::uint32_t generation, part_result<V> r, std::uint64_t root) {
    group_part* part = find_part(here_pe(), index, generation);
    if (part != nullptr && part->current() == &what) finish(*part, r, root);
  }

  // At the first part.
  static void take(pe& self, group_part& part, std::uint32_t from, part_result<V> r) {
    const group_data& d = part.group().data();
    if (from >= d.parts.size()) return;
    if (part.reduction == nullptr) part.reduction = std::make_unique<gathered>(what, d.parts.size());
    // the members do not call the same, and have heard so
    if (part.reduction->what != &what) return;
    auto& g = static_cast<gathered&>(*part.reduction);
    g.from[from] = std::move(r);
    if (++g.count < d.parts.size() || part.current() != &what) return;
    part.follow_all();
    part_result<V> all;
    try {
      rethrow_first(g.from);
      all.values.push_back(fold_runs<V>(d, g.from, *static_cast<entry*>(part.arrivals())->op));
    } catch (...) {
      all.failed = 0;
      all.error = std::current_exception();
    }
    part.reduction.reset();  // others may begin the next one before we are done here
    const group_handle group = part.group();  // the part may end while we wait for space
    const std::uint64_t root = root_of(*static_cast<entry*>(part.arrivals())->op);
    const part_result<V> nothing;
    const auto of_part = [&](std::size_t i) -> const part_result<V>& {
      const bool gets_it = all.error != nullptr || root == group_data::none || group.data().part_of[root] == i;
      return gets_it ? all : nothing;
    };
    finish(part, of_part(0), root);
    for (std::size_t i = 1; i < group.data().parts.size(); ++i) {
      const address to = group.data().parts[i].at;
      part_result<V> copy = of_part(i);  // PEs share no exception
      if (all.error != nullptr) copy.error = as_received(all.error, {"(group)", what.name, self.id()});
      try {
        tell_call<&down>(orrery::pe(to.pe), to.slot, to.generation, std::move(copy), root);
      } catch (const node_lost&) {  // the others are to have their result
      }
    }
  }
  static void finish(group_part& part, const part_result<V>& r, std::uint64_t root) {
    for (arrival* a = part.arrivals(); a != nullptr; a = a->next) {
      auto* e = static_cast<entry*>(a);
      try {
        e->error = r.error;
        if (r.error != nullptr) continue;
        if (root_of(*e->op) != root) throw_other_root(root_of(*e->op), root);
        if (root == group_data::none || root == part.members()[a->index].rank) e->out.emplace(r.values.at(0));
      } catch (...) {
        e->error = std::current_exception();
      }
    }
    part.complete();
  }

  static constexpr collective what{"all_reduce", &all_here, type_name<V>(), type_name<Op>()};
};

}  // namespace detail
}  // namespace orrery
