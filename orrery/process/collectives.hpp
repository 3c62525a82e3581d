// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/member.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

// Exchanges between the members of a group. Called in their methods by all members, each with
// itself, or with its communicator, as `m`; each is a barrier, and throws as that does. Those that
// are made of all_reduce send their values to all PEs of the group; reduce_to and gather_to to that
// of rank 0 and that of the root; all_to_all to those that they are for.
namespace orrery {

namespace detail {

struct append {
  template <class V>
  std::vector<V> operator()(std::vector<V> a, std::vector<V> b) const {
    a.insert(a.end(), std::move_iterator(b.begin()), std::move_iterator(b.end()));
    return a;
  }
};
/// An exchange among members. Each part sends one message to each other part, with the values that
/// its members have for the members there. The collective is over where all messages have come.
template <class V>
struct all_to_all_exchange {
  using result = std::vector<V>;
  struct entry : arrival {
    std::vector<V> in;
    std::vector<V> out;
    std::exception_ptr error;
  };
  /// For the members of one part, by rank there and then by rank here.
  struct shipment {
    std::vector<V> values;
    bool bad = false;  // a member has not given one value for each
    std::exception_ptr unread;  // why it could not be read
    template <class A>
    void serialize(A& a) {
      a & bad;
      serialize_or_note(a, values, unread);
    }
  };
  struct gathered : reduction_base {
    std::vector<std::optional<shipment>> from;  // by part
    std::size_t count = 0;
    gathered(const collective& w, std::size_t parts) : reduction_base(w), from(parts) {}
  };

  static void all_here(pe& self, group_part& part) {
    const group_handle group = part.group();  // the part may end while we wait for space
    const group_data& d = group.data();
    std::vector<entry*> mine(part.members().size());
    bool bad = false;
    for (arrival* a = part.arrivals(); a != nullptr; a = a->next) {
      mine[a->index] = static_cast<entry*>(a);
      bad = bad || mine[a->index]->in.size() != d.members.size();
    }
    std::vector<shipment> out(d.parts.size());
    for (auto& s : out) s.bad = bad;
    if (!bad)
      for (std::size_t rank = 0; rank < d.members.size(); ++rank)
        for (entry* e : mine) out[d.part_of[rank]].values.push_back(std::move(e->in[rank]));
    const std::uint32_t from = part.index();
    const std::uint64_t number = part.number();
    const address own = part.at();
    for (std::size_t i = 0; i < d.parts.size(); ++i) {
      const address to = d.parts[i].at;
      if (i == from) continue;
      try {
        tell_call<&arrive>(orrery::pe(to.pe), to.slot, to.generation, from, number, std::move(out[i]));
      } catch (const node_lost&) {  // members are told of that as of each loss
      }
    }
    if (group_part* p = find_part(self, own.slot, own.generation)) take(*p, from, number, std::move(out[from]));
  }

  static void arrive(std::uint32_t index, std::uint32_t generation, std::uint32_t from, std::uint64_t number,
                     shipment s) {
    group_part* part = find_part(here_pe(), index, generation);
    if (part == nullptr) return;
    part->hear(number, what);
    take(*part, from, number, std::move(s));
  }

 private:
  static void take(group_part& part, std::uint32_t from, std::uint64_t number, shipment s) {
    const group_data& d = part.group().data();
    auto& at = part.exchanges[number % 2];
    if (from >= d.parts.size() || number < part.number() || number > part.number() + 1) return;
    if (at == nullptr) at = wire::make_unique<gathered>(what, d.parts.size());
    if (at->what != &what) return;  // the members do not call the same, and have heard so
    auto& g = static_cast<gathered&>(*at);
    if (!g.from[from]) ++g.count;
    g.from[from].emplace(std::move(s));
    if (g.count < d.parts.size() || number != part.number() || part.current() != &what) return;
    part.follow_all();
    const wire::unique_ptr<reduction_base> all = std::move(at);
    finish(part, d, g);
  }
  static void finish(group_part& part, const group_data& d, gathered& g) {
    bool bad = false;
    for (const auto& s : g.from) bad = bad || s->bad;
    std::vector<std::size_t> members(d.parts.size());  // of each part
    for (const std::uint32_t p : d.part_of) ++members[p];
    for (arrival* a = part.arrivals(); a != nullptr; a = a->next) {
      auto* e = static_cast<entry*>(a);
      try {
        if (bad) throw usage_error(errc::bad_argument, "all_to_all: a member has not given one value for each");
        for (const auto& s : g.from)
          if (s->unread != nullptr) std::rethrow_exception(s->unread);
        std::vector<std::size_t> next(d.parts.size());
        for (std::size_t p = 0; p < next.size(); ++p) next[p] = a->index * members[p];
        e->out.reserve(d.members.size());
        for (const std::uint32_t p : d.part_of) e->out.push_back(std::move(g.from[p]->values.at(next[p]++)));
      } catch (...) {
        e->error = std::current_exception();
      }
    }
    part.complete();
  }

 public:
  static constexpr collective what{"all_to_all", &all_here, type_name<V>()};
};

struct first_given {
  template <class V>
  std::optional<V> operator()(std::optional<V> a, std::optional<V> b) const {
    return a ? std::move(a) : std::move(b);
  }
};

/// A value for an exchange in which one member, the root, has a part of its own.
template <class V>
struct rooted {
  std::uint64_t root = 0;  ///< that this member has named
  V value{};
  template <class A>
  void serialize(A& a) {
    a & root & value;
  }
};
/// Combines such values. If members do not name the same root, all of them get the exception.
template <class Label, class Op>
struct of_one_root {
  Op op;

