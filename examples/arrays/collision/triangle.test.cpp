// SPDX-License-Identifier: Apache-2.0
#include "triangle.hpp"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace collision {
namespace {

using axis = std::array<std::int64_t, 3>;
axis minus(const point& a, const point& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
axis cross(const axis& a, const axis& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
std::int64_t dot(const axis& a, const point& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

// Another way, which shares no line with the one that is tested: two triangles are apart exactly if
// their shadows on one of these axes are apart (the separating axis theorem): both normals, the
// products of edges, and for those in one plane the normals of edges in it.
bool separated_on(const axis& a, const triangle& s, const triangle& t) {
  const auto [s_low, s_high] = std::minmax({dot(a, s[0]), dot(a, s[1]), dot(a, s[2])});
  const auto [t_low, t_high] = std::minmax({dot(a, t[0]), dot(a, t[1]), dot(a, t[2])});
  return s_high < t_low || t_high < s_low;
}
bool meet_by_axes(const triangle& s, const triangle& t) {
  const axis s_normal = cross(minus(s[1], s[0]), minus(s[2], s[0]));
  const axis t_normal = cross(minus(t[1], t[0]), minus(t[2], t[0]));
  if (separated_on(s_normal, s, t) || separated_on(t_normal, s, t)) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    const axis a = minus(s[(i + 1) % 3], s[i]);
    if (separated_on(cross(s_normal, a), s, t)) return false;
    const axis b = minus(t[(i + 1) % 3], t[i]);
    if (separated_on(cross(t_normal, b), s, t)) return false;
    for (std::size_t j = 0; j < 3; ++j)
      if (separated_on(cross(a, minus(t[(j + 1) % 3], t[j])), s, t)) return false;
  }
  return true;
}

triangle random_triangle(std::mt19937_64& random, std::uint32_t size) {
  for (;;) {
    triangle t;
    for (auto& p : t)
      for (auto& x : p) x = static_cast<std::int32_t>(random() % size);
    if (is_proper(t)) return t;
  }
}

TEST(triangles, meet_exactly_if_no_axis_separates_them) {
  std::mt19937_64 random(1);
  // On small grids nearly all cases are special: common corners, edges in planes, planes in common.
  for (const std::uint32_t size : {2U, 3U, 4U, 6U, 20U, 1000U}) {
    int met = 0;
    for (int i = 0; i < 100'000; ++i) {
      const triangle s = random_triangle(random, size);
      const triangle t = random_triangle(random, size);
      ASSERT_EQ(meet(s, t), meet_by_axes(s, t)) << "size " << size << ", pair " << i;
      ASSERT_EQ(meet(s, t), meet(t, s)) << "size " << size << ", pair " << i;
      met += meet(s, t) ? 1 : 0;
    }
    EXPECT_GT(met, 10'000) << size;
    EXPECT_LT(met, 99'000) << size;
  }
}

TEST(triangles, in_one_plane_meet_exactly_if_no_axis_separates_them) {
  std::mt19937_64 random(2);
  int met = 0;
  for (int i = 0; i < 100'000; ++i) {
    triangle s = random_triangle(random, 8);
    triangle t = random_triangle(random, 8);
    const std::size_t along = random() % 3;
    for (std::size_t k = 0; k < 3; ++k) {  // the plane x + y + z = 16, or x = y, or x = 3
      for (triangle* both : {&s, &t}) {
        point& p = (*both)[k];
        if (along == 0) p[2] = 16 - p[0] - p[1];
        if (along == 1) p[0] = p[1];
        if (along == 2) p[0] = 3;
      }
    }
    if (!is_proper(s) || !is_proper(t)) continue;
    ASSERT_EQ(meet(s, t), meet_by_axes(s, t)) << i;
    met += meet(s, t) ? 1 : 0;
  }
  EXPECT_GT(met, 10'000);
}

TEST(triangles, are_exact_at_the_ends_of_space) {
  constexpr std::int32_t e = extent - 1;
  const triangle slope{{{0, 0, e}, {e, 0, 0}, {0, e, 0}}};  // x + y + z = e
  EXPECT_TRUE(meet(slope, {{{0, 0, e}, {e, e, e}, {e, 0, e}}}));
  EXPECT_FALSE(meet(slope, {{{1, 0, e}, {e, e, e}, {e, 0, e}}}));
  EXPECT_TRUE(meet(slope, {{{1, 0, e - 1}, {e, e, e}, {e, 0, e}}}));
}

}  // namespace
}  // namespace collision
