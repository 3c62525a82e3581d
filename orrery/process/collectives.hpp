// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/member.hpp>

#include <cstddef>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

// Exchanges between the members of a group, made of all_reduce. Called in their methods by all
// members, each with itself as `m`; each is a barrier, and throws as that does. The values go to
// all PEs of the group.
namespace orrery {

namespace detail {

struct append {
  template <class V>
  std::vector<V> operator()(std::vector<V> a, std::vector<V> b) const {
    a.insert(a.end(), std::move_iterator(b.begin()), std::move_iterator(b.end()));
    return a;
  }
};
struct first_given {
  template <class V>
  std::optional<V> operator()(std::optional<V> a, std::optional<V> b) const {
    return a ? std::move(a) : std::move(b);
  }
};

}  // namespace detail

/// The values of all members, by rank.
///
///     std::vector<int> all = all_gather(*this, mine);
template <class T, class V>
[[nodiscard]] std::vector<V> all_gather(member<T>& m, V value) {
  std::vector<V> mine;
  mine.push_back(std::move(value));
  return m.all_reduce(std::move(mine), detail::append{});
}

/// The value of the member of rank `root`; the others' are not looked at. Throws usage_error if
/// there is no such member.
template <class T, class V>
[[nodiscard]] V broadcast_from(member<T>& m, std::size_t root, V value) {
  if (root >= m.size()) throw usage_error(errc::bad_argument, "broadcast_from: the group has no member of this rank");
  std::optional<V> mine;
  if (m.rank() == root) mine.emplace(std::move(value));
  return *m.all_reduce(std::move(mine), detail::first_given{});
}

/// The values of the members up to this one combined, in the order of the ranks: rank 0 gets its
/// own.
template <class T, class V, class Op = std::plus<>>
[[nodiscard]] V scan(member<T>& m, V value, Op op = {}) {
  std::vector<V> all = all_gather(m, std::move(value));
  V total = std::move(all[0]);
  for (std::size_t i = 1; i <= m.rank(); ++i) total = op(std::move(total), std::move(all[i]));
  return total;
}

/// Each member gives one value for each member, and gets those that are for it, by rank. All values
/// go to all PEs: for large ones send messages to the peers. Throws usage_error, at all members, if
/// one gives another number of values.
template <class T, class V>
[[nodiscard]] std::vector<V> all_to_all(member<T>& m, std::vector<V> values) {
  std::vector<std::vector<V>> all = all_gather(m, std::move(values));
  std::vector<V> mine;
  mine.reserve(all.size());
  for (auto& from : all) {
    if (from.size() != all.size())
      throw usage_error(errc::bad_argument, "all_to_all: a member has not given one value for each");
    mine.push_back(std::move(from[m.rank()]));
  }
  return mine;
}

}  // namespace orrery
