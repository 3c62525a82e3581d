// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "heat.hpp"
#include "place.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

// The plate as a quadtree whose nodes are the elements of an array, addressed by their way from the
// root. Leaves hold cells x cells temperatures; one that has neighbours of other sizes differs from
// them by one level at most. The tree changes while the program runs, in four rounds, each of which
// ends when all is quiet (quiescence):
//
//   decide  leaves with large differences want to be refined, and make their coarser neighbours
//           want it too, which may go on far
//   vote    leaves without, whose neighbours will not be finer, tell their parents that they can do
//           without
//   settle  parents with four votes tell their children, and those their neighbours
//   adapt   leaves split into four new elements, or give what they have to their parent, which ends
//           them

namespace heat_tree {

/// The sums over all leaves.
struct totals {
  double heat = 0;
  double added = 0;  ///< by the flame, since the last report
  std::uint64_t leaves = 0;
  std::uint64_t born = 0;  ///< since the last report, by refinement
  std::uint64_t ended = 0;  ///< by coarsening
  totals& operator+=(const totals& o) {
    heat += o.heat;
    added += o.added;
    leaves += o.leaves;
    born += o.born;
    ended += o.ended;
    return *this;
  }
};
/// A leaf, to be looked at.
struct leaf_state {
  place at;
  std::uint32_t pe = 0;
  std::vector<double> cells;
};

// of the neighbours at each half of each side
using levels = std::array<std::array<std::int32_t, 2>, 4>;
inline constexpr std::int32_t wall = -1;
inline constexpr std::uint32_t both = 2;  // halves

struct Node;
ORRERY_PROCESS(Node, advance, recv_border, decide, hear, vote, count_vote, settle, join, adapt, take, show);

struct Node : orrery::element<Node, orrery::bit_path> {
  Node() = default;
  Node(const settings& s, const levels& around, std::vector<double> cells, std::uint32_t step)
      : set_(s),
        at_(place::of(this_index())),
        leaf_(true),
        cells_(std::move(cells)),
        around_(around),
        next_(around),
        want_(level()),
        step_(step),
        until_(step) {
    random_ = step + static_cast<std::uint32_t>(this_index().hash());
  }

  // --- time ---

  /// So many steps; then the totals go to the target.
  void advance(std::uint32_t steps, const orrery::result_target& done) {
    done_ = done;
    if (!leaf_) {
      contribute(totals{.born = std::exchange(born_, 0), .ended = std::exchange(ended_, 0)}, orrery::sum, done_);
      return;
    }
    until_ = step_ + steps;
    send_borders();
    proceed();
  }
  /// A neighbour's cells along this node's side, or half of it. It can be one step ahead, never
  /// two: see the Jacobi example.
  void recv_border(std::uint32_t step, side from, std::uint32_t half, std::span<const double> border) {
    std::vector<double>& all = borders_[step % 2][number(from)];
    const bool finer = around_[number(from)][0] > level();
    all.resize(finer ? 2 * set_.cells : border.size());
    std::ranges::copy(border, all.begin() + (finer ? half * set_.cells : 0));
    ++arrived_[step % 2];
    proceed();
  }

  // --- another tree ---

  void decide() {
    if (!leaf_) return;
    const bool refine = at_.level < set_.coarsest || (at_.level < set_.finest && range() > set_.refine_above);
    if (refine) wish(level() + 1);
  }
  /// The level that a neighbour will have.
  void hear(side from, std::uint32_t half, std::int32_t its) {
    auto& [first, second] = next_[number(from)];
    if (half != 1) first = its;
    if (half != 0) second = its;
    if (its > want_ + 1) wish(its - 1);
  }
  void vote() {
    if (!leaf_ || at_.level <= set_.coarsest || want_ != level() || range() > set_.coarsen_below) return;
    for (const auto& s : next_)
      if (s[0] > level() || s[1] > level()) return;
    post(this_array()[at_.parent().path()])->count_vote();
  }
  void count_vote() { ++votes_; }
  void settle() {
    if (std::exchange(votes_, 0) == 4)
      for (std::uint32_t q = 0; q < 4; ++q) post(this_array()[at_.child(q & 1, q >> 1).path()])->join();
  }
  void join() { wish(level() - 1); }
  // Nodes that are born meanwhile hear of it too, and have no wish.
  void adapt() {
    if (!leaf_) return;
    if (want_ > level()) {
      split();
    } else if (want_ < level()) {
      post(this_array()[at_.parent().path()])->take(at_, averages(), next_, step_);
    } else {
      around_ = next_;
    }
  }
  /// The legacy of a child to its parent.
  void take(const place& child, std::span<const double> quarter, const levels& around, std::uint32_t step) {
    const std::uint32_t half = set_.cells / 2;
    cells_.resize(std::size_t{set_.cells} * set_.cells);
    for (std::uint32_t y = 0; y < half; ++y)
      for (std::uint32_t x = 0; x < half; ++x)
        cell((child.x & 1) * half + x, (child.y & 1) * half + y) = quarter[y * half + x];
    for (const side s : sides)
      if (child.touches(s)) around_[number(s)][child.half_at(s)] = around[number(s)][0];
    step_ = until_ = step;
    ++ended_;
    if (++taken_ < 4) return;
    taken_ = 0;
    leaf_ = true;
    next_ = around_;
    want_ = level();
    for (std::uint32_t q = 0; q < 4; ++q) (void)start_destroy(this_array()[at_.child(q & 1, q >> 1).path()]);
  }

