// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

// Triangles, and whether two of them have a point in common. Coordinates are whole numbers below
// 2^20, so that everything is exact in 64 bits: a difference has 20 bits and a sign, a determinant
// of three of them is below 6 x 2^60. So touching counts, and there are no tolerances to choose.

namespace collision {

inline constexpr std::int32_t extent = 1 << 20;  // of space, in each direction

using point = std::array<std::int32_t, 3>;
using triangle = std::array<point, 3>;

/// A box, its faces included.
struct box {
  point low;
  point high;
};
[[nodiscard]] inline box box_of(const triangle& t) noexcept {
  box b{t[0], t[0]};
  for (std::size_t i = 1; i < 3; ++i)
    for (std::size_t d = 0; d < 3; ++d) {
      b.low[d] = std::min(b.low[d], t[i][d]);
      b.high[d] = std::max(b.high[d], t[i][d]);
    }
  return b;
}
[[nodiscard]] inline bool overlap(const box& a, const box& b) noexcept {
  for (std::size_t d = 0; d < 3; ++d)
    if (a.high[d] < b.low[d] || b.high[d] < a.low[d]) return false;
  return true;
}

namespace detail {

[[nodiscard]] constexpr int sign(std::int64_t x) noexcept { return (x > 0) - (x < 0); }

/// On which side of the plane through a, b, c the point p lies; 0: in it.
[[nodiscard]] inline int side_of(const point& a, const point& b, const point& c, const point& p) noexcept {
  const auto at = [&](const point& q, std::size_t d) { return std::int64_t{q[d]} - a[d]; };
  const std::int64_t x = at(b, 1) * at(c, 2) - at(b, 2) * at(c, 1);
  const std::int64_t y = at(b, 2) * at(c, 0) - at(b, 0) * at(c, 2);
  const std::int64_t z = at(b, 0) * at(c, 1) - at(b, 1) * at(c, 0);
  return sign(x * at(p, 0) + y * at(p, 1) + z * at(p, 2));
}

/// A plane figure: two of three coordinates, those with the numbers u and v.
struct projection {
  std::size_t u = 0;
  std::size_t v = 1;
  [[nodiscard]] int turn(const point& a, const point& b, const point& c) const noexcept {
    return sign(std::int64_t{b[u] - a[u]} * (c[v] - a[v]) - std::int64_t{b[v] - a[v]} * (c[u] - a[u]));
  }
  /// p lies on the line through a and b: also between them?
  [[nodiscard]] bool between(const point& a, const point& b, const point& p) const noexcept {
    return std::min(a[u], b[u]) <= p[u] && p[u] <= std::max(a[u], b[u]) && std::min(a[v], b[v]) <= p[v] &&
           p[v] <= std::max(a[v], b[v]);
  }
  [[nodiscard]] bool segments_meet(const point& a, const point& b, const point& c, const point& d) const noexcept {
    const int abc = turn(a, b, c);
    const int abd = turn(a, b, d);
    const int cda = turn(c, d, a);
    const int cdb = turn(c, d, b);
    if (abc * abd < 0 && cda * cdb < 0) return true;
    return (abc == 0 && between(a, b, c)) || (abd == 0 && between(a, b, d)) || (cda == 0 && between(c, d, a)) ||
           (cdb == 0 && between(c, d, b));
  }
  [[nodiscard]] bool inside(const triangle& t, const point& p) const noexcept {
    const int a = turn(t[0], t[1], p);
    const int b = turn(t[1], t[2], p);
    const int c = turn(t[2], t[0], p);
    return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0);
  }
};

/// Two triangles in one plane.
[[nodiscard]] inline bool meet_in_plane(const triangle& s, const triangle& t) noexcept {
  projection p;  // along an axis in which the triangle keeps an area
  for (const auto& [u, v] : {std::pair<std::size_t, std::size_t>{0, 1}, {1, 2}, {0, 2}}) {
    p = {u, v};
    if (p.turn(t[0], t[1], t[2]) != 0) break;
  }
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      if (p.segments_meet(s[i], s[(i + 1) % 3], t[j], t[(j + 1) % 3])) return true;
  return p.inside(t, s[0]) || p.inside(s, t[0]);
}

/// An edge pq and a triangle, whose plane has p and q on these sides, not both in it.
[[nodiscard]] inline bool pierces(const point& p, const point& q, int p_side, int q_side, const triangle& t) noexcept {
  if (p_side * q_side > 0) return false;
  // on which side of the triangle's edges the line pq passes
  const int a = side_of(p, q, t[0], t[1]);
  const int b = side_of(p, q, t[1], t[2]);
  const int c = side_of(p, q, t[2], t[0]);
  return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0);
}

/// Whether an edge of s goes through t. The sides are those of s's corners.
[[nodiscard]] inline bool edge_pierces(const triangle& s, const std::array<int, 3>& sides, const triangle& t) noexcept {
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t j = (i + 1) % 3;
    if ((sides[i] != 0 || sides[j] != 0) && pierces(s[i], s[j], sides[i], sides[j], t)) return true;
  }
  return false;
}
[[nodiscard]] inline std::array<int, 3> sides_of(const triangle& plane, const triangle& of) noexcept {
  return {side_of(plane[0], plane[1], plane[2], of[0]), side_of(plane[0], plane[1], plane[2], of[1]),
          side_of(plane[0], plane[1], plane[2], of[2])};
}

}  // namespace detail

/// Whether the triangle has an area. The others are not for meet().
[[nodiscard]] inline bool is_proper(const triangle& t) noexcept {
  return detail::projection{0, 1}.turn(t[0], t[1], t[2]) != 0 || detail::projection{1, 2}.turn(t[0], t[1], t[2]) != 0 ||
         detail::projection{0, 2}.turn(t[0], t[1], t[2]) != 0;
}

/// Whether two triangles have a point in common. If they are in different planes, an edge of one
/// then goes through the other: what they share is a segment, and each of its ends is on an edge of
/// one of them.
[[nodiscard]] inline bool meet(const triangle& s, const triangle& t) noexcept {
  const auto s_sides = detail::sides_of(t, s);
  const auto apart = [](const std::array<int, 3>& a) { return a[0] * a[1] > 0 && a[0] * a[2] > 0; };
  if (apart(s_sides)) return false;
  const auto t_sides = detail::sides_of(s, t);
  if (apart(t_sides)) return false;
  if (s_sides == std::array{0, 0, 0}) return detail::meet_in_plane(s, t);
  return detail::edge_pierces(s, s_sides, t) || detail::edge_pierces(t, t_sides, s);
}

}  // namespace collision
