// SPDX-License-Identifier: Apache-2.0
// The shortest tour through cities, by branch and bound: the length of the best tour is a
// read-mostly scalar.
// run: ./tsp --cities 8 --instances 5 --check --orrery-pes=2
// run: ./tsp --cities 13 --check --orrery-nodes=2 --orrery-pes=1
// run: ./tsp --cities 11 --depth 3 --node-ns 40 --check --orrery-sim=machines=12,net=10g
// run: ./tsp --cities 12 --instances 2 --check --orrery-sim=machines=6,net=10g,jitter=3us
// run: ./tsp --cities 9 --instances 8 --seed 40 --check --members 7 --orrery-sim=machines=3,jitter=30us,seed=5
// run: ./tsp --cities 8 --check --orrery-sim=machines=4,jitter=3us --orrery-check-sharing
// run: ./tsp --cities 7 --check --plain --orrery-sim=machines=4,net=10g --orrery-advise
#include "team_search.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using tsp::outcome;

struct options {
  tsp::search search{14};
  int instances = 1;
  std::uint64_t seed = 1;
  std::size_t members = 0;
  bool check = false;
};

bool is_right(const tsp::instance& i, const outcome& o) {
  std::vector<int> cities = o.tour;
  std::ranges::sort(cities);
  bool each = cities.size() == static_cast<std::size_t>(i.n);
  for (int c = 0; each && c < i.n; ++c) each = cities[static_cast<std::size_t>(c)] == c;
  if (!each) return fmt::print(stderr, "not a tour through {} cities\n", i.n), false;
  if (tsp::length_of(i, o.tour) != o.length) return fmt::print(stderr, "the tour has another length\n"), false;
  const int shortest = tsp::shortest_by_sets(i);
  if (shortest != o.length) return fmt::print(stderr, "{} found, the shortest is {}\n", o.length, shortest), false;
  if (i.n <= 9 && tsp::shortest_by_all(i) != shortest)
    return fmt::print(stderr, "dynamic programming found {}, which is not the shortest\n", shortest), false;
  return true;
}

int solve(const options& o, std::uint64_t seed) {
  const std::vector<int> distance = tsp::random_distances(o.search.cities, seed);
  const orrery::shared_vector<int> distances(distance.size());
  copy(std::span<const int>(distance), distances);
  const orrery::shared<int> best(std::numeric_limits<int>::max());
  const orrery::shared<int> next(0);
  const orrery::team team = o.members == 0 ? orrery::team() : orrery::team(orrery::everywhere(), o.members);
  const auto begin = orrery::now();
  const std::vector<outcome> all = orrery::spmd<&tsp::search_as_member>(team, distances, o.search, best, next);
  const double seconds = std::chrono::duration<double>(orrery::now() - begin).count();
  std::uint64_t nodes = 0;
  for (const outcome& m : all) nodes += m.nodes;
  const outcome& found = *std::ranges::min_element(all, {}, &outcome::length);
  if (found.length != best) return fmt::print(stderr, "nobody has the best tour\n"), 1;
  if (o.check && !is_right({o.search.cities, distance}, found)) return 1;
  fmt::print("seed {}: {} through {} cities; {} nodes, {:.2f} million a second, {:.6f} s\n", seed, found.length,
             o.search.cities, nodes, static_cast<double>(nodes) / seconds / 1e6, seconds);
  destroy(distances);
  destroy(best);
  destroy(next);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    options o;
    CLI::App app("The shortest tour through cities");
    app.add_option("--cities", o.search.cities, "how many; with --check at most 16")->check(CLI::Range(3, 40));
    app.add_option("--instances", o.instances, "how many, with seeds that follow each other");
    app.add_option("--seed", o.seed, "of the first");
    app.add_option("--members", o.members, "of the team; 0: one on each PE");
    app.add_option("--depth", o.search.depth, "cities of the beginnings that members take")->check(CLI::Range(1, 4));
    app.add_option("--node-ns", o.search.node_ns, "in simulations: time of a node of the search");
    app.add_flag_callback(
        "--plain", [&] { o.search.cached = o.search.read_mostly = false; },
        "without scopes: each access by default, for --orrery-advise");
    app.add_flag("--check", o.check, "prove that the tour is the shortest");
    try {
      // CLI11 takes them from the end
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    o.search.depth = std::min(o.search.depth, o.search.cities - 1);
    if (o.check && o.search.cities > 16) return fmt::print(stderr, "--check: at most 16 cities\n"), 2;
    for (int i = 0; i < o.instances; ++i)
      if (const int failed = solve(o, o.seed + static_cast<std::uint64_t>(i)); failed != 0) return failed;
    return 0;
  });
}
