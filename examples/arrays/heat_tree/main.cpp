// SPDX-License-Identifier: Apache-2.0
// Heat flow on a quadtree that follows a flame: leaves are born and end, migrate, and are balanced
// while the program runs.
// run: ./heat_tree --cells 4 --finest 5 --steps 1000 --check --orrery-pes=3
// run: ./heat_tree --cells 4 --finest 5 --steps 1000 --check --balance graph --orrery-nodes=2
// run: ./heat_tree --cells 4 --finest 5 --steps 1000 --check --hop-every 5 --orrery-pes=4 --picture heat_tree_test.png
// run: ./heat_tree --cells 4 --finest 5 --steps 1000 --check --hop-every 20 --orrery-nodes=3
#include "../picture.hpp"
#include "node.hpp"

#include <orrery/array/balance.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using namespace heat_tree;

struct options {
  settings set;
  std::uint32_t adapt_every = 20;
  std::string balance = "none";
  bool check = false;
  std::string picture;
};
struct outcome {
  std::vector<leaf_state> leaves;
  totals sum;  // heat at the end; all that was added, born, and has ended
};

std::unique_ptr<orrery::balance_strategy> strategy(const std::string& name) {
  if (name == "greedy") return orrery::balance_greedy();
  if (name == "refine") return orrery::balance_refine();
  return orrery::balance_graph();
}

// The four rounds of node.hpp.
void change(tree nodes) {
  post(nodes)->decide();
  orrery::quiescence();
  post(nodes)->vote();
  orrery::quiescence();
  post(nodes)->settle();
  orrery::quiescence();
  post(nodes)->adapt();
  orrery::quiescence();
}

totals advance(tree nodes, std::uint32_t steps) {
  auto [target, result] = orrery::expect_result<totals>();
  post(nodes)->advance(steps, target);
  return result.get();
}

outcome simulate(const options& o) {
  const settings& s = o.set;
  auto nodes = orrery::create_array<Node, orrery::bit_path>({.name = "tree"});
  constexpr levels walls{{{wall, wall}, {wall, wall}, {wall, wall}, {wall, wall}}};
  nodes.insert(orrery::bit_path{}, s, walls, std::vector<double>(std::size_t{s.cells} * s.cells), 0U);
  for (std::uint32_t l = 0; l < s.coarsest; ++l) change(nodes);
  if (o.balance != "none") orrery::measure_load(nodes, true);
  outcome all;
  std::size_t moved = 0;
  for (std::uint32_t step = 0; step < s.steps;) {
    const std::uint32_t now = std::min(o.adapt_every, s.steps - step);
    const totals t = advance(nodes, now);
    step += now;
    all.sum = {t.heat, all.sum.added + t.added, t.leaves, all.sum.born + t.born, all.sum.ended + t.ended};
    if (step == s.steps) break;
    change(nodes);
    if (o.balance != "none" && step / o.adapt_every % 10 == 0)
      moved += orrery::balance(nodes, *strategy(o.balance)).moved;
  }
  auto [target, result] = orrery::expect_result<std::vector<leaf_state>>();
  post(nodes)->show(target);
  all.leaves = result.get();
  std::ranges::sort(all.leaves, {}, &leaf_state::at);
  if (o.balance != "none") fmt::print("  balancing moved {} leaves\n", moved);
  orrery::destroy(nodes);
  return all;
}

// The largest difference to the uniform solution, of which each cell of a leaf covers some.
double largest_error(const outcome& got, const settings& s) {
  const std::vector<double> fine = uniform_solution(s);
  const std::size_t side = std::size_t{s.cells} << s.finest;
  double most = 0;
  for (const leaf_state& leaf : got.leaves) {
    const std::size_t wide = std::size_t{1} << (s.finest - leaf.at.level);
    for (std::size_t i = 0; i < leaf.cells.size(); ++i) {
      const std::size_t x0 = (leaf.at.x * s.cells + i % s.cells) * wide;
      const std::size_t y0 = (leaf.at.y * s.cells + i / s.cells) * wide;
      double mean = 0;
      for (std::size_t y = y0; y < y0 + wide; ++y)
        for (std::size_t x = x0; x < x0 + wide; ++x) mean += fine[y * side + x];
      most = std::max(most, std::abs(leaf.cells[i] - mean / static_cast<double>(wide * wide)));
    }
  }
  return most;
}

double hottest(const outcome& o) {
  double most = 0;
  for (const leaf_state& leaf : o.leaves) most = std::max(most, *std::ranges::max_element(leaf.cells));
  return most;
}

