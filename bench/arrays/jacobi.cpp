// SPDX-License-Identifier: Apache-2.0
#include "jacobi.hpp"

#include <examples/arrays/jacobi/block.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>

namespace bench {
namespace {

constexpr std::size_t side = 2048;
using clock = std::chrono::steady_clock;

double mcells(int steps, clock::time_point begin) {
  return static_cast<double>(side * side) * steps /
         std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

// Two threads that spin until both are there.
class barrier {
 public:
  void wait() noexcept {
    const int turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) == 1) {
      arrived_.store(0, std::memory_order_relaxed);
      turn_.store(turn + 1, std::memory_order_release);
    } else {
      while (turn_.load(std::memory_order_acquire) == turn) __builtin_ia32_pause();
    }
  }

 private:
  std::atomic<int> arrived_ = 0;
  alignas(64) std::atomic<int> turn_ = 0;
};

// Runs step(thread, number) on two threads, bound to a core each as PEs are, after first(thread) has touched their memory.
template <class First, class Step>
double on_two_threads(int steps, First first, Step step) {
  barrier all;
  clock::time_point begin;
  const auto work = [&](int me) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(me, &own);
    (void)sched_setaffinity(0, sizeof own, &own);
    first(me);
    for (int s = -2; s < steps; ++s) {
      all.wait();
      if (s == 0 && me == 0) begin = clock::now();
      step(me, s + 2, all);
    }
    all.wait();
  };
  std::thread other(work, 1);
  std::thread one(work, 0);
  one.join();
  other.join();
  return mcells(steps, begin);
}

double with_two_grids(int steps) {
  std::array<std::unique_ptr<double[]>, 2> grid;
  for (auto& g : grid) g = std::make_unique_for_overwrite<double[]>(side * side);
  return on_two_threads(
      steps,
      [&](int me) {
        for (auto& g : grid) std::fill_n(&g[static_cast<std::size_t>(me) * side / 2 * side], side / 2 * side, 0.0);
      },
      [&](int me, int s, barrier&) {
        const auto first = static_cast<std::size_t>(me) * side / 2;
        jacobi::relax_rows(grid[s % 2].get(), grid[(s + 1) % 2].get(), side, first, first + side / 2);
      });
}

double in_place(int steps) {
  const auto grid = std::make_unique_for_overwrite<double[]>(side * side);
  const std::vector<double> hot(side, jacobi::hot);
  const std::vector<double> cold(side, jacobi::cold);
  std::array<std::vector<double>, 2> middle{cold, cold};  // the rows where the halves meet, as they were
  return on_two_threads(
      steps, [&](int me) { std::fill_n(&grid[static_cast<std::size_t>(me) * side / 2 * side], side / 2 * side, 0.0); },
      [&](int me, int, barrier& all) {
        const std::size_t half = side / 2 * side;
        std::copy_n(&grid[me == 0 ? half - side : half], side, middle[static_cast<std::size_t>(me)].data());
        all.wait();
        jacobi::relax_in_place({.cells = &grid[me == 0 ? 0 : half],
                                .rows = side / 2,
                                .n = side,
                                .up = me == 0 ? hot.data() : middle[0].data(),
                                .down = me == 0 ? middle[1].data() : cold.data(),
                                .left = cold.data(),
                                .right = cold.data()});
      });
}

}  // namespace

double jacobi_mcells(int cells, bool smoke) {
  const int steps = smoke ? 2 : 60;
  const auto blocks = jacobi::make_grid({.blocks = static_cast<int>(side) / cells, .cells = cells});
  clock::time_point begin;
  double change = 0;
  for (const int now : {2, steps}) {
    begin = clock::now();
    auto [target, error] = orrery::expect_result<double>();
    post(blocks)->iterate(static_cast<std::uint32_t>(now), target);
    change = error.get();
  }
  const double rate = mcells(steps, begin);
  orrery::destroy(blocks);
  return change > 0 && change < 0.25 ? rate : -1;
}

double jacobi_plain_mcells(bool smoke) {
  const int steps = smoke ? 2 : 60;
  return std::max(with_two_grids(steps), in_place(steps));
}

}  // namespace bench
