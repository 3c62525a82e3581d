// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernel.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <vector>

// Jacobi relaxation of a square as an array of square blocks, many for each PE (Lawlor and Kale
// 2001, appendix). No block waits for a barrier: each goes on as soon as its neighbours' borders
// are there, so that a PE works on some blocks while messages for others are on their way.

namespace jacobi {

enum class side : std::uint8_t { up, down, left, right };  // of the receiver

/// A run; the same for all blocks.
struct settings {
  std::int32_t blocks = 4;  ///< in each direction
  std::int32_t cells = 64;  ///< of a block, in each direction
  /// A block goes to a PE chosen at random in one of so many steps; 0: never.
  std::uint32_t hop_every = 0;
  std::uint32_t seed = 1;
  /// After so many a block lets the others of its PE come as far; 0: it never does.
  std::uint32_t steps_at_once = 12;
  std::uint32_t cell_ps = 1000;  ///< picoseconds that a cell takes in a simulated world
};

struct Block;
ORRERY_PROCESS(Block, iterate, recv_border, go_on, values, where);

struct Block : orrery::element<Block, orrery::index<2>> {
  Block() = default;
  explicit Block(const settings& s) : n_(static_cast<std::size_t>(s.cells)), set_(s) {
    const auto [x, y] = this_index();
    memory_.assign(8 * n_ + n_ * n_, cold);
    if (y == 0)
      for (const std::uint32_t step : {0U, 1U}) std::ranges::fill(border(step, side::up), hot);
    neighbours_ = (x > 0) + (x < set_.blocks - 1) + (y > 0) + (y < set_.blocks - 1);
    random_ = set_.seed + static_cast<std::uint32_t>(x * set_.blocks + y);
  }

  /// So many steps more; then the largest change of the last one goes to `error`.
  void iterate(std::uint32_t steps, const orrery::result_target& error) {
    until_ = step_ + steps;
    error_ = error;
    begin_turn();
    {
      const columns out(n_);
      for (std::size_t y = 0; y < n_; ++y) {
        out.first()[y] = cells()[y * n_];
        out.last()[y] = cells()[y * n_ + n_ - 1];
      }
      send_borders(out);
    }
    proceed();
  }

  /// The neighbour's cells after `step` steps. A neighbour can be one step ahead, never two, as it
  /// needs this block's border in between: so two sets of borders are enough, in whatever order
  /// messages come.
  void recv_border(std::uint32_t step, side from, std::span<const double> border) {
    std::memcpy(this->border(step, from).data(), border.data(), border.size_bytes());
    ++arrived_[step % 2];
    proceed();
  }

  /// The PE has nothing else to do.
  void go_on() {
    begin_turn();
    proceed();
  }

  [[nodiscard]] std::vector<double> values() const { return {cells().begin(), cells().end()}; }
  [[nodiscard]] std::uint32_t where() const { return orrery::this_pe(); }

  template <class A>
  void serialize(A& a) {
    a & set_ & n_ & memory_ & arrived_ & neighbours_ & step_ & until_ & turn_ & error_ & random_;
  }

 private:
  [[nodiscard]] std::span<double> border(std::uint32_t step, side s) {
    return std::span(memory_).subspan((step % 2 * 4 + static_cast<std::size_t>(s)) * n_, n_);
  }
  [[nodiscard]] std::span<const double> cells() const { return std::span(memory_).subspan(8 * n_); }
  // The first and the last column, until they are sent. A post may park, and other blocks of the PE
  // are at work meanwhile: whoever has them keeps them. Mostly they are the same, which stay in the
  // cache.
  class columns {
   public:
    explicit columns(std::size_t n) {
      if (!spare().empty()) {
        both_ = std::move(spare().back());
        spare().pop_back();
      }
      both_.resize(2 * n);
    }
    columns(const columns&) = delete;
    columns& operator=(const columns&) = delete;
    ~columns() { spare().push_back(std::move(both_)); }
    [[nodiscard]] std::span<double> first() const { return std::span(both_).first(both_.size() / 2); }
    [[nodiscard]] std::span<double> last() const { return std::span(both_).last(both_.size() / 2); }

