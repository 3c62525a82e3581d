// SPDX-License-Identifier: Apache-2.0
#include "sort.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace psrs {

namespace {

using orrery::distribution;
using orrery::owner_computes;
using orrery::read_cache;
using orrery::release;
using orrery::shared_matrix;
using orrery::shared_vector;
using orrery::team_member;

/// Lets virtual time pass as if so many keys had been sorted, or merged from so many runs.
void take_time(costs c, std::size_t keys, std::size_t runs) {
  const double comparisons = static_cast<double>(keys) * std::log2(static_cast<double>(std::max<std::size_t>(runs, 1)));
  orrery::compute(std::chrono::nanoseconds(std::llround(c.compare_ns * comparisons)));
}

/// The data that the members share beside the keys.
template <class Key>
struct workspace {
  shared_matrix<Key> samples;  ///< those of each member in a row
  shared_vector<std::uint64_t> taken;  ///< how many samples each member has
  shared_vector<Key> pivots;
  /// In the row of a member: where its partitions begin, as indices of keys; the last is the end.
  shared_matrix<std::uint64_t> partitions;

  explicit workspace(std::uint64_t members)
      : samples(members, members, distribution::on(orrery::here())),
        taken(members, distribution::on(orrery::here())),
        pivots(members - 1, distribution::on(orrery::here())),
        partitions(members, members + 1, distribution::on(orrery::here())) {}
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

/// Phase 1: sorts what is the member's own, and gives regular samples of it to the master.
template <class Key>
void sort_own(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w, costs c) {
  with(owner_computes(keys, t), [&](auto& own) {
    std::span<Key> mine = own.span();
    std::sort(mine.begin(), mine.end());
    take_time(c, mine.size(), mine.size());
    const std::uint64_t n = std::min<std::uint64_t>(t.size(), mine.size());
    // Not before the keys are sorted: the first use of an object asks its maker, which would be
    // sorting.
    with(release(w.samples), release(w.taken), [&](auto& samples, auto& taken) {
      for (std::uint64_t i = 0; i < n; ++i) samples[t.rank(), i] = mine[i * mine.size() / n];
      taken[t.rank()] = n;
    });
  });
}

/// Phase 2, of the master: sorts the samples and chooses pivots at regular distances.
template <class Key>
void choose_pivots(const workspace<Key>& w, costs c) {
  with(owner_computes(w.samples), owner_computes(w.taken), release(w.pivots),
       [c](auto& samples, auto& taken, auto& pivots) {
         std::vector<Key> all;
         for (const auto member : samples.rows()) {
           const std::span<Key> row = samples.row(member);
           all.insert(all.end(), row.begin(), row.begin() + static_cast<std::ptrdiff_t>(taken[member]));
         }
         std::sort(all.begin(), all.end());
         take_time(c, all.size(), all.size());
         const std::uint64_t parts = pivots.size() + 1;
         for (std::uint64_t i = 1; i < parts; ++i)
           pivots[i - 1] = all.empty() ? Key{} : all[std::min<std::uint64_t>(i * all.size() / parts, all.size() - 1)];
       });
}

/// Phase 2, of all: divides the own keys by the pivots.
template <class Key>
void partition_own(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w) {
  with(owner_computes(keys, t), read_cache(w.pivots), release(w.partitions),
       [&](auto& own, auto& pivots, auto& partitions) {
         const std::span<Key> mine = own.span();
         const std::uint64_t first = mine.empty() ? 0 : own.indices().front();
         partitions[t.rank(), 0] = first;
         for (std::uint64_t i = 0; i < pivots.size(); ++i) {
           const auto end = std::upper_bound(mine.begin(), mine.end(), pivots[i]);
           partitions[t.rank(), i + 1] = first + static_cast<std::uint64_t>(end - mine.begin());
         }
         partitions[t.rank(), pivots.size() + 1] = first + mine.size();
       });
}

/// Keys in memory that is not cleared first, as a vector's is.
template <class Key>
class run_of_keys {
 public:
  explicit run_of_keys(std::uint64_t n) : keys_(std::make_unique_for_overwrite<Key[]>(n)), size_(n) {}
  [[nodiscard]] std::uint64_t size() const { return size_; }
  [[nodiscard]] Key* begin() const { return keys_.get(); }
  [[nodiscard]] std::span<Key> part(std::uint64_t first, std::uint64_t n) const { return {begin() + first, n}; }

