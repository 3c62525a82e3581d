// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <vector>

// Heat that flows in an insulated square plate of side 1, over which a small flame goes round: the
// physics, and a solution on a uniform fine grid to compare with.

namespace heat_tree {

/// A run; the same for all nodes of the tree.
struct settings {
  std::uint32_t cells = 8;  ///< of a leaf, in each direction; even
  std::uint32_t coarsest = 2;  ///< level: the plate is at least 2^coarsest leaves wide
  std::uint32_t finest = 5;
  std::uint32_t steps = 4000;
  double refine_above = 0.1;  ///< difference of temperature within a leaf; the highest is about 1
  double coarsen_below = 0.04;
  /// A leaf goes to a PE chosen at random in one of so many steps; 0: never.
  std::uint32_t hop_every = 0;

  [[nodiscard]] double width(std::uint32_t level) const noexcept {
    return 1.0 / (static_cast<double>(cells) * static_cast<double>(1U << level));
  }
  /// Stable on the finest level, whose cells have four neighbours: below 1/4.
  [[nodiscard]] double time_step() const noexcept { return 0.2 * width(finest) * width(finest); }
};

/// The heat that the flame adds per unit of time. The flame goes once round in a run.
inline double flame(const settings& s, double x, double y, std::uint32_t step) noexcept {
  constexpr double size = 0.03;
  const double angle = 2 * std::numbers::pi * step / s.steps;
  const double dx = x - 0.5 - 0.27 * std::cos(angle);
  const double dy = y - 0.5 - 0.27 * std::sin(angle);
  const double distance = (dx * dx + dy * dy) / (size * size);
  return distance > 16 ? 0 : 60 / (s.steps * s.time_step()) * std::exp(-distance);
}

/// The temperatures of a uniform grid as fine as the finest leaves, after all steps.
inline std::vector<double> uniform_solution(const settings& s) {
  const std::size_t n = std::size_t{s.cells} << s.finest;
  const double h = s.width(s.finest);
  const double dt = s.time_step();
  std::vector<double> now(n * n);
  std::vector<double> next(n * n);
  for (std::uint32_t step = 0; step < s.steps; ++step) {
    for (std::size_t y = 0; y < n; ++y)
      for (std::size_t x = 0; x < n; ++x) {
        const double t = now[y * n + x];
        double flow = 0;
        if (x > 0) flow += now[y * n + x - 1] - t;
        if (x < n - 1) flow += now[y * n + x + 1] - t;
        if (y > 0) flow += now[(y - 1) * n + x] - t;
        if (y < n - 1) flow += now[(y + 1) * n + x] - t;
        const double added = flame(s, (static_cast<double>(x) + 0.5) * h, (static_cast<double>(y) + 0.5) * h, step);
        next[y * n + x] = t + dt / (h * h) * flow + dt * added;
      }
    std::swap(now, next);
  }
  return now;
}

}  // namespace heat_tree
