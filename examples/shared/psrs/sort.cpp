// SPDX-License-Identifier: Apache-2.0
#include "phases.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace psrs {

namespace {

using orrery::owner_computes;
using orrery::read_cache;
using orrery::release;
using orrery::shared_vector;
using orrery::team_member;

/// Phase 1: sorts what is the member's own, and gives regular samples of it to the master.
template <class Key>
void sort_own(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w, costs c) {
  with(owner_computes(keys, t), [&](auto& own) {
    std::span<Key> mine = own.span();
    std::sort(mine.begin(), mine.end());
    take_time(c, mine.size(), mine.size());
    // Not before the keys are sorted: the first use of an object asks its maker, which would be
    // sorting.
    with(release(w.samples), release(w.taken),
         [&](auto& samples, auto& taken) { give_samples(t, mine, samples, taken); });
  });
}

/// Phase 2, of the master: sorts the samples and chooses pivots at regular distances.
template <class Key>
void choose_pivots(const team_member& t, const workspace<Key>& w, costs c) {
  with(owner_computes(w.samples), owner_computes(w.taken), release(w.pivots),
       [&](auto& samples, auto& taken, auto& pivots) { choose<Key>(t.size(), samples, taken, pivots, c); });
}

/// Phase 2, of all: divides the own keys by the pivots.
template <class Key>
void partition_own(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w) {
  with(owner_computes(keys, t), read_cache(w.pivots), release(w.partitions),
       [&](auto& own, auto& pivots, auto& partitions) {
         const std::span<Key> mine = own.span();
         divide<Key>(t, mine, mine.empty() ? 0 : own.indices().front(), pivots, partitions);
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

/// All phases without a scope.
template <class Key>
void sort_plainly(team_member& t, const shared_vector<Key>& keys, const workspace<Key>& w, costs c) {
  const auto mine = own_range(keys);
  std::ranges::sort(mine, std::less<Key>());
  give_samples(t, mine, w.samples, w.taken);
  t.barrier();
  if (t.rank() == 0) choose<Key>(t.size(), w.samples, w.taken, w.pivots, c);
  t.barrier();
  divide<Key>(t, mine, first_own(keys), w.pivots, w.partitions);
  t.barrier();
  const partition<Key> p = collect<Key>(t, w.partitions, keys);
  t.barrier();
  put(p, keys);
}

template <class Key>
void sort_as_member(team_member& t, shared_vector<Key> keys, costs c, bool plain) {
  // The master makes the workspace, so that it lies on the master's PE.
  const auto w = t.broadcast(t.rank() == 0 ? workspace<Key>(t.size()) : workspace<Key>());
  if (plain) {
    sort_plainly(t, keys, w, c);
  } else {
    sort_own(t, keys, w, c);
    t.barrier();
    if (t.rank() == 0) choose_pivots(t, w, c);
    t.barrier();
    partition_own(t, keys, w);
    t.barrier();
    gather_and_merge(t, keys, w, c);
  }
  t.barrier();
  if (t.rank() == 0) w.end();
}

}  // namespace

template <class Key>
void sort(const orrery::team& team, const shared_vector<Key>& keys, costs c, bool plain) {
  orrery::spmd<&sort_as_member<Key>>(team, keys, c, plain);
}

template void sort(const orrery::team&, const shared_vector<std::uint32_t>&, costs, bool);
template void sort(const orrery::team&, const shared_vector<std::uint64_t>&, costs, bool);
template void sort(const orrery::team&, const shared_vector<double>&, costs, bool);
template void sort(const orrery::team&, const shared_vector<record>&, costs, bool);

}  // namespace psrs