bool is_right(const outcome& got, const options& o) {
  constexpr double tolerance = 0.02;  // of the highest temperature
  bool good = true;
  const auto expect = [&](bool yes, const std::string& what) {
    fmt::print("  {}: {}\n", what, yes ? "yes" : "NO");
    good &= yes;
  };
  expect(std::abs(got.sum.heat - got.sum.added) < 1e-12 * got.sum.heat,
         fmt::format("no heat is lost: {:.15g} of {:.15g} added", got.sum.heat, got.sum.added));
  const double error = largest_error(got, o.set) / hottest(got);
  expect(error < tolerance, fmt::format("as on a uniform grid to {:.2} of the highest temperature", error));
  expect(got.sum.born > 0 && got.sum.ended > 0, "leaves were born and ended");
  std::uint64_t area = 0;
  for (const leaf_state& leaf : got.leaves) area += std::uint64_t{1} << (2 * (o.set.finest - leaf.at.level));
  expect(area == std::uint64_t{1} << (2 * o.set.finest), "the leaves cover the plate once");
  if (o.set.hop_every == 0 && o.balance == "none") return good;
  options still = o;
  still.set.hop_every = 0;
  still.balance = "none";
  expect(
      std::ranges::equal(simulate(still).leaves, got.leaves,
                         [](const leaf_state& a, const leaf_state& b) { return a.at == b.at && a.cells == b.cells; }),
      "to the last bit as without migration");
  return good;
}

// Temperature with the cells' edges on the left, the leaves' PEs on the right.
void paint(const outcome& got, const options& o) {
  constexpr std::ptrdiff_t pixels = 512;
  examples::picture p(2 * pixels + 8, pixels);
  const double most = hottest(got);
  for (const leaf_state& leaf : got.leaves) {
    const auto n = static_cast<std::ptrdiff_t>(o.set.cells);
    const std::ptrdiff_t size = pixels >> leaf.at.level;
    const std::ptrdiff_t left = leaf.at.x * size;
    const std::ptrdiff_t top = leaf.at.y * size;
    for (std::ptrdiff_t y = 0; y < size; ++y)
      for (std::ptrdiff_t x = 0; x < size; ++x)
        p.set(left + x, top + y,
              examples::heat(leaf.cells[static_cast<std::size_t>(y * n / size * n + x * n / size)] / most));
    p.edge(left, top, size, size, {90, 90, 110});
    p.fill(pixels + 8 + left, top, size, size, examples::of_pe(leaf.pe));
    p.edge(pixels + 8 + left, top, size, size, {255, 255, 255});
  }
  p.write(o.picture);
}

int run(const options& o) {
  const outcome got = simulate(o);
  fmt::print("{} leaves of {} x {} cells at the end, {} born and {} ended on the way; the hottest cell has {:.3f}\n",
             got.leaves.size(), o.set.cells, o.set.cells, got.sum.born, got.sum.ended, hottest(got));
  if (!o.picture.empty()) paint(got, o);
  return !o.check || is_right(got, o) ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    CLI::App app{"Heat flow on a quadtree that follows a flame"};
    options o;
    app.add_option("--cells", o.set.cells, "of a leaf in each direction; even")
        ->check(CLI::Range(2, 64))
        ->check([](const std::string& n) { return std::stoi(n) % 2 == 0 ? "" : "must be even"; });
    app.add_option("--coarsest", o.set.coarsest, "the plate is at least 2^N leaves wide")->check(CLI::Range(1, 10));
    app.add_option("--finest", o.set.finest, "and at most 2^N")->check(CLI::Range(1, 10));
    app.add_option("--steps", o.set.steps, "in which the flame goes round once")->check(CLI::PositiveNumber);
    app.add_option("--adapt-every", o.adapt_every, "steps between two changes of the tree")->check(CLI::PositiveNumber);
    app.add_option("--refine-above", o.set.refine_above, "difference of temperature within a leaf");
    app.add_option("--coarsen-below", o.set.coarsen_below, "the same");
    app.add_option("--hop-every", o.set.hop_every, "leaves migrate at random, each in one of so many steps; 0: never");
    app.add_option("--balance", o.balance, "how leaves are spread over the PEs, every ten changes")
        ->check(CLI::IsMember({"none", "greedy", "refine", "graph"}));
    app.add_flag("--check", o.check, "compares with a uniform grid, sums up the heat, compares with no migration");
    app.add_option("--picture", o.picture, "a PNG: temperature and tree, and the leaves' PEs");
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return run(o);
  });
}
