// SPDX-License-Identifier: Apache-2.0
// Two products of matrices, one of which the other needs (MM2: Lu 2001, section 3.3): P <- Q R, R
// <- Q P.
// run: ./mm2 --size 48 --check --orrery-pes=2
// run: ./mm2 --size 50 --check --loop rows --orrery-nodes=3 --orrery-pes=1
// run: ./mm2 --size 33 --check --orrery-nodes=2 --orrery-pes=2
// run: ./mm2 --size 20 --check --orrery-pes=2 --orrery-check-sharing
// run: ./mm2 --size 32 --check --together --overhead --step-ns 2 --orrery-sim=machines=6,net=10g
// run: ./mm2 --size 40 --check --loop rows --orrery-sim=machines=5,net=10g,jitter=2us,seed=4
// run: ./mm2 --size 12 --runs 1 --check --plain --orrery-sim=machines=4,net=10g --orrery-advise
// run: ! command -v mpirun.openmpi || mpirun.openmpi --oversubscribe -n 2 ./mm2 --size 40 --check --together --orrery-pes=1 --orrery-machine-ranks=1
#include "multiply.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

struct options {
  int size = 512;
  int runs = 5;
  unsigned seed = 1;
  mm2::settings work;
  bool check = false;
};

std::vector<int> product(const std::vector<int>& a, const std::vector<int>& b, int n) {
  std::vector<int> c(a.size());
  for (int i = 0; i < n; ++i)
    mm2::row_product(&a[static_cast<std::size_t>(i * n)], b.data(), &c[static_cast<std::size_t>(i * n)], n);
  return c;
}

int compute(const options& o) {
  const auto n = static_cast<std::uint64_t>(o.size);
  const orrery::shared_matrix<int> p(n, n);
  const orrery::shared_matrix<int> q(n, n);
  const orrery::shared_matrix<int> r(n, n);
  std::mt19937 random(o.seed);
  std::vector<double> seconds;
  std::vector<double> opening;
  for (int run = 0; run < o.runs; ++run) {
    std::vector<int> first_q(n * n);
    std::vector<int> first_r(n * n);
    for (int& x : first_q) x = static_cast<int>(random() % 4);
    for (int& x : first_r) x = static_cast<int>(random() % 4);
    copy(std::span<const int>(first_q), q.rows(0, n));
    copy(std::span<const int>(first_r), r.rows(0, n));

    const auto begin = orrery::now();
    opening = orrery::spmd<&mm2::two_phases>(orrery::team(), p, q, r, o.work);
    seconds.push_back(std::chrono::duration<double>(orrery::now() - begin).count());

    if (!o.check) continue;
    const std::vector<int> expected_p = product(first_q, first_r, o.size);
    const std::vector<int> expected_r = product(first_q, expected_p, o.size);
    std::vector<int> got(n * n);
    copy(p.rows(0, n), std::span(got));
    if (got != expected_p) return fmt::print(stderr, "P is wrong in run {}\n", run), 1;
    copy(r.rows(0, n), std::span(got));
    if (got != expected_r) return fmt::print(stderr, "R is wrong in run {}\n", run), 1;
  }
  fmt::print("{} x {}, {} PEs: {:.6f} s\n", n, n, orrery::world_pes(), *std::ranges::min_element(seconds));
  if (o.work.barriers) fmt::print("opening the scopes: {:.6f} s\n", *std::ranges::max_element(opening));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    options o;
    CLI::App app("P <- Q R, R <- Q P with shared matrices");
    app.add_option("--size", o.size, "rows and columns")->check(CLI::Range(1, 4096));
    app.add_option("--runs", o.runs, "the fastest of so many counts")->check(CLI::Range(1, 1'000));
    app.add_option("--seed", o.seed, "of the numbers");
    const std::map<std::string, mm2::loop> loops{{"paper", mm2::loop::paper}, {"rows", mm2::loop::by_rows}};
    app.add_option("--loop", o.work.how, "the paper's, or one along rows")->transform(CLI::CheckedTransformer(loops));
    app.add_flag("--together", o.work.together, "all fill their caches at once, by an allgather");
    app.add_flag("--overhead", o.work.barriers, "barriers around the opening of scopes, and how long that takes");
    app.add_flag("--plain", o.work.plain, "without scopes: each access by default, for --orrery-advise");
    app.add_option("--step-ns", o.work.step_ns, "in simulations: time of a multiplication and addition");
    app.add_flag("--check", o.check, "compare with a sequential product");
    try {
      // CLI11 takes them from the end
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return compute(o);
  });
}
