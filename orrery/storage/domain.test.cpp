// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/domain.hpp>

#include <cstdint>
#include <set>
#include <stdexcept>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace orrery::storage {
namespace domain_tests {

index3 any_place(std::int64_t least, std::int64_t most) {
  const auto side = rc::gen::inRange<std::int64_t>(least, most + 1);
  return {*side, *side, *side};
}
domain any_domain() { return {any_place(-4, 8), any_place(-4, 8)}; }
page_grid any_grid() { return page_grid::checked(any_place(1, 12), any_place(1, 7)); }

TEST(domain, knows_its_shape_and_is_empty_when_a_side_is) {
  const domain d{{1, 2, 3}, {4, 4, 4}};
  EXPECT_EQ(d.shape(), (index3{3, 2, 1}));
  EXPECT_EQ(d.size(), 6);
  EXPECT_TRUE((domain{{1, 2, 3}, {4, 2, 4}}.empty()));
  EXPECT_EQ((domain{{5, 5, 5}, {4, 9, 9}}.size()), 0);
}
TEST(domain, is_written_as_a_product_of_intervals) {
  EXPECT_EQ(to_string(domain{{0, 1, 2}, {3, 4, 5}}), "[0, 3) x [1, 4) x [2, 5)");
}

RC_GTEST_PROP(domain, has_as_many_places_as_it_visits_and_contains_exactly_these, ()) {
  const domain d = any_domain();
  std::int64_t n = 0;
  for_each_place(d, [&](const index3& i) {
    ++n;
    RC_ASSERT(d.contains(i));
  });
  RC_ASSERT(n == d.size());
}
RC_GTEST_PROP(domain, intersects_in_the_places_that_are_in_both, ()) {
  const domain a = any_domain();
  const domain b = any_domain();
  const domain both = a & b;
  for_each_place(domain{{-4, -4, -4}, {9, 9, 9}},
                 [&](const index3& i) { RC_ASSERT(both.contains(i) == (a.contains(i) && b.contains(i))); });
  RC_ASSERT(a.contains(both));
  RC_ASSERT(b.contains(both));
  RC_ASSERT((b & a).size() == both.size());
}
RC_GTEST_PROP(domain, keeps_its_size_when_it_is_moved_or_transposed, ()) {
  const domain d = any_domain();
  RC_ASSERT(d.relative_to(any_place(-9, 9)).size() == d.size());
  for (const auto t : {transposition::t13, transposition::t23}) {
    RC_ASSERT(transposed(d, t).size() == d.size());
    RC_ASSERT(transposed(transposed(d, t), t) == d);
  }
}

RC_GTEST_PROP(page_grid, puts_each_element_on_exactly_one_page, ()) {
  const page_grid g = any_grid();
  std::int64_t elements = 0;
  for_each_place(domain::of_shape(g.pages()), [&](const index3& p) {
    const domain on_page = g.elements_of(p);
    RC_ASSERT(!on_page.empty());
    RC_ASSERT(domain::of_shape(g.array_shape).contains(on_page));
    for (int k = 0; k < 3; ++k) RC_ASSERT(on_page.shape()[k] <= g.page_shape[k]);
    for_each_place(on_page, [&](const index3& i) {
      ++elements;
      RC_ASSERT(g.page_of(i) == p);
    });
  });
  RC_ASSERT(elements == product(g.array_shape));
}
RC_GTEST_PROP(page_grid, finds_the_pages_of_a_domain_and_no_others, ()) {
  const page_grid g = any_grid();
  const domain d = any_domain() & domain::of_shape(g.array_shape);
  const domain pages = g.pages_of(d);
  for_each_place(domain::of_shape(g.pages()),
                 [&](const index3& p) { RC_ASSERT(pages.contains(p) == !(g.elements_of(p) & d).empty()); });
}
RC_GTEST_PROP(page_grid, counts_pages_and_finds_them_by_number, ()) {
  const page_grid g = any_grid();
  std::int64_t n = 0;
  for_each_place(domain::of_shape(g.pages()), [&](const index3& p) {
    RC_ASSERT(g.number_of(p) == n);
    RC_ASSERT(g.page_at(n) == p);
    ++n;
  });
  RC_ASSERT(n == g.page_count());
}

TEST(domain, is_cut_into_boxes_that_share_no_place_and_leave_none_out) {
  const domain d{{1, -2, 3}, {8, 5, 7}};
  std::int64_t places = 0;
  for_each_box(d, {3, 2, 9}, [&](const domain& box) {
    EXPECT_TRUE(d.contains(box));
    EXPECT_EQ((box.first[0] - 1) % 3 + (box.first[1] + 2) % 2 + box.first[2] - 3, 0);
    places += box.size();
  });
  EXPECT_EQ(places, d.size());
}

TEST(page_grid, refuses_shapes_that_cannot_be) {
  EXPECT_THROW((void)page_grid::checked({0, 1, 1}, {1, 1, 1}), std::invalid_argument);
  EXPECT_THROW((void)page_grid::checked({1, 1, 1}, {1, -1, 1}), std::invalid_argument);
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_THROW((void)page_grid::checked({large, large, large}, {1, 1, 1}), std::invalid_argument);
  EXPECT_THROW((void)page_grid::checked({2, 2, 2}, {large, large, large}), std::invalid_argument);
  EXPECT_THROW((void)page_grid::checked({INT64_MAX, 1, 1}, {1, 1, 1}), std::invalid_argument);
}

}  // namespace domain_tests
}  // namespace orrery::storage