  void show(const orrery::result_target& to) {
    std::vector<leaf_state> own;
    if (leaf_) own.push_back({at_, orrery::this_pe(), cells_});
    contribute(std::move(own), orrery::concat, to);
  }

  template <class A>
  void serialize(A& a) {
    a & set_ & at_ & leaf_ & cells_ & borders_ & arrived_ & around_ & next_ & want_ & votes_ & taken_ & born_ & ended_;
    a & added_ & step_ & until_ & done_ & random_;
  }

 private:
  [[nodiscard]] std::int32_t level() const noexcept { return static_cast<std::int32_t>(at_.level); }
  [[nodiscard]] double& cell(std::uint32_t x, std::uint32_t y) { return cells_[std::size_t{y} * set_.cells + x]; }
  /// Cell number i along a side.
  [[nodiscard]] double& cell_at(side s, std::uint32_t i) {
    const std::uint32_t last = set_.cells - 1;
    if (is_upright(s)) return cell(s == side::west ? 0 : last, i);
    return cell(i, s == side::north ? 0 : last);
  }
  [[nodiscard]] double range() const {
    const auto [least, most] = std::ranges::minmax(cells_);
    return most - least;
  }

  // Calls f(neighbour, its side, which half of that, the first and the number of this node's cells
  // that it touches).
  template <class F>
  void for_each_neighbour(F f) {
    for (const side s : sides) {
      const std::int32_t its = around_[number(s)][0];
      if (its == wall) continue;
      const place beside = at_.beside(s);
      const std::uint32_t n = set_.cells;
      if (its == level()) f(beside, opposite(s), both, s, 0U, n);
      if (its < level()) f(beside.parent(), opposite(s), at_.half_at(s), s, 0U, n);
      if (its > level())
        for (std::uint32_t half = 0; half < 2; ++half)
          f(beside.child_at(opposite(s), half), opposite(s), both, s, half * n / 2, n / 2);
    }
  }
  void wish(std::int32_t level) {
    want_ = level;
    for_each_neighbour([&](const place& to, side its, std::uint32_t half, side, std::uint32_t, std::uint32_t) {
      post(this_array()[to.path()])->hear(its, half, want_);
    });
  }

  void send_borders() {
    std::vector<double> border;
    for_each_neighbour(
        [&](const place& to, side its, std::uint32_t half, side own, std::uint32_t first, std::uint32_t n) {
          border.resize(n);
          for (std::uint32_t i = 0; i < n; ++i) border[i] = cell_at(own, first + i);
          post(this_array()[to.path()])->recv_border(step_, its, half == both ? 0 : half, border);
        });
  }
  [[nodiscard]] std::int32_t expected() const {
    std::int32_t n = 0;
    for (const auto& s : around_) n += s[0] == wall ? 0 : s[0] > level() ? 2 : 1;
    return n;
  }
  void proceed() {
    while (leaf_ && step_ < until_ && arrived_[step_ % 2] == expected()) {
      compute();
      if (step_ < until_) {
        send_borders();
      } else {
        report();
      }
      if (set_.hop_every == 0) continue;
      std::minstd_rand random(random_);
      if (random() % set_.hop_every == 0) migrate_to(static_cast<std::uint32_t>(random()) % orrery::world_pes());
      random_ = static_cast<std::uint32_t>(random());
    }
  }
  void report() {
    const double h = set_.width(at_.level);
    double all = 0;
    for (const double t : cells_) all += t;
    contribute(totals{all * h * h, std::exchange(added_, 0), 1, std::exchange(born_, 0), std::exchange(ended_, 0)},
               orrery::sum, done_);
  }

