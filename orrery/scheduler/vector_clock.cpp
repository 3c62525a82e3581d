// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/vector_clock.hpp>

#include <algorithm>

namespace orrery::scheduler {

std::uint64_t vector_clock::of(std::uint64_t strand) const noexcept {
  const auto at = std::ranges::lower_bound(all_, strand, {}, &entry::strand);
  return at == all_.end() || at->strand != strand ? 0 : at->time;
}

bool vector_clock::raise(std::uint64_t strand, std::uint64_t time) {
  const auto at = std::ranges::lower_bound(all_, strand, {}, &entry::strand);
  if (at == all_.end() || at->strand != strand) {
    all_.insert(at, {strand, time});
    return true;
  }
  if (at->time >= time) return false;
  at->time = time;
  return true;
}

bool vector_clock::join(const vector_clock& other) {
  bool changed = false;
  for (const entry& e : other.all_) changed |= raise(e.strand, e.time);
  return changed;
}

}  // namespace orrery::scheduler
