// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery {
namespace placement_map_tests {

std::vector<std::uint32_t> cut(std::vector<std::int64_t> extent, std::uint32_t pes) {
  std::vector<std::uint32_t> parts(extent.size());
  if (!detail::cut_box(extent, pes, parts)) parts.clear();
  return parts;
}

TEST(placement_boxes, are_even_and_then_of_little_surface_and_then_have_short_rows) {
  EXPECT_EQ(cut({64, 64}, 1), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(cut({64, 64}, 2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(cut({64, 64}, 4), (std::vector<std::uint32_t>{2, 2}));
  EXPECT_EQ(cut({64, 64}, 8), (std::vector<std::uint32_t>{2, 4}));
  EXPECT_EQ(cut({64, 16}, 4), (std::vector<std::uint32_t>{4, 1}));
  EXPECT_EQ(cut({8, 8, 8}, 8), (std::vector<std::uint32_t>{2, 2, 2}));
  EXPECT_EQ(cut({100, 100}, 100'000), (std::vector<std::uint32_t>{}));
  EXPECT_EQ(cut({100, 100}, 101), (std::vector<std::uint32_t>{})) << "a prime number";
  EXPECT_EQ(cut({0, 4}, 2), (std::vector<std::uint32_t>{}));
  EXPECT_EQ(cut({1'000'000, 1'000'000, 1'000'000}, 65'536).size(), 3U);
}

// Each index of a range has one PE, for_each_of lists just those, in their order, and no PE has
// more than the largest box.
template <class Index>
void expect_partition(const Index& extent, std::uint32_t pes) {
  const auto map = placement_map<Index>::boxes(extent, pes);
  const range<Index> all{extent};
  std::vector<std::uint64_t> listed;
  for (std::uint32_t pe = 0; pe < pes; ++pe) {
    std::uint64_t before = 0;
    map.for_each_of(all, pe, pes, [&](const Index& i) {
      RC_ASSERT(map(i, pes) == pe);
      const std::uint64_t n = all.number_of(i);
      RC_ASSERT(n >= before);
      before = n + 1;
      listed.push_back(n);
    });
  }
  std::ranges::sort(listed);
  RC_ASSERT(listed.size() == all.size());
  for (std::uint64_t n = 0; n < listed.size(); ++n) RC_ASSERT(listed[n] == n);
}

RC_GTEST_PROP(placement_boxes, part_any_range_among_any_number_of_pes, ()) {
  const auto draw = [](int below) { return *rc::gen::inRange(0, below); };
  const auto pes = static_cast<std::uint32_t>(1 + draw(70));
  expect_partition<index<2>>({draw(40), draw(40)}, pes);
  expect_partition<index<3>>({draw(12), draw(12), draw(12)}, pes);
  expect_partition<std::int32_t>(draw(300), pes);
}

struct Plain;
ORRERY_PROCESS(Plain, where);
struct Plain : element<Plain, index<2>> {
  std::uint32_t where() const { return this_pe(); }
};
TEST(placement_boxes, are_where_an_array_is_made) {
  for (const std::uint32_t pes : {1U, 2U, 4U, 6U})
    testing::in_world(pes, [] {
      const auto map = placement_map<index<2>>::boxes({12, 12});
      const auto a = create_array<Plain>(range<index<2>>{{12, 12}}, {.home = map});
      std::map<std::uint32_t, int> on;
      for (std::int32_t x = 0; x < 12; ++x)
        for (std::int32_t y = 0; y < 12; ++y) {
          const std::uint32_t at = a[x, y]->where();
          EXPECT_EQ(at, map({x, y}, world_pes()));
          ++on[at];
        }
      EXPECT_EQ(on.size(), world_pes());
      for (const auto& [pe, n] : on) EXPECT_EQ(n, 144 / static_cast<int>(world_pes())) << pe;
      // Also one outside, and by another number of PEs than it was made for.
      a.insert({100, 100});
      EXPECT_EQ((a[100, 100]->where()), map({100, 100}, world_pes()));
      const auto other = placement_map<index<2>>::boxes({12, 12}, world_pes() + 1);
      const auto b = create_array<Plain>(range<index<2>>{{12, 12}}, {.home = other});
      EXPECT_EQ((b[3, 4]->where()), (placement_map<index<2>>::blocks({12, 12})({3, 4}, world_pes())));
    });
}

}  // namespace placement_map_tests
}  // namespace orrery
