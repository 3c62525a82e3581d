// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/access_record.hpp>

#include <algorithm>

namespace orrery::detail {

void element_ranges::tidy() {
  std::ranges::sort(all_, {}, &range::first);
  std::size_t kept = 0;
  for (const range& r : all_) {
    if (kept != 0 && r.first <= all_[kept - 1].last) {
      all_[kept - 1].last = std::max(all_[kept - 1].last, r.last);
    } else {
      all_[kept++] = r;
    }
  }
  all_.resize(kept);
  tidy_at_ = std::max<std::size_t>(4096, 2 * kept);
}

std::optional<element_ranges::range> element_ranges::first_common(const element_ranges& other) const noexcept {
  for (std::size_t a = 0, b = 0; a < all_.size() && b < other.all_.size();) {
    const std::uint64_t first = std::max(all_[a].first, other.all_[b].first);
    const std::uint64_t last = std::min(all_[a].last, other.all_[b].last);
    if (first < last) return range{first, last};
    if (all_[a].last < other.all_[b].last) {
      ++a;
    } else {
      ++b;
    }
  }
  return std::nullopt;
}

}  // namespace orrery::detail