  // The flow between two cells is the same for both, whatever their sizes, so that no heat is lost:
  // the difference, times the length of their common edge, by the distance of their middles. In
  // units of the edge of this node's cells that is 1 between equal ones, and 2/3 between one and
  // one of half its size.
  void compute() {
    const std::uint32_t n = set_.cells;
    std::vector<double> flow(cells_.size());
    for (std::uint32_t y = 0; y < n; ++y)
      for (std::uint32_t x = 0; x + 1 < n; ++x) {
        const std::size_t i = std::size_t{y} * n + x;
        const double f = cells_[i + 1] - cells_[i];
        flow[i] += f;
        flow[i + 1] -= f;
      }
    for (std::size_t i = 0; i + n < cells_.size(); ++i) {
      const double f = cells_[i + n] - cells_[i];
      flow[i] += f;
      flow[i + n] -= f;
    }
    for (const side s : sides) {
      const std::vector<double>& border = borders_[step_ % 2][number(s)];
      const std::int32_t its = around_[number(s)][0];
      for (std::uint32_t i = 0; its != wall && i < n; ++i) {
        const double& own = cell_at(s, i);
        double& to = flow[static_cast<std::size_t>(&own - cells_.data())];
        if (its == level()) to += border[i] - own;
        if (its < level()) to += 2.0 / 3 * (border[i / 2] - own);
        if (its > level()) to += 2.0 / 3 * (border[2 * i] - own) + 2.0 / 3 * (border[2 * i + 1] - own);
      }
    }
    const double h = set_.width(at_.level);
    const double dt = set_.time_step();
    for (std::uint32_t y = 0; y < n; ++y)
      for (std::uint32_t x = 0; x < n; ++x) {
        const double added = dt * flame(set_, (at_.x * n + x + 0.5) * h, (at_.y * n + y + 0.5) * h, step_);
        cell(x, y) += dt / (h * h) * flow[std::size_t{y} * n + x] + added;
        added_ += added * h * h;
      }
    arrived_[step_ % 2] = 0;
    ++step_;
  }

  // Each cell becomes four, which follow its slope and have its temperature as their mean.
  [[nodiscard]] std::vector<double> quarter(std::uint32_t right, std::uint32_t below) {
    const std::uint32_t n = set_.cells;
    // the smaller one: no new extremes
    const auto slope = [](double before, double here, double after) {
      const double a = here - before;
      const double b = after - here;
      return a * b <= 0 ? 0 : std::abs(a) < std::abs(b) ? a : b;
    };
    std::vector<double> q(cells_.size());
    for (std::uint32_t y = 0; y < n; ++y)
      for (std::uint32_t x = 0; x < n; ++x) {
        const std::uint32_t cx = right * n / 2 + x / 2;
        const std::uint32_t cy = below * n / 2 + y / 2;
        const double t = cell(cx, cy);
        const double dx = cx == 0 || cx == n - 1 ? 0 : slope(cell(cx - 1, cy), t, cell(cx + 1, cy));
        const double dy = cy == 0 || cy == n - 1 ? 0 : slope(cell(cx, cy - 1), t, cell(cx, cy + 1));
        q[std::size_t{y} * n + x] = t + dx * (x % 2 == 0 ? -0.25 : 0.25) + dy * (y % 2 == 0 ? -0.25 : 0.25);
      }
    return q;
  }
  [[nodiscard]] std::vector<double> averages() {
    std::vector<double> all;
    for (std::uint32_t y = 0; y < set_.cells; y += 2)
      for (std::uint32_t x = 0; x < set_.cells; x += 2)
        all.push_back(0.25 * (cell(x, y) + cell(x + 1, y) + cell(x, y + 1) + cell(x + 1, y + 1)));
    return all;
  }
  void split() {
    for (std::uint32_t q = 0; q < 4; ++q) {
      const place child = at_.child(q & 1, q >> 1);
      levels around;
      for (const side s : sides) {
        const std::int32_t its = child.touches(s) ? next_[number(s)][child.half_at(s)] : level() + 1;
        around[number(s)] = {its, its};
      }
      this_array().post_insert_at(orrery::here(), child.path(), set_, around, quarter(q & 1, q >> 1), step_);
    }
    leaf_ = false;
    cells_.clear();
    born_ += 4;
  }

  settings set_;
  place at_;
  bool leaf_ = false;
  std::vector<double> cells_;  // row by row
  std::array<std::array<std::vector<double>, 4>, 2>
      borders_;  // before even and odd steps, of each side: as fine as the neighbour
  std::array<std::int32_t, 2> arrived_{};
  levels around_{};
  levels next_{};  // after the next change of the tree, as far as is known
  std::int32_t want_ = 0;  // own level after that
  std::uint32_t votes_ = 0;
  std::uint32_t taken_ = 0;
  std::uint64_t born_ = 0;
  std::uint64_t ended_ = 0;
  double added_ = 0;
  std::uint32_t step_ = 0;
  std::uint32_t until_ = 0;
  orrery::result_target done_;
  std::uint32_t random_ = 0;
};

using tree = orrery::array<Node, orrery::bit_path>;

}  // namespace heat_tree
