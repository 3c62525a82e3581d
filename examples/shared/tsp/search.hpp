// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tsp {

/// Distances between `n` cities, row after row: whole numbers, the same in both directions.
struct instance {
  int n;
  std::span<const int> distance;
  [[nodiscard]] int between(int a, int b) const { return distance[static_cast<std::size_t>(a * n + b)]; }
};

/// Cities at random places of a square, always the same for one seed.
std::vector<int> random_distances(int n, std::uint64_t seed);
/// The length of a closed tour.
int length_of(const instance& i, std::span<const int> tour);

/// Branch and bound, depth first, over all tours that begin with given cities.
///
/// What it knows of the best tour it asks for and tells to its owner, so that many can search at
/// once: a branch ends when it cannot become shorter than that.
class branch_and_bound {
 public:
  /// `best()`: the length of the best tour that anybody has found; `found(tour, length)`: here is a
  /// shorter one; `pause()`: called now and then.
  branch_and_bound(const instance& i, std::function<int()> best, std::function<void(std::span<const int>, int)> found,
                   std::function<void()> pause);
  void search(std::span<const int> first);
  [[nodiscard]] std::uint64_t nodes() const { return nodes_; }

 private:
  void extend(int length, int least);

  const instance& of_;
  std::function<int()> best_;
  std::function<void(std::span<const int>, int)> found_;
  std::function<void()> pause_;
  std::vector<int> shortest_edge_;  // from each city
  std::vector<std::vector<int>> nearest_;  // the others, the nearest first
  std::vector<int> tour_;
  std::vector<bool> visited_;
  std::uint64_t nodes_ = 0;
};

/// The length of the shortest tour, by dynamic programming over sets of cities (Held and Karp): for
/// comparison, up to 16 cities.
int shortest_by_sets(const instance& i);
/// The same by trying all tours, up to 9 cities.
int shortest_by_all(const instance& i);

}  // namespace tsp
