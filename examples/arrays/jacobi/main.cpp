// SPDX-License-Identifier: Apache-2.0
// The temperature of a square plate with one hot edge, by Jacobi relaxation (Lawlor and Kale 2001,
// appendix).
// run: ./jacobi --blocks 6 --cells 20 --steps 200 --check
// run: ./jacobi --blocks 6 --cells 20 --steps 200 --check --check-every 50 --steps-at-once 7
// run: ./jacobi --blocks 7 --cells 9 --steps 200 --check --hop-every 3 --steps-at-once 1 --orrery-pes=4
// run: ./jacobi --blocks 7 --cells 9 --steps 200 --check --hop-every 3 --orrery-nodes=2 --orrery-pes=2
// run: ./jacobi --blocks 4 --cells 64 --steps 100 --check --hop-every 7 --orrery-nodes=2 --orrery-pes=1
// run: ./jacobi --blocks 4 --cells 16 --steps 96 --check --hop-every 2 --steps-at-once 3 --orrery-nodes=4 --picture jacobi_test.png
#include "../picture.hpp"
#include "block.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

struct options {
  jacobi::settings set;
  std::uint32_t steps = 1000;
  std::uint32_t check_every = 16;
  double tolerance = 0;
  bool check = false;
  std::string picture;
};

// All cells, row by row.
std::vector<double> gather(jacobi::grid grid, const jacobi::settings& s) {
  const auto n = static_cast<std::size_t>(s.cells);
  const std::size_t side = n * static_cast<std::size_t>(s.blocks);
  std::vector<double> all(side * side);
  for (int x = 0; x < s.blocks; ++x)
    for (int y = 0; y < s.blocks; ++y) {
      const std::vector<double> block = grid[x, y]->values();
      for (std::size_t j = 0; j < n; ++j)
        std::copy_n(&block[j * n], n,
                    &all[(static_cast<std::size_t>(y) * n + j) * side + static_cast<std::size_t>(x) * n]);
    }
  return all;
}

// Temperatures on the left, the blocks' PEs on the right.
void paint(jacobi::grid grid, const options& o) {
  constexpr std::ptrdiff_t pixels = 384;
  examples::picture p(2 * pixels + 8, pixels);
  const std::vector<double> all = gather(grid, o.set);
  const std::ptrdiff_t side = o.set.cells * o.set.blocks;
  for (std::ptrdiff_t y = 0; y < pixels; ++y)
    for (std::ptrdiff_t x = 0; x < pixels; ++x)
      p.set(x, y, examples::heat(all[static_cast<std::size_t>(y * side / pixels * side + x * side / pixels)]));
  for (int x = 0; x < o.set.blocks; ++x)
    for (int y = 0; y < o.set.blocks; ++y) {
      const std::ptrdiff_t left = pixels * x / o.set.blocks;
      const std::ptrdiff_t top = pixels * y / o.set.blocks;
      const std::ptrdiff_t w = pixels * (x + 1) / o.set.blocks - left;
      const std::ptrdiff_t h = pixels * (y + 1) / o.set.blocks - top;
      p.fill(pixels + 8 + left, top, w, h, examples::of_pe(grid[x, y]->where()));
      p.edge(pixels + 8 + left, top, w, h, {255, 255, 255});
    }
  p.write(o.picture);
}

int relax(const options& o) {
  auto grid = jacobi::make_grid(o.set);
  const auto begin = std::chrono::steady_clock::now();
  std::uint32_t done = 0;
  double change = 0;
  // a reduction every so many steps, as in the paper: in between nobody waits for all
  while (done < o.steps) {
    const std::uint32_t now = std::min(o.check_every, o.steps - done);
    auto [target, error] = orrery::expect_result<double>();
    post(grid)->iterate(now, target);
    change = error.get();
    done += now;
    if (change < o.tolerance) break;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const double side = static_cast<double>(o.set.blocks) * o.set.cells;
  fmt::print("{} steps on {} blocks, last change {:.3g}: {:.1f} ms a step, {:.0f} Mcell/s\n", done,
             o.set.blocks * o.set.blocks, change, time.count() * 1e3 / done, side * side * done / time.count() / 1e6);
  if (!o.picture.empty()) paint(grid, o);
  if (o.check) {
    const bool same = gather(grid, o.set) == jacobi::plain(static_cast<std::size_t>(side), static_cast<int>(done));
    fmt::print("{} bit-identical to a plain loop over the whole plate\n", same ? "it is" : "it is NOT");
    if (!same) return 1;
  }
  orrery::destroy(grid);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    CLI::App app{"Jacobi relaxation of a plate with one hot edge, on an array of blocks"};
    options o;
    app.add_option("--blocks", o.set.blocks, "blocks in each direction")->check(CLI::Range(1, 4096));
    app.add_option("--cells", o.set.cells, "cells of a block in each direction")->check(CLI::Range(1, 8192));
    app.add_option("--steps", o.steps, "at most so many")->check(CLI::PositiveNumber);
    app.add_option("--check-every", o.check_every, "steps between two reductions of the change")
        ->check(CLI::PositiveNumber);
    app.add_option("--tolerance", o.tolerance, "ends when no cell changes by more");
    app.add_option("--hop-every", o.set.hop_every, "blocks migrate at random, each in one of so many steps; 0: never");
    app.add_option("--steps-at-once", o.set.steps_at_once,
                   "after so many a block lets the others of its PE come as far; 0: it never does");
    app.add_option("--seed", o.set.seed, "of the migrations");
    app.add_flag("--check", o.check, "compares the result with a plain loop, bit for bit");
    app.add_option("--picture", o.picture, "a PNG: temperature, and the blocks' PEs");
    try {
      // CLI11 takes them from the end
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return relax(o);
  });
}