   private:
    static std::vector<std::vector<double>>& spare() {
      static thread_local std::vector<std::vector<double>> all;
      return all;
    }
    mutable std::vector<double> both_;
  };

  // After compute(), which leaves the columns.
  void send_borders(const columns& out) {
    const auto grid = this_array();
    const auto [x, y] = this_index();
    const std::span<const double> now = cells();
    const std::int32_t end = set_.blocks - 1;
    if (y > 0) post(grid[x, y - 1])->recv_border(step_, side::down, now.first(n_));
    if (y < end) post(grid[x, y + 1])->recv_border(step_, side::up, now.last(n_));
    if (x > 0) post(grid[x - 1, y])->recv_border(step_, side::right, std::span<const double>(out.first()));
    if (x < end) post(grid[x + 1, y])->recv_border(step_, side::left, std::span<const double>(out.last()));
  }

  void begin_turn() { turn_ = set_.steps_at_once != 0 ? std::min(until_, step_ + set_.steps_at_once) : until_; }

  void proceed() {
    while (step_ < turn_ && arrived_[step_ % 2] == neighbours_) {
      const bool last = step_ + 1 == until_;
      const columns out(n_);
      const double change = compute(last, out);
      if (last) {
        contribute(change, orrery::maximum, error_);
      } else {
        send_borders(out);
        if (step_ == turn_) step_back();
      }
      hop();
    }
  }

  // Where the blocks of a PE do not fit into its cache, one that goes on and on is thrown out by
  // the next ones before its neighbours have used it. So all go some steps each while they are
  // there, a few rows of blocks at a time, and who is next is fetched meanwhile (time skewing).
  void step_back() {
    orrery::when_idle([me = this_array()[this_index()]] { post(me)->go_on(); }, std::as_bytes(std::span(memory_)));
  }

  // Returns the largest change if that is wanted.
  double compute(bool with_change, const columns& out) {
    double change = 0;
    relax_in_place({.cells = memory_.data() + 8 * n_,
                    .rows = n_,
                    .n = n_,
                    .up = border(step_, side::up).data(),
                    .down = border(step_, side::down).data(),
                    .left = border(step_, side::left).data(),
                    .right = border(step_, side::right).data(),
                    .first = out.first().data(),
                    .last = out.last().data()},
                   with_change ? &change : nullptr);
    arrived_[step_ % 2] = 0;
    ++step_;
    orrery::compute(std::chrono::nanoseconds(n_ * n_ * set_.cell_ps / 1000));
    return change;
  }

  void hop() {
    if (set_.hop_every == 0) return;
    std::minstd_rand random(random_);
    if (random() % set_.hop_every == 0) migrate_to(static_cast<std::uint32_t>(random()) % orrery::world_pes());
    random_ = static_cast<std::uint32_t>(random());
  }

  // The members that each border needs come first, to be in one place.
  std::uint32_t step_ = 0;
  std::uint32_t until_ = 0;
  std::uint32_t turn_ = 0;  ///< at which step it steps back
  std::array<std::int32_t, 2> arrived_{};
  std::int32_t neighbours_ = 0;
  std::uint32_t random_ = 0;
  std::size_t n_ = 0;
  // The borders at even and odd steps, four sides each (walls never change), then the cells.
  std::vector<double> memory_;
  settings set_;
  orrery::result_target error_;
};

using grid = orrery::array<Block, orrery::index<2>>;

using places = orrery::placement_map<orrery::index<2>>;

/// The blocks of a square, each at its home.
inline grid make_grid(const settings& s, const places& home) {
  const orrery::index<2> all{s.blocks, s.blocks};
  return orrery::create_array<Block>(orrery::range<orrery::index<2>>{all}, {.name = "jacobi", .home = home}, {}, s);
}
/// The same with a box of blocks on each PE: of little surface, and with short rows, so that the
/// few that are in work together are in the cache.
inline grid make_grid(const settings& s) { return make_grid(s, places::boxes({s.blocks, s.blocks})); }

}  // namespace jacobi
