// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "search.hpp"

#include <orrery/orrery.hpp>
#include <orrery/shared/shared.hpp>

#include <cstdint>
#include <limits>
#include <vector>

namespace tsp {

/// The findings of one member: its last tour that was shorter than all others were then.
struct outcome {
  std::vector<int> tour;
  int length = std::numeric_limits<int>::max();
  std::uint64_t nodes = 0;
};

struct search {
  int cities;
  int depth = 2;  ///< of the beginnings that members take: 2 is 0-a-b
  double node_ns = 0;  ///< virtual time of a node, in simulations
  // The scopes. Without them, as for the adviser, each access is one by default.
  bool cached = true;  ///< the distances
  bool read_mostly = true;  ///< the best length
};

/// One member of a team: takes the beginnings of tours, such as 0-a-b, one after the other. `best`
/// is the length of the best tour of all, `next` the number of the next beginning.
outcome search_as_member(orrery::shared_vector<int> distances, search s, orrery::shared<int> best,
                         orrery::shared<int> next);

}  // namespace tsp
