// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/nearest.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace orrery::detail {

namespace {

// Names of one program begin and end alike, and only the middle costs.
void drop_common_ends(std::string_view& a, std::string_view& b) noexcept {
  const auto [x, y] = std::ranges::mismatch(a, b);
  a.remove_prefix(static_cast<std::size_t>(x - a.begin()));
  b.remove_prefix(static_cast<std::size_t>(y - b.begin()));
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a.remove_suffix(1);
    b.remove_suffix(1);
  }
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  drop_common_ends(a, b);
  // Rows of the table of distances between prefixes: this one and the two before it.
  std::vector<std::size_t> table(3 * (a.size() + 1));
  const auto row_at = [&](std::size_t i) { return table.data() + i % 3 * (a.size() + 1); };
  std::iota(row_at(0), row_at(0) + a.size() + 1, std::size_t{0});
  std::size_t least_before = 0;
  for (std::size_t i = 1; i <= b.size(); ++i) {
    const std::size_t* const two_up = row_at(i + 1);
    const std::size_t* const up = row_at(i + 2);
    std::size_t* const row = row_at(i);
    std::size_t least = row[0] = i;
    for (std::size_t j = 1; j <= a.size(); ++j) {
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[j - 1] != b[i - 1])});
      if (i > 1 && j > 1 && a[j - 1] == b[i - 2] && a[j - 2] == b[i - 1]) row[j] = std::min(row[j], two_up[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (std::min(least, least_before) > limit) return limit + 1;  // a swap looks two rows back
    least_before = least;
  }
  return std::min(row_at(b.size())[a.size()], limit + 1);
}

void suggestions::consider(std::string_view name) {
  const std::size_t limit = best_.size() == most ? best_.back().distance : limit_;
  const std::size_t distance = edit_distance(wanted_, name, limit);
  // or nothing of it would be left
  if (distance > limit || distance >= std::min(wanted_.size(), name.size())) return;
  suggestion s{distance, std::string(name)};
  best_.insert(std::ranges::upper_bound(best_, s), std::move(s));
  if (best_.size() > most) best_.pop_back();
}

}  // namespace orrery::detail
