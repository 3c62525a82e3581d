// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/nearest.hpp>

#include <algorithm>
#include <array>
#include <numeric>

namespace orrery::detail {

std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > limit) return limit + 1;
  // Rows of the table of distances between prefixes: this one and the two before it.
  std::array<std::vector<std::size_t>, 3> rows;
  for (auto& row : rows) row.resize(a.size() + 1);
  std::iota(rows[0].begin(), rows[0].end(), std::size_t{0});
  std::size_t least_before = 0;
  for (std::size_t i = 1; i <= b.size(); ++i) {
    const auto& two_up = rows[(i + 1) % 3];
    const auto& up = rows[(i + 2) % 3];
    auto& row = rows[i % 3];
    std::size_t least = row[0] = i;
    for (std::size_t j = 1; j <= a.size(); ++j) {
      row[j] = std::min({up[j] + 1, row[j - 1] + 1, up[j - 1] + (a[j - 1] != b[i - 1])});
      if (i > 1 && j > 1 && a[j - 1] == b[i - 2] && a[j - 2] == b[i - 1])
        row[j] = std::min(row[j], two_up[j - 2] + 1);
      least = std::min(least, row[j]);
    }
    if (std::min(least, least_before) > limit) return limit + 1;  // a swap looks two rows back
    least_before = least;
  }
  return std::min(rows[b.size() % 3][a.size()], limit + 1);
}

void suggestions::consider(std::string_view name) {
  const std::size_t limit = best_.size() == most ? best_.back().distance : limit_;
  const std::size_t distance = edit_distance(wanted_, name, limit);
  if (distance > limit) return;
  suggestion s{distance, std::string(name)};
  best_.insert(std::ranges::upper_bound(best_, s), std::move(s));
  if (best_.size() > most) best_.pop_back();
}

}  // namespace orrery::detail
