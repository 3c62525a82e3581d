// SPDX-License-Identifier: Apache-2.0
// Elements whose mailboxes are full: nothing is lost, and nobody waits for ever.
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace orrery {
namespace flow_tests {

using testing::in_simulation;
using testing::in_world;

scheduler::node_settings small_mailboxes(std::uint32_t pes) {
  scheduler::node_settings s;
  s.pes = pes;
  s.pe.mailbox_bytes = 4 << 10;
  s.pe.ring_bytes = 8 << 10;
  return s;
}

struct Crowd;
ORRERY_PROCESS(Crowd, bombard, post_to_itself, hit, grow, tell);
struct Crowd : element<Crowd> {
  void bombard(int n, int times) {
    for (int t = 0; t < times; ++t)
      for (int i = 0; i < n; ++i) post(this_array()[i])->hit();
  }
  void post_to_itself(int times) {
    for (int t = 0; t < times; ++t) post(this_array()[this_index()])->hit();
  }
  void hit() { ++hits; }
  void grow(int n, int depth, std::uint32_t seed) {
    ++hits;
    for (std::uint32_t i = 1; depth > 0 && i <= 3; ++i) {
      const std::uint32_t to = 3 * seed + i;
      post(this_array()[static_cast<std::int32_t>(to % static_cast<std::uint32_t>(n))])->grow(n, depth - 1, to);
    }
  }
  void tell(result_target t) { contribute(hits, sum, t); }
  std::int64_t hits = 0;
};

std::int64_t all_hits(const array<Crowd>& a) {
  auto [target, result] = expect_result<std::int64_t>();
  post(a)->tell(target);
  return result.get();
}

void bombard_all(int n, int times) {
  const auto a = create_array<Crowd>(range<std::int32_t>{n});
  post(a)->bombard(n, times);
  quiescence(a);
  EXPECT_EQ(all_hits(a), std::int64_t{n} * n * times);
  destroy(a);
}

TEST(array_flow, an_element_may_post_to_itself_without_limit) {
  in_world(small_mailboxes(2), [] {
    const auto a = create_array<Crowd>(range<std::int32_t>{4});
    for (int i = 0; i < 4; ++i) a[i]->post_to_itself(1000);
    post(a)->post_to_itself(1000);
    quiescence(a);
    EXPECT_EQ(all_hits(a), 8000);
    destroy(a);
  });
}

TEST(array_flow, elements_that_bombard_each_other_on_six_pes_lose_nothing) {
  in_world(small_mailboxes(6), [] { bombard_all(24, 40); });
}

TEST(array_flow, elements_that_bombard_each_other_on_256_pes_lose_nothing) {
  in_simulation(parse_simulation("machines=32,pes=8,jitter=5us,seed=3"), small_mailboxes(0),
                [] { bombard_all(256, 1); });
}

TEST(array_flow, a_tree_of_messages_over_an_array_loses_nothing) {
  constexpr int depth = 8;
  for (int seed = 1; seed <= 5; ++seed)
    in_simulation(parse_simulation("machines=3,pes=2,jitter=10us,seed=" + std::to_string(seed)), small_mailboxes(0),
                  [] {
                    const auto a = create_array<Crowd>(range<std::int32_t>{40});
                    post(a[0])->grow(40, depth, 0);
                    quiescence(a);
                    EXPECT_EQ(all_hits(a), 9841);
                    destroy(a);
                  });
}

}  // namespace flow_tests
}  // namespace orrery