 private:
  std::unique_ptr<Key[]> keys_;
  std::uint64_t size_;
};

/// Merges runs that follow each other, which end before these numbers, two and two.
template <class Key>
void merge_runs(run_of_keys<Key>& keys, std::vector<std::uint64_t> ends) {
  run_of_keys<Key> other(keys.size());
  while (ends.size() > 1) {
    std::vector<std::uint64_t> next;
    std::uint64_t first = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::uint64_t middle = ends[i];
      const std::uint64_t last = i + 1 < ends.size() ? ends[i + 1] : middle;
      std::merge(keys.begin() + static_cast<std::ptrdiff_t>(first), keys.begin() + static_cast<std::ptrdiff_t>(middle),
                 keys.begin() + static_cast<std::ptrdiff_t>(middle), keys.begin() + static_cast<std::ptrdiff_t>(last),
                 other.begin() + static_cast<std::ptrdiff_t>(first));
      next.push_back(last);
      first = last;
    }
    std::swap(keys, other);
    ends = std::move(next);
  }
}

/// Phases 3 and 4: gathers partition number `rank` of all members, merges, and writes it where it
/// belongs.
template <class Key>
void gather_and_merge(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w, costs c) {
  std::uint64_t offset = 0;  // of the partition among all keys
  // Where everybody's own keys begin, and the two ends of the partition: three columns.
  const run_of_keys<Key> mine = with(
      read_cache(w.partitions.part(0, t.size(), 0, 1)), read_cache(w.partitions.part(0, t.size(), t.rank(), 2)),
      [&](auto& first, auto& begin) {
        std::vector<std::uint64_t> ends;
        std::uint64_t size = 0;
        for (std::uint64_t m = 0; m < t.size(); ++m) {
          offset += begin[m, t.rank()] - first[m, 0];
          size += begin[m, t.rank() + 1] - begin[m, t.rank()];
          ends.push_back(size);
        }
        run_of_keys<Key> merged(size);
        std::vector<orrery::transfer> gathered;
        for (std::uint64_t n = 0; n < t.size(); ++n) {
          const std::uint64_t m = (t.rank() + n) % t.size();  // not all of the same member at once
          const std::uint64_t at = m == 0 ? 0 : ends[m - 1];
          gathered.push_back(start_copy(keys.part(begin[m, t.rank()], ends[m] - at), merged.part(at, ends[m] - at)));
        }
        for (orrery::transfer& g : gathered) g.wait();
        take_time(c, merged.size(), ends.size());
        merge_runs(merged, std::move(ends));
        return merged;
      });
  t.barrier();  // everybody has gathered: the keys may be overwritten
  copy(std::span<const Key>(mine.part(0, mine.size())), keys.part(offset, mine.size()));
}

template <class Key>
void sort_as_member(team_member& t, shared_vector<Key> keys, costs c) {
  // The master makes the workspace, so that it lies on the master's PE.
  const auto w = t.broadcast(t.rank() == 0 ? workspace<Key>(t.size()) : workspace<Key>());
  sort_own(t, keys, w, c);
  t.barrier();
  if (t.rank() == 0) choose_pivots(w, c);
  t.barrier();
  partition_own(t, keys, w);
  t.barrier();
  gather_and_merge(t, keys, w, c);
  t.barrier();
  if (t.rank() == 0) w.end();
}

}  // namespace

template <class Key>
void sort(const orrery::team& team, const shared_vector<Key>& keys, costs c) {
  orrery::spmd<&sort_as_member<Key>>(team, keys, c);
}

template void sort(const orrery::team&, const shared_vector<std::uint32_t>&, costs);
template void sort(const orrery::team&, const shared_vector<std::uint64_t>&, costs);
template void sort(const orrery::team&, const shared_vector<double>&, costs);
template void sort(const orrery::team&, const shared_vector<record>&, costs);

}  // namespace psrs