  template <class V>
  rooted<V> operator()(rooted<V> a, rooted<V> b) const {
    if (a.root != b.root) throw_other_root(Label::name, a.root, b.root);
    return {a.root, op(std::move(a.value), std::move(b.value))};
  }
};
template <class Label, class M, class V, class Op>
std::optional<V> reduce_to_root(exchanging<M>& m, std::size_t root, V value, Op op) {
  const bool there = root < participant(m).size();
  const at_root<of_one_root<Label, Op>> at{{std::move(op)}, there ? root : 0};
  auto all = m.template reduce_as<Label>(rooted<V>{root, std::move(value)}, at);
  if (!there) throw_no_member(Label::name, root, participant(m).size());
  if (!all) return std::nullopt;
  return std::move(all->value);
}

/// The values of all members, by rank, for functions that members call together.
template <class Label, class M, class V>
std::vector<V> gather_as(exchanging<M>& m, V value) {
  std::vector<V> mine;
  mine.push_back(std::move(value));
  return *m.template reduce_as<Label>(std::move(mine), append{});
}

template <class V>
struct all_gather_label : collective_label<V> {
  static constexpr const char* name = "all_gather";
};
template <class V>
struct broadcast_from_label : collective_label<V> {
  static constexpr const char* name = "broadcast_from";
};
template <class V, class Op>
struct scan_label : collective_label<V, Op> {
  static constexpr const char* name = "scan";
};
template <class V, class Op>
struct exclusive_scan_label : collective_label<V, Op> {
  static constexpr const char* name = "exclusive_scan";
};
template <class V, class Op>
struct reduce_to_label : collective_label<V, Op> {
  static constexpr const char* name = "reduce_to";
};
template <class V>
struct gather_to_label : collective_label<V> {
  static constexpr const char* name = "gather_to";
};

}  // namespace detail

/// The values of all members, by rank.
///
///     std::vector<int> all = all_gather(*this, mine);
template <class M, class V>
[[nodiscard]] std::vector<V> all_gather(detail::exchanging<M>& m, V value) {
  return detail::gather_as<detail::all_gather_label<V>>(m, std::move(value));
}

/// The value of the member of rank `root`; the others' are not looked at. Throws usage_error, at
/// all members, if there is no such member, or if they name different ones; else as barrier.
template <class M, class V>
[[nodiscard]] V broadcast_from(detail::exchanging<M>& m, std::size_t root, V value) {
  using label = detail::broadcast_from_label<V>;
  std::optional<V> mine;
  if (detail::participant(m).rank() == root) mine.emplace(std::move(value));
  auto all = m.template reduce_as<label>(detail::rooted<std::optional<V>>{root, std::move(mine)},
                                         detail::of_one_root<label, detail::first_given>{});
  if (root >= detail::participant(m).size()) detail::throw_no_member(label::name, root, detail::participant(m).size());
  return *std::move(all->value);
}

/// The values of the members up to this one combined, in the order of the ranks: rank 0 gets its
/// own.
template <class M, class V, class Op = std::plus<>>
[[nodiscard]] V scan(detail::exchanging<M>& m, V value, Op op = {}) {
  std::vector<V> all = detail::gather_as<detail::scan_label<V, Op>>(m, std::move(value));
  V total = std::move(all[0]);
  for (std::size_t i = 1; i <= detail::participant(m).rank(); ++i) total = op(std::move(total), std::move(all[i]));
  return total;
}

/// The values of the members before this one combined with `init`, in the order of the ranks: rank
/// 0 gets `init`.
///
///     std::size_t first = exclusive_scan(*this, mine.size(), 0uz);  // where mine begin among all
template <class M, class V, class Op = std::plus<>>
[[nodiscard]] V exclusive_scan(detail::exchanging<M>& m, V value, V init, Op op = {}) {
  std::vector<V> all = detail::gather_as<detail::exclusive_scan_label<V, Op>>(m, std::move(value));
  for (std::size_t i = 0; i < detail::participant(m).rank(); ++i) init = op(std::move(init), std::move(all[i]));
  return init;
}

/// As all_reduce, for the member of rank `root` only: it gets the result, the others nothing.
/// Throws usage_error also if there is no such member, or members name different ones, at all of
/// them.
///
///     if (auto sum = reduce_to(*this, 0, mine)) print(*sum);
template <class M, class V, class Op = std::plus<>>
[[nodiscard]] std::optional<V> reduce_to(detail::exchanging<M>& m, std::size_t root, V value, Op op = {}) {
  return detail::reduce_to_root<detail::reduce_to_label<V, Op>>(m, root, std::move(value), std::move(op));
}

/// The values of all members, by rank, for the member of rank `root`; the others get an empty
/// vector. Throws as reduce_to.
template <class M, class V>
[[nodiscard]] std::vector<V> gather_to(detail::exchanging<M>& m, std::size_t root, V value) {
  std::vector<V> mine;
  mine.push_back(std::move(value));
  return detail::reduce_to_root<detail::gather_to_label<V>>(m, root, std::move(mine), detail::append{})
      .value_or(std::vector<V>{});
}

/// Each member gives one value for each member, and gets those that are for it, by rank. A value
/// travels once, to the PE of the member that it is for: each PE sends one message to each other.
/// Throws usage_error, at all members, if one gives another number of values; else as barrier.
template <class M, class V>
[[nodiscard]] std::vector<V> all_to_all(detail::exchanging<M>& m, std::vector<V> values) {
  return m.template meet_with<detail::all_to_all_exchange<V>>(std::move(values));
}

}  // namespace orrery
