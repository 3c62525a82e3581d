// SPDX-License-Identifier: Apache-2.0
#include "team_search.hpp"

#include <array>
#include <span>

namespace tsp {

outcome search_as_member(orrery::shared_vector<int> distances, int cities, orrery::shared<int> best,
                         orrery::shared<int> next) {
  outcome mine;
  with(read_cache(distances), read_mostly(best), [&](auto& distance, auto& shortest) {
    const instance i{cities, distance.span()};
    branch_and_bound work(
        i, [&] { return shortest.get(); },
        [&](std::span<const int> tour, int length) {
          if (shortest.element().fetch_min(length) <= length) return;  // another one was faster
          mine.tour.assign(tour.begin(), tour.end());
          mine.length = length;
        },
        [] { orrery::yield(); });  // so that this PE hears of shorter tours
    const int others = cities - 1;
    for (;;) {
      const int number = next.element().fetch_add(1);
      if (number >= others * (others - 1)) break;
      const int a = 1 + number / (others - 1);
      const int b = 1 + number % (others - 1);
      work.search(std::array{0, a, b >= a ? b + 1 : b});
      orrery::yield();
    }
    mine.nodes = work.nodes();
  });
  return mine;
}

}  // namespace tsp
