// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "triangle.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <utility>
#include <vector>

// Collisions of moving triangles with two arrays: swarms move the triangles, and voxels of space,
// which come into being when the first triangle enters them, look for those that meet.

namespace collision {

/// A run; the same for all swarms.
struct settings {
  std::uint32_t triangles = 1'000'000;
  std::int32_t size = 1 << 12;  ///< of a triangle, at most
  std::uint32_t voxel_bits = 14;  ///< a voxel is 2^voxel_bits wide
  std::int32_t swarms = 64;
  std::uint32_t clouds = 5;
};

using id_pair = std::pair<std::uint32_t, std::uint32_t>;

struct moving_triangle {
  triangle shape;
  point velocity;
};

/// Triangle number `id`, in one of some clouds that fly about: a pure function, so that any PE can
/// make it.
inline moving_triangle make_triangle(std::uint32_t id, const settings& s) {
  std::minstd_rand cloud(1000 + id % s.clouds);
  std::minstd_rand own(id * 2654435761U + 1);
  std::normal_distribution<double> around(0, extent / 12.0);
  cloud.discard(10);
  own.discard(10);
  const auto below = [](std::minstd_rand& random, std::int32_t limit) {
    return std::uniform_int_distribution<std::int32_t>(0, limit - 1)(random);
  };
  moving_triangle m{};
  point corner{};
  for (std::size_t d = 0; d < 3; ++d) {
    const double middle = extent / 5.0 + below(cloud, extent * 3 / 5);
    const double at = middle + around(own);
    corner[d] = static_cast<std::int32_t>(std::clamp(at, 0.0, static_cast<double>(extent - s.size - 1)));
    m.velocity[d] = below(cloud, extent / 50) - extent / 100 + below(own, s.size) - s.size / 2;
  }
  do {
    for (point& p : m.shape)
      for (std::size_t d = 0; d < 3; ++d) p[d] = corner[d] + below(own, s.size);
  } while (!is_proper(m.shape));
  return m;
}

/// One step; it is reflected by the walls of space.
inline void move(moving_triangle& m) {
  const box b = box_of(m.shape);
  for (std::size_t d = 0; d < 3; ++d) {
    if (b.low[d] + m.velocity[d] < 0 || b.high[d] + m.velocity[d] >= extent) m.velocity[d] = -m.velocity[d];
    for (point& p : m.shape) p[d] += m.velocity[d];
  }
}

/// A triangle in a voxel.
struct visitor {
  std::uint32_t id = 0;
  triangle shape{};
};
/// The findings of all voxels.
struct findings {
  std::uint64_t pairs = 0;
  /// Triangles in voxels: one that lies in several counts several times.
  std::uint64_t visits = 0;
  std::uint64_t voxels = 0;
  findings& operator+=(const findings& o) {
    pairs += o.pairs;
    visits += o.visits;
    voxels += o.voxels;
    return *this;
  }
};
/// A voxel, to be looked at.
struct voxel_state {
  orrery::index<3> at{};
  std::uint32_t pe = 0;
  std::uint64_t visits = 0;
  std::uint64_t pairs = 0;
};

struct Voxel;
ORRERY_PROCESS(Voxel, enter, count, list, show, wander);

struct Voxel : orrery::element<Voxel, orrery::index<3>> {
  static constexpr orrery::early when_early(std::string_view method) {
    return method == "enter" ? orrery::early::create_at_home : orrery::early::refuse;
  }

