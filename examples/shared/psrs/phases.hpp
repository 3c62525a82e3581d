// SPDX-License-Identifier: Apache-2.0
#pragma once

// The phases of the sort, on handles of scopes or, by default access, on the data themselves. The
// keys of a member are a span or, by default, iterators. sort.cpp has the scopes around them.

#include "sort.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <ranges>
#include <vector>

namespace psrs {

/// Lets virtual time pass as if so many keys had been sorted, or merged from so many runs.
inline void take_time(costs c, std::size_t keys, std::size_t runs) {
  const double comparisons = static_cast<double>(keys) * std::log2(static_cast<double>(std::max<std::size_t>(runs, 1)));
  orrery::compute(std::chrono::nanoseconds(std::llround(c.compare_ns * comparisons)));
}

/// The data that the members share beside the keys.
template <class Key>
struct workspace {
  orrery::shared_matrix<Key> samples;  ///< those of each member in a row
  orrery::shared_vector<std::uint64_t> taken;  ///< how many samples each member has
  orrery::shared_vector<Key> pivots;
  /// In the row of a member: where its partitions begin, as indices of keys; the last is the end.
  orrery::shared_matrix<std::uint64_t> partitions;

  explicit workspace(std::uint64_t members)
      : samples(members, members, orrery::distribution::on(orrery::here())),
        taken(members, orrery::distribution::on(orrery::here())),
        pivots(members - 1, orrery::distribution::on(orrery::here())),
        partitions(members, members + 1, orrery::distribution::on(orrery::here())) {}
  workspace() = default;
  void end() const {
    destroy(samples);
    destroy(taken);
    destroy(pivots);
    destroy(partitions);
  }
  template <class A>
  void serialize(A& a) {
    a & samples & taken & pivots & partitions;
  }
};

template <class Keys, class Samples, class Taken>
void give_samples(const orrery::team_member& t, const Keys& mine, Samples& samples, Taken& taken) {
  const std::uint64_t n = std::min<std::uint64_t>(t.size(), mine.size());
  for (std::uint64_t i = 0; i < n; ++i) samples[t.rank(), i] = mine[i * mine.size() / n];
  taken[t.rank()] = n;
}

template <class Key, class Samples, class Taken, class Pivots>
void choose(std::uint64_t members, Samples& samples, Taken& taken, Pivots& pivots, costs c) {
  std::vector<Key> all;
  for (std::uint64_t m = 0; m < members; ++m) {
    const std::uint64_t n = taken[m];
    for (std::uint64_t i = 0; i < n; ++i) all.push_back(samples[m, i]);
  }
  std::sort(all.begin(), all.end());
  take_time(c, all.size(), all.size());
  for (std::uint64_t i = 1; i < members; ++i)
    pivots[i - 1] = all.empty() ? Key{} : all[std::min<std::uint64_t>(i * all.size() / members, all.size() - 1)];
}

template <class Key, class Keys, class Pivots, class Partitions>
void divide(const orrery::team_member& t, const Keys& mine, std::uint64_t first, Pivots& pivots,
            Partitions& partitions) {
  partitions[t.rank(), 0] = first;
  for (std::uint64_t i = 0; i + 1 < t.size(); ++i) {
    const Key pivot = pivots[i];
    const auto end = std::ranges::upper_bound(mine, pivot, std::less<Key>());
    partitions[t.rank(), i + 1] = first + static_cast<std::uint64_t>(end - mine.begin());
  }
  partitions[t.rank(), t.size()] = first + mine.size();
}

/// The number of the first key that this PE owns, and its keys by default access.
template <class Key>
std::uint64_t first_own(const orrery::shared_vector<Key>& keys) {
  const auto own = keys.local_indices();
  return own.empty() ? 0 : own.front();
}
template <class Key>
auto own_range(const orrery::shared_vector<Key>& keys) {
  const auto begin = keys.begin() + static_cast<std::int64_t>(first_own(keys));
  return std::ranges::subrange(begin, begin + static_cast<std::int64_t>(keys.local_indices().size()));
}

/// The keys of a member at the end, and the number of the first one among all.
template <class Key>
struct partition {
  std::uint64_t first = 0;
  std::vector<Key> keys;
};

/// Phases 3 and 4 key by key.
template <class Key, class Partitions, class Keys>
partition<Key> collect(const orrery::team_member& t, Partitions& partitions, Keys& keys) {
  partition<Key> mine;
  for (std::uint64_t m = 0; m < t.size(); ++m) {
    const std::uint64_t all = partitions[m, 0];
    const std::uint64_t begin = partitions[m, t.rank()];
    const std::uint64_t end = partitions[m, t.rank() + 1];
    mine.first += begin - all;
    for (std::uint64_t i = begin; i < end; ++i) mine.keys.push_back(keys[i]);
  }
  std::sort(mine.keys.begin(), mine.keys.end());
  return mine;
}
template <class Key, class Keys>
void put(const partition<Key>& p, Keys& keys) {
  for (std::uint64_t i = 0; i < p.keys.size(); ++i) keys[p.first + i] = p.keys[i];
}

}  // namespace psrs
