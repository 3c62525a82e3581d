// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/group_part.hpp>
#include <orrery/process/detail/part_result.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::detail {

/// Errors name the types of the values that a collective exchanges, and of what combines them; of
/// void they say nothing.
template <class V = void, class Op = void>
struct collective_label {
  static constexpr std::string_view value = std::is_void_v<V> ? std::string_view() : type_name<V>();
  static constexpr std::string_view operation = std::is_void_v<Op> ? std::string_view() : type_name<Op>();
};
template <class V, class Op>
struct all_reduce_label : collective_label<V, Op> {
  static constexpr const char* name = "all_reduce";
};

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
template <class Label, class V, class Op>
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
      tell_call<&up>(orrery::pe(root.pe), root.slot, root.generation, part.index(), part.number(),
                     sent_result<V>{std::move(mine)});
    }
  }

  static void up(std::uint32_t index, std::uint32_t generation, std::uint32_t from, std::uint64_t number,
                 sent_result<V> r) {
    pe& self = here_pe();
    group_part* part = find_part(self, index, generation);
    if (part == nullptr) return;
    part->hear(number, what);
    take(self, *part, from, std::move(r));
  }
  // By value, as what is sent is moved then: PEs share no exception.
  static void down(std::uint32_t index, std::uint32_t generation, sent_result<V> r, std::uint64_t root) {
    group_part* part = find_part(here_pe(), index, generation);
    if (part != nullptr && part->current() == &what) finish(*part, r, root);
  }

  // At the first part.
  static void take(pe& self, group_part& part, std::uint32_t from, part_result<V> r) {
    const group_data& d = part.group().data();
    if (from >= d.parts.size()) return;
    if (part.reduction == nullptr) part.reduction = wire::make_unique<gathered>(what, d.parts.size());
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
    const std::uint64_t number = part.number();
    const address own = part.at();
    const part_result<V> nothing;
    const auto of_part = [&](std::size_t i) -> const part_result<V>& {
      const bool gets_it = all.error != nullptr || root == group_data::none || group.data().part_of[root] == i;
      return gets_it ? all : nothing;
    };
    // Members here go on last: what they send then comes after the result.
    try {
      for (std::size_t i = 1; i < group.data().parts.size(); ++i) send_down(group.data().parts[i].at, of_part(i), root);
    } catch (...) {
      if (group_part* const here = find_part(self, own.slot, own.generation))
        here->broken_everywhere(std::current_exception());
      return;
    }
    group_part* const here = find_part(self, own.slot, own.generation);
    if (here != nullptr && here->number() == number && here->current() == &what) finish(*here, of_part(0), root);
  }
  // If the result cannot be copied or written, the part gets what that throws.
  static void send_down(const address& to, const part_result<V>& r, std::uint64_t root) {
    const auto failed = [&](const std::exception_ptr& why) {  // PEs share no exception
      return sent_result<V>{{{}, 0, as_received(why, {"(group)", what.name, here_pe().id()})}};
    };
    const auto send = [&](sent_result<V> copy) {
      tell_call<&down>(orrery::pe(to.pe), to.slot, to.generation, std::move(copy), root);
    };
    try {
      try {
        send(r.error != nullptr ? failed(r.error) : sent_result<V>{r});
      } catch (const node_lost&) {  // the others are to have their result
      } catch (...) {
        send(failed(std::current_exception()));
      }
    } catch (const node_lost&) {
    } catch (const stopped&) {  // the program ends
    }
  }
  static void finish(group_part& part, const part_result<V>& r, std::uint64_t root) {
    for (arrival* a = part.arrivals(); a != nullptr; a = a->next) {
      auto* e = static_cast<entry*>(a);
      try {
        e->error = r.error;
        if (r.error != nullptr) continue;
        if (root_of(*e->op) != root) throw_other_root(Label::name, root_of(*e->op), root);
        if (root == group_data::none || root == part.members()[a->index].rank) e->out.emplace(r.values.at(0));
      } catch (...) {
        e->error = std::current_exception();
      }
    }
    part.complete();
  }

  static constexpr collective what{Label::name, &all_here, Label::value, Label::operation};
};

/// The exchanges of values among the members of a group; M: a member, or a communicator.
template <class M>
class exchanging {
 public:
  /// Combines the values of all members in the order of the ranks and returns the result, the same
  /// to all; a barrier with a value. `op` is associative; it need not be commutative. Throws as
  /// barrier, and what op throws.
  template <class V, class Op = std::plus<>>
  [[nodiscard]] V all_reduce(V value, Op op = {}) {
    return *reduce_as<all_reduce_label<V, Op>>(std::move(value), op);
  }
  /// For functions that members call together, and that errors know by the label: as all_reduce,
  /// but with at_root only that member gets the result, and the others nothing.
  template <class Label, class V, class Op>
  [[nodiscard]] std::optional<V> reduce_as(V value, const Op& op) {
    using reducer = all_reducer<Label, V, Op>;
    typename reducer::entry mine{{}, std::move(value), &op, std::nullopt, nullptr};
    static_cast<M&>(*this).meet(reducer::what, mine);
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

}  // namespace orrery::detail
