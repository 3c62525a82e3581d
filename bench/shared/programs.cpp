// SPDX-License-Identifier: Apache-2.0
#include "programs.hpp"

#include "bare_access.hpp"

#include "../../examples/shared/diffusion/diffuse.hpp"
#include "../../examples/shared/psrs/sort.hpp"
#include "../../examples/shared/tsp/team_search.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <ranges>
#include <span>
#include <vector>

using namespace orrery;

namespace {

template <class F>
double seconds_of(F f) {
  const auto begin = bench::clock::now();
  f();
  return std::chrono::duration<double>(bench::clock::now() - begin).count();
}

void sorting(const bench::effort& e, nlohmann::json& out) {
  const std::uint64_t n = e.smoke ? 100'000 : 100'000'000;
  const shared_vector<std::uint32_t> keys(n);
  {
    std::mt19937 random(1);
    std::vector<std::uint32_t> all(n);
    for (auto& k : all) k = static_cast<std::uint32_t>(random());
    copy(std::span<const std::uint32_t>(all), keys);
  }
  out["psrs_100m_s"] = seconds_of([&] { psrs::sort(team(), keys); });
  with(read_view(keys), [&](auto& all) {
    if (!std::ranges::is_sorted(all)) out["wrong"] = "keys are not sorted";
  });
  destroy(keys);
}

template <auto Member, class... More>
double mcells(const distribution& how, std::uint64_t n, int steps, More... more) {
  const shared_matrix<double> a(n, n, how, 1);
  const shared_matrix<double> b(n, n, how, 1);
  const double s = seconds_of([&] { spmd<Member>(team(), a, b, steps, more...); });
  destroy(a);
  destroy(b);
  return static_cast<double>(n * n) * steps / s / 1e6;
}

void stencil(const bench::effort& e, nlohmann::json& out) {
  const std::uint64_t n = e.smoke ? 256 : 2048;
  const int steps = e.smoke ? 4 : 60;
  out["diffusion_mcells"] = mcells<&diffusion::diffuse>(distribution::block().with_halo(1), n, steps, 0.0);
  out["diffusion_copied_mcells"] = mcells<&diffusion::diffuse>(distribution::block(), n, steps, 0.0);
}

/// A sequential program: nodes.
std::uint64_t search_alone(team_member&, std::vector<int> distance, int cities) {
  const tsp::instance i{cities, distance};
  int best = std::numeric_limits<int>::max();
  tsp::branch_and_bound work(
      i, [&] { return best; }, [&](std::span<const int>, int length) { best = std::min(best, length); }, [] {});
  work.search(std::vector<int>{0});
  return work.nodes();
}

double nodes_a_second(const std::vector<int>& distance, int cities) {
  const shared_vector<int> distances(distance.size());
  copy(std::span<const int>(distance), distances);
  const shared<int> best(std::numeric_limits<int>::max());
  const shared<int> next(0);
  std::uint64_t nodes = 0;
  const double s = seconds_of([&] {
    for (const auto& m :
         spmd<&tsp::search_as_member>(team(), distances, tsp::search{.cities = cities, .depth = 3}, best, next))
      nodes += m.nodes;
  });
  destroy(distances);
  destroy(best);
  destroy(next);
  return static_cast<double>(nodes) / s;
}

void travelling(const bench::effort& e, nlohmann::json& out) {
  const int cities = e.smoke ? 9 : 17;
  const std::vector<int> distance = tsp::random_distances(cities, 3);
  std::vector<double> ratios;  // of pairs that stand side by side
  for (int i = 0; i < (e.smoke ? 1 : 5); ++i) {
    std::uint64_t nodes = 0;
    const double s = seconds_of([&] {
      for (const std::uint64_t n : spmd<&search_alone>(team(), distance, cities)) nodes += n;
    });
    ratios.push_back(nodes_a_second(distance, cities) / (static_cast<double>(nodes) / s));
  }
  out["tsp_ratio"] = bench::median(ratios);
}

}  // namespace

void programs(const bench::effort& e, nlohmann::json& out) {
  stencil(e, out);
  travelling(e, out);
  sorting(e, out);
}

void plain_diffusion(const bench::effort& e, nlohmann::json& out) {
  out["plain_mcells"] = e.smoke ? mcells<&diffusion::diffuse_plainly>(distribution::block(), 32, 2)
                                : mcells<&diffusion::diffuse_plainly>(distribution::block(), 256, 40);
}

namespace {

/// Steps of the stencil in a function of their own, which begins a line of the cache.
template <class Matrix>
[[gnu::noinline, gnu::aligned(64)]] void step_all(const Matrix& now, const Matrix& next, std::uint64_t n, int steps) {
  const auto all = std::views::iota(std::uint64_t{0}, n);
  for (int i = 0; i < steps; ++i) diffusion::step_plainly(now, next, n, all, all);
}

}  // namespace

void unwatched_diffusion(const bench::effort& e, nlohmann::json& out) {
  const std::uint64_t n = e.smoke ? 32 : 256;
  const int steps = e.smoke ? 1 : 4;
  const shared_matrix<double> now(n, n, distribution::block(), 1);
  const shared_matrix<double> next(n, n);
  next[0, 0] = now[0, 0];  // this PE knows both
  const bare::matrix bare_now{now};
  const bare::matrix bare_next{next};
  std::vector<double> ratios;  // of runs that stand side by side
  for (int i = 0; i < (e.smoke ? 1 : 41); ++i) {
    const double own = seconds_of([&] { step_all(now, next, n, steps); });
    ratios.push_back(own / seconds_of([&] { step_all(bare_now, bare_next, n, steps); }));
  }
  out["watch_off_ratio"] = bench::median(ratios);
  destroy(now);
  destroy(next);
}
