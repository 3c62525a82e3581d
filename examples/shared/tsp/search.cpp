// SPDX-License-Identifier: Apache-2.0
#include "search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace tsp {

namespace {
constexpr std::uint64_t nodes_between_pauses = 4096;
}

std::vector<int> random_distances(int n, std::uint64_t seed) {
  std::mt19937_64 r(seed);
  std::vector<std::pair<double, double>> at;
  for (int i = 0; i < n; ++i) {
    const auto x = static_cast<double>(r() % 1000);
    at.emplace_back(x, static_cast<double>(r() % 1000));
  }
  std::vector<int> all;
  for (const auto& [ax, ay] : at)
    for (const auto& [bx, by] : at) all.push_back(static_cast<int>(std::lround(std::hypot(ax - bx, ay - by))));
  return all;
}

int length_of(const instance& i, std::span<const int> tour) {
  int length = i.between(tour.back(), tour.front());
  for (std::size_t k = 1; k < tour.size(); ++k) length += i.between(tour[k - 1], tour[k]);
  return length;
}

branch_and_bound::branch_and_bound(const instance& i, std::function<int()> best,
                                   std::function<void(std::span<const int>, int)> found, std::function<void()> pause)
    : of_(i),
      best_(std::move(best)),
      found_(std::move(found)),
      pause_(std::move(pause)),
      visited_(static_cast<std::size_t>(i.n)) {
  for (int a = 0; a < i.n; ++a) {
    std::vector<int> others;
    for (int b = 0; b < i.n; ++b)
      if (b != a) others.push_back(b);
    std::ranges::sort(others, {}, [&](int b) { return std::pair(i.between(a, b), b); });
    shortest_edge_.push_back(i.between(a, others.front()));
    nearest_.push_back(std::move(others));
  }
}

void branch_and_bound::search(std::span<const int> first) {
  tour_.assign(first.begin(), first.end());
  std::fill(visited_.begin(), visited_.end(), false);
  int length = 0;
  for (std::size_t k = 0; k < first.size(); ++k) {
    visited_[static_cast<std::size_t>(first[k])] = true;
    if (k != 0) length += of_.between(first[k - 1], first[k]);
  }
  int least = shortest_edge_[static_cast<std::size_t>(tour_.back())];
  for (std::size_t c = 0; c < visited_.size(); ++c)
    if (!visited_[c]) least += shortest_edge_[c];
  extend(length, least);
}

/// `least`: what the way from the last city through all others back to the first has at least.
void branch_and_bound::extend(int length, int least) {
  if (++nodes_ % nodes_between_pauses == 0) pause_();
  if (tour_.size() == visited_.size()) {
    const int closed = length + of_.between(tour_.back(), tour_.front());
    if (closed < best_()) found_(tour_, closed);
    return;
  }
  const int last = tour_.back();
  const int rest = least - shortest_edge_[static_cast<std::size_t>(last)];
  for (const int next : nearest_[static_cast<std::size_t>(last)]) {
    if (visited_[static_cast<std::size_t>(next)]) continue;
    const int longer = length + of_.between(last, next);
    if (longer + rest >= best_()) break;  // those that follow are farther away
    visited_[static_cast<std::size_t>(next)] = true;
    tour_.push_back(next);
    extend(longer, rest);
    tour_.pop_back();
    visited_[static_cast<std::size_t>(next)] = false;
  }
}

int shortest_by_sets(const instance& i) {
  const int others = i.n - 1;  // city 0 is where a tour begins
  const std::size_t sets = std::size_t{1} << others;
  constexpr int far = std::numeric_limits<int>::max() / 2;
  // through a set to one of its cities
  std::vector<int> shortest(sets * static_cast<std::size_t>(others), far);
  const auto at = [&](std::size_t set, int last) -> int& {
    return shortest[set * static_cast<std::size_t>(others) + static_cast<std::size_t>(last)];
  };
  for (int c = 0; c < others; ++c) at(std::size_t{1} << c, c) = i.between(0, c + 1);
  for (std::size_t set = 1; set < sets; ++set)
    for (int last = 0; last < others; ++last)
      if ((set >> last & 1) != 0)
        for (int next = 0; next < others; ++next)
          if ((set >> next & 1) == 0) {
            int& to = at(set | std::size_t{1} << next, next);
            to = std::min(to, at(set, last) + i.between(last + 1, next + 1));
          }
  int best = far;
  for (int last = 0; last < others; ++last) best = std::min(best, at(sets - 1, last) + i.between(last + 1, 0));
  return best;
}

int shortest_by_all(const instance& i) {
  std::vector<int> tour(static_cast<std::size_t>(i.n));
  std::iota(tour.begin(), tour.end(), 0);
  int best = std::numeric_limits<int>::max();
  do {
    best = std::min(best, length_of(i, tour));
  } while (std::next_permutation(tour.begin() + 1, tour.end()));
  return best;
}

}  // namespace tsp
