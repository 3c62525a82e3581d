// SPDX-License-Identifier: Apache-2.0
#include "team_search.hpp"

#include <chrono>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace tsp {

namespace {

/// The beginning of a tour with a number: city 0 and `depth` others. Empty if there are fewer.
std::vector<int> beginning(const search& s, int number) {
  std::vector<int> left(static_cast<std::size_t>(s.cities - 1));
  std::iota(left.begin(), left.end(), 1);
  std::vector<int> tour{0};
  for (int i = 0; i < s.depth; ++i) {
    const int choices = static_cast<int>(left.size());
    tour.push_back(left[static_cast<std::size_t>(number % choices)]);
    left.erase(left.begin() + number % choices);
    number /= choices;
  }
  return number == 0 ? tour : std::vector<int>{};
}

/// Takes one beginning after the other; `shortest` is the best length, in a scope or by default.
template <class Shortest>
outcome search_all(std::span<const int> distance, Shortest& shortest, const search& s, orrery::shared<int>& next) {
  outcome mine;
  const instance i{s.cities, distance};
  branch_and_bound* running = nullptr;
  std::uint64_t counted = 0;
  const auto pause = [&] {  // so that this PE hears of shorter tours
    orrery::compute(std::chrono::nanoseconds(
        std::llround(s.node_ns * static_cast<double>(running->nodes() - std::exchange(counted, running->nodes())))));
    orrery::yield();
  };
  branch_and_bound work(
      i, [&] { return shortest.get(); },
      [&](std::span<const int> tour, int length) {
        if (shortest.fetch_min(length) <= length) return;  // another one was faster
        mine.tour.assign(tour.begin(), tour.end());
        mine.length = length;
      },
      pause);
  running = &work;
  for (;;) {
    const std::vector<int> first = beginning(s, next++);
    if (first.empty()) break;
    work.search(first);
    pause();
  }
  mine.nodes = work.nodes();
  return mine;
}

}  // namespace

outcome search_as_member(orrery::shared_vector<int> distances, search s, orrery::shared<int> best,
                         orrery::shared<int> next) {
  const auto search_in = [&](std::span<const int> distance) {
    if (!s.read_mostly) return search_all(distance, best, s, next);
    return with(read_mostly(best), [&](auto& shortest) { return search_all(distance, shortest, s, next); });
  };
  if (s.cached) return with(read_cache(distances), [&](auto& distance) { return search_in(distance.span()); });
  std::vector<int> distance;
  for (std::uint64_t i = 0; i < distances.size(); ++i) distance.push_back(distances[i]);
  return search_in(distance);
}

}  // namespace tsp
