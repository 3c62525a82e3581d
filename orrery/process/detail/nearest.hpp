// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::detail {

/// How many insertions, deletions, replacements of bytes and swaps of neighbours lead from one
/// string to the other (optimal string alignment); limit + 1 if more than `limit`.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit);

struct suggestion {
  std::size_t distance = 0;
  std::string name;

  friend auto operator<=>(const suggestion&, const suggestion&) = default;
};

// The names most like one that was not found, nearest first: at most three, and none that has
// little in common with it.
class suggestions {
 public:
  static constexpr std::size_t most = 3;

  explicit suggestions(std::string_view wanted) : wanted_(wanted), limit_(1 + wanted.size() / 5) {}

  void consider(std::string_view name);
  [[nodiscard]] const std::vector<suggestion>& best() const noexcept { return best_; }

 private:
  std::string wanted_;
  std::size_t limit_;
  std::vector<suggestion> best_;
};

}  // namespace orrery::detail