  void enter(std::uint32_t bits, std::span<const visitor> who) {
    bits_ = bits;
    visitors_.insert(visitors_.end(), who.begin(), who.end());
  }
  /// All triangles have moved: how many pairs have met here? Then it is empty again.
  void count(const orrery::result_target& to) {
    last_ = {find([](std::uint32_t, std::uint32_t) {}), visitors_.size(), 1};
    contribute(last_, orrery::sum, to);
    visitors_.clear();
  }
  /// The same, with the pairs themselves.
  void list(const orrery::result_target& to) {
    std::vector<id_pair> all;
    find([&](std::uint32_t a, std::uint32_t b) { all.emplace_back(std::min(a, b), std::max(a, b)); });
    contribute(std::move(all), orrery::concat, to);
    visitors_.clear();
  }
  void show(const orrery::result_target& to) {
    contribute(std::vector<voxel_state>{{this_index(), orrery::this_pe(), last_.visits, last_.pairs}}, orrery::concat,
               to);
  }
  /// Moves to any PE: for tests.
  void wander(std::uint32_t round) {
    const auto [x, y, z] = this_index();
    std::minstd_rand random(round * 7919 + static_cast<std::uint32_t>((x * 73 + y) * 79 + z));
    random.discard(3);
    migrate_to(static_cast<std::uint32_t>(random()) % orrery::world_pes());
  }

  template <class A>
  void serialize(A& a) {
    a & bits_ & visitors_ & last_;
  }

 private:
  // Two triangles may lie together in several voxels. They count in the one with the lowest corner
  // of what their boxes have in common, which is in both boxes, and in one voxel only: so nobody
  // has to be asked.
  [[nodiscard]] bool is_ours(const box& a, const box& b) const {
    for (std::size_t d = 0; d < 3; ++d)
      if (std::max(a.low[d], b.low[d]) >> bits_ != this_index()[d]) return false;
    return true;
  }
  template <class F>
  std::uint64_t find(F found) const {
    std::vector<box> boxes;
    boxes.reserve(visitors_.size());
    for (const visitor& v : visitors_) boxes.push_back(box_of(v.shape));
    std::uint64_t n = 0;
    for (std::size_t i = 0; i < boxes.size(); ++i)
      for (std::size_t j = i + 1; j < boxes.size(); ++j)
        if (overlap(boxes[i], boxes[j]) && is_ours(boxes[i], boxes[j]) &&
            meet(visitors_[i].shape, visitors_[j].shape)) {
          ++n;
          found(visitors_[i].id, visitors_[j].id);
        }
    return n;
  }

  std::uint32_t bits_ = 0;
  std::vector<visitor> visitors_;
  findings last_;
};
using space = orrery::array<Voxel, orrery::index<3>>;

struct Swarm;
ORRERY_PROCESS(Swarm, advance);

/// Some of the triangles.
struct Swarm : orrery::element<Swarm> {
  Swarm() = default;
  Swarm(const settings& s, space voxels) : set_(s), voxels_(voxels) {
    const auto all = std::uint64_t{s.triangles};
    const auto n = static_cast<std::uint64_t>(s.swarms);
    first_ = static_cast<std::uint32_t>(all * static_cast<std::uint64_t>(this_index()) / n);
    const auto last = static_cast<std::uint32_t>(all * (static_cast<std::uint64_t>(this_index()) + 1) / n);
    for (std::uint32_t id = first_; id < last; ++id) triangles_.push_back(make_triangle(id, s));
  }

  /// Moves them, and tells the voxels that they touch: each one message, for all of this swarm's
  /// triangles that it has.
  void advance() {
    std::map<orrery::index<3>, std::vector<visitor>> who;
    for (std::size_t i = 0; i < triangles_.size(); ++i) {
      move(triangles_[i]);
      const visitor v{first_ + static_cast<std::uint32_t>(i), triangles_[i].shape};
      box b = box_of(v.shape);
      for (std::size_t d = 0; d < 3; ++d) {
        b.low[d] >>= set_.voxel_bits;
        b.high[d] >>= set_.voxel_bits;
      }
      for (std::int32_t x = b.low[0]; x <= b.high[0]; ++x)
        for (std::int32_t y = b.low[1]; y <= b.high[1]; ++y)
          for (std::int32_t z = b.low[2]; z <= b.high[2]; ++z) who[{x, y, z}].push_back(v);
    }
    for (const auto& [at, visitors] : who) post(voxels_[at])->enter(set_.voxel_bits, visitors);
  }

  template <class A>
  void serialize(A& a) {
    a & set_ & voxels_ & first_ & triangles_;
  }

 private:
  settings set_;
  space voxels_;
  std::uint32_t first_ = 0;
  std::vector<moving_triangle> triangles_;
};

}  // namespace collision
