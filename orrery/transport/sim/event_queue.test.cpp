// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/sim/event_queue.hpp>

#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::transport {
namespace event_queue_tests {

using key = std::pair<std::int64_t, std::uint64_t>;

// Adds what has a time, and takes for each that has none.
template <class Queue, class Look>
void against_a_set(const std::vector<std::int8_t>& turns, Look look) {
  Queue q;
  std::set<key> model;
  std::uint64_t order = 0;
  for (const std::int8_t t : turns) {
    if (t >= 0) {
      q.add({t, order, order});
      model.emplace(t, order++);
    } else if (!model.empty()) {
      const auto first = q.take();
      RC_ASSERT(key(first.time, first.order) == *model.begin());
      RC_ASSERT(first.what == first.order);
      model.erase(model.begin());
    }
    RC_ASSERT(q.empty() == model.empty());
    if (!model.empty()) {
      RC_ASSERT(key(q.next().time, q.next().order) == *model.begin());
    }
    look(q, model);
  }
}

RC_GTEST_PROP(time_heap, gives_the_earliest, (const std::vector<std::int8_t>& turns)) {
  against_a_set<time_heap<std::uint64_t>>(
      turns, [](const auto& q, const auto& model) { RC_ASSERT(q.size() == model.size()); });
}

RC_GTEST_PROP(time_queue, gives_the_earliest_and_shows_who_comes_after_it, (const std::vector<std::int8_t>& turns)) {
  using queue = time_queue<std::uint64_t>;
  against_a_set<queue>(turns, [](const queue& q, const std::set<key>& model) {
    auto expected = model.begin();
    for (std::size_t n = 0; n < queue::shown_ahead + 2; ++n) {
      const std::uint64_t* shown = q.ahead(n);
      RC_ASSERT((shown != nullptr) == (n < queue::shown_ahead && n < model.size()));
      if (shown != nullptr) {
        RC_ASSERT(*shown == (expected++)->second);
      }
    }
  });
}

}  // namespace event_queue_tests
}  // namespace orrery::transport
