// SPDX-License-Identifier: Apache-2.0
// What constructors of members do: meet the others, reduce, broadcast, park, throw.
#include <orrery/process/group.hpp>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

namespace orrery {
namespace group_birth_tests {

using testing::in_world;

struct Fellow;
ORRERY_PROCESS(Fellow, sum_at_birth, sum_now, hear, heard);
struct Fellow : member<Fellow> {
  Fellow(int parks, int bad) {
    for (int k = 0; k < parks * static_cast<int>(rank() % 3); ++k) yield();
    if (static_cast<int>(rank()) == bad) throw std::out_of_range("member " + std::to_string(bad));
    barrier();
    post(this_group())->hear(static_cast<int>(rank()));
    at_birth = all_reduce(static_cast<int>(rank()));
    if (rank() % 2 == 0) yield();
    barrier();
  }
  int sum_at_birth() const { return at_birth; }
  int sum_now() { return all_reduce(1); }
  void hear(int from) { all.push_back(from); }
  std::vector<int> heard() const { return all; }
  int at_birth = 0;
  std::vector<int> all;
};

void meet_at_birth(std::size_t n, int parks) {
  const auto g = spawn_group<Fellow>(everywhere(), n, parks, -1);
  const int expected = static_cast<int>(n * (n - 1) / 2);
  EXPECT_EQ(g->sum_at_birth(), std::vector<int>(n, expected));
  EXPECT_EQ(g->sum_now(), std::vector<int>(n, static_cast<int>(n)));
  for (const auto& all : g->heard()) EXPECT_EQ(all.size(), n);
  destroy(g);
}

TEST(group_constructors, meet_and_reduce) {
  for (const std::uint32_t pes : {1U, 2U, 3U})
    for (const int parks : {0, 2}) in_world(pes, [&] { meet_at_birth(9, parks); });
}
TEST(group_constructors, meet_and_reduce_on_machines_with_jitter) {
  in_world(2, [] {});
  for (int seed = 1; seed <= 5; ++seed)
    testing::in_simulation("machines=" + std::to_string(1 + seed) + ",pes=2,jitter=20us,seed=" + std::to_string(seed),
                           [&] { meet_at_birth(13, seed % 2); });
}

TEST(group_constructors, that_throw_while_others_meet_are_what_is_thrown) {
  for (const std::uint32_t pes : {1U, 2U, 3U})
    for (const int bad : {0, 4, 8})
      in_world(pes, [&] {
        try {
          (void)spawn_group<Fellow>(everywhere(), 9, 1, bad);
          ADD_FAILURE() << "nothing was thrown";
        } catch (const std::out_of_range& e) {
          EXPECT_NE(std::string(e.what()).find("member " + std::to_string(bad)), std::string::npos) << e.what();
        } catch (const std::exception& e) {
          ADD_FAILURE() << "member " << bad << " on " << world_pes() << " PEs: " << e.what();
        }
        meet_at_birth(9, 1);
      });
}

}  // namespace group_birth_tests
}  // namespace orrery
