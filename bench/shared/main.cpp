// SPDX-License-Identifier: Apache-2.0
// Figures of shared data, as JSON: bench_shared [--json FILE] [--smoke] [--only GROUP], for a world of two PEs on one machine (two nodes, as the
// driver starts it), or for a simulated one of two machines (the group `network`). Each is the median or the best of some runs; ratios compare with a
// plain span in the same run.
#include "../../examples/shared/mm2/multiply.hpp"
#include "../measure.hpp"
#include "programs.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace orrery;

namespace {

using bench::effort;
using bench::median;

template <class F>
double seconds_of(F f) {
  const auto begin = bench::clock::now();
  f();
  return std::chrono::duration<double>(bench::clock::now() - begin).count();
}

/// The median of ratios of runs that stand side by side.
template <class F, class G>
double ratio(int runs, F f, G plain) {
  std::vector<double> all;
  for (int i = 0; i < runs; ++i) {
    const double own = seconds_of(f);
    all.push_back(own / seconds_of(plain));
  }
  return median(all);
}

constexpr std::uint64_t loop_elements = 1 << 14;

/// The loops as a user writes them, by an index, each in a function of its own that begins a line of the
/// cache. Handle and span name the same memory: what is compared is the way to an element, not the luck of pages.
[[gnu::noinline, gnu::aligned(64)]] void add_owned(owned_vector<double>& a, double x) {
  a.indices().for_each_run([&](auto run) {
    for (const auto i : run) a[i] = a[i] * 0.5 + x;
  });
}
[[gnu::noinline, gnu::aligned(64)]] void add_plain(std::span<double> a, double x) {
  for (std::uint64_t i = 0; i < a.size(); ++i) a[i] = a[i] * 0.5 + x;
}
[[gnu::noinline, gnu::aligned(64)]] double total_cached(const cached_vector<double>& c) {
  double sum = 0;
  for (std::uint64_t i = 0; i < c.size(); ++i) sum += c[i] * static_cast<double>(i & 7);
  return sum;
}
[[gnu::noinline, gnu::aligned(64)]] double total_plain(std::span<const double> c) {
  double sum = 0;
  for (std::uint64_t i = 0; i < c.size(); ++i) sum += c[i] * static_cast<double>(i & 7);
  return sum;
}

void loops(const effort& e, nlohmann::json& out) {
  const shared_vector<double> v(loop_elements, distribution::on(here()), 1.0);
  const int repeats = e.times(500);
  volatile double sink = 0;
  with(owner_computes(v), [&](auto& own) {
    out["owner_loop_ratio"] = ratio(
        21,
        [&] {
          for (int i = 0; i < repeats; ++i) add_owned(own, 0.5);
        },
        [&] {
          for (int i = 0; i < repeats; ++i) add_plain({&own[0], loop_elements}, 0.5);
        });
  });
  with(read_cache(v), [&](auto& c) {
    out["cached_loop_ratio"] = ratio(
        21,
        [&] {
          for (int i = 0; i < repeats; ++i) sink = sink + total_cached(c);
        },
        [&] {
          for (int i = 0; i < repeats; ++i) sink = sink + total_plain(c.span());
        });
  });
  destroy(v);
}

void elements(const effort& e, nlohmann::json& out) {
  const std::uint32_t other = world_pes() - 1;
  const shared_vector<std::uint64_t> v(1024, distribution::on(pe(other)));
  const int n = e.times(1'000'000);
  std::uint64_t sum = 0;
  const double s = seconds_of([&] {
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<std::uint64_t>(i) % 1024;
      v[at] = static_cast<std::uint64_t>(i);
      sum += v[(at + 7) % 1024];
    }
  });
  out[world_nodes() == 1 ? "element_same_node_ns" : "element_other_node_ns"] = s / (2.0 * n) * 1e9 + (sum == 1 ? 1 : 0);
  destroy(v);
}

std::vector<std::uint64_t> scattered_places(std::uint64_t size) {
  std::vector<std::uint64_t> places(1'000'000);
  std::uint64_t x = 1;
  for (auto& p : places) p = (x = x * 6364136223846793005u + 1442695040888963407u) >> 33 & 0xfffff;
  for (auto& p : places) p %= size;
  return places;
}

void writes(const effort&, nlohmann::json& out) {
  const std::uint32_t other = world_pes() - 1;
  const shared_vector<std::uint64_t> large(1'000'000, distribution::on(pe(other)));
  const std::vector<std::uint64_t> places = scattered_places(large.size());
  std::vector<double> rates;
  for (int i = 0; i < 5; ++i)
    rates.push_back(static_cast<double>(places.size()) / 1e6 / seconds_of([&] {
                      with(release(large), [&](auto& w) {
                        for (const std::uint64_t p : places) w[p] = p;
                      });
                    }));
  out["release_rate_m"] = median(rates);
  destroy(large);
}

/// In a simulated world of two machines, with the time of that world: useful bytes of scattered writes over what the network carries.
void network(const effort&, nlohmann::json& out) {
  constexpr double bytes_a_second = 10e9 / 8;
  const shared_vector<std::uint64_t> large(1'000'000, distribution::on(pe(world_pes() - 1)));
  const std::vector<std::uint64_t> places = scattered_places(large.size());
  const auto begin = orrery::now();
  with(release(large), [&](auto& w) {
    for (const std::uint64_t p : places) w[p] = p;
  });
  const double s = std::chrono::duration<double>(orrery::now() - begin).count();
  out["release_bandwidth_ratio"] = 8.0 * static_cast<double>(places.size()) / s / bytes_a_second;
  destroy(large);
}

double cache_together(team_member& t, shared_vector<std::uint64_t> v, int times) {
  std::vector<double> rates;
  for (int i = 0; i < times; ++i) {
    t.barrier();
    const auto begin = bench::clock::now();
    with(read_cache(v, t), [&](auto&) {
      rates.push_back(static_cast<double>(8 * v.size()) /
                      std::chrono::duration<double, std::nano>(bench::clock::now() - begin).count());
    });
  }
  return median(rates);
}

/// The median time of entering a view, in us.
double view_enter_us(const shared_vector<std::uint64_t>& v, int times) {
  std::vector<double> views;
  for (int i = 0; i < times; ++i) {
    const auto view = bench::clock::now();
    with(read_view(v), [&](auto&) {
      views.push_back(std::chrono::duration<double, std::micro>(bench::clock::now() - view).count());
    });
  }
  return median(views);
}

void caches(const effort& e, nlohmann::json& out) {
  constexpr std::uint64_t bytes = 8 << 20;
  const shared_vector<std::uint64_t> v(bytes / 8, distribution::block(), 3);
  std::vector<double> rates;
  for (int i = 0; i < e.times(30); ++i) {
    const auto begin = bench::clock::now();
    with(read_cache(v), [&](auto&) {
      rates.push_back(bytes / std::chrono::duration<double, std::nano>(bench::clock::now() - begin).count());
    });
  }
  out["read_cache_gbps"] = median(rates);
  out["read_view_enter_us"] = view_enter_us(v, e.times(30));
  const shared_vector<std::uint64_t> huge(e.smoke ? bytes / 8 : std::uint64_t{1} << 27);  // 1 GiB
  out["read_view_1g_enter_us"] = view_enter_us(huge, e.times(30));
  destroy(huge);
  out["allgather_gbps"] = spmd<&cache_together>(team(), v, e.times(30)).front();
  destroy(v);
}

void replicas(const effort& e, nlohmann::json& out) {
  const shared<long> s(1, pe(world_pes() - 1));
  long sum = 0;
  const double seconds = with(read_mostly(s), [&](auto& m) {
    return seconds_of([&] {
      for (int i = 0; i < e.times(20'000'000); ++i) sum += m.get();
    });
  });
  if (sum == 0) out["wrong"] = "a read-mostly scalar";
  out["read_mostly_ns"] = seconds * 1e9 / e.times(20'000'000);
  destroy(s);
}

double mm2_s(int n, mm2::loop how, int runs) {
  const auto size = static_cast<std::uint64_t>(n);
  const shared_matrix<int> p(size, size);
  const shared_matrix<int> q(size, size, distribution::block(), 2);
  const shared_matrix<int> r(size, size, distribution::block(), 3);
  double best = 1e9;
  for (int i = 0; i < runs; ++i) {
    r.fill(3);
    best = std::min(best, seconds_of([&] { spmd<&mm2::two_phases>(team(), p, q, r, mm2::settings{.how = how}); }));
  }
  destroy(p);
  destroy(q);
  destroy(r);
  return best;
}

void products(const effort& e, nlohmann::json& out) {
  if (e.smoke) {
    out["mm2_512_s"] = mm2_s(64, mm2::loop::paper, 1);
    return;
  }
  out["mm2_512_s"] = mm2_s(512, mm2::loop::paper, 3);
  out["mm2_512_rows_s"] = mm2_s(512, mm2::loop::by_rows, 50);
  out["mm2_704_s"] = mm2_s(704, mm2::loop::paper, 3);
  out["mm2_704_rows_s"] = mm2_s(704, mm2::loop::by_rows, 25);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](const args& words) {
    CLI::App app{"Figures of shared data"};
    effort e;
    std::string json;
    std::string only;
    app.add_flag("--smoke", e.smoke, "one short run of each");
    app.add_option("--json", json, "a file for the figures; else they go to stdout");
    app.add_option(
        "--only", only,
        "one group: loops, elements, writes, caches, replicas, products, programs, plain, unwatched, network");
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& error) {
      return app.exit(error);
    }
    nlohmann::json out;
    const std::vector<std::pair<std::string, void (*)(const effort&, nlohmann::json&)>> groups{
        {"loops", loops},       {"elements", elements},     {"writes", writes},
        {"caches", caches},     {"replicas", replicas},     {"products", products},
        {"programs", programs}, {"plain", plain_diffusion}, {"unwatched", unwatched_diffusion},
        {"network", network}};
    for (const auto& [name, measure] : groups)
      if (only.empty() ? name != "plain" && name != "unwatched" && name != "network" : name == only) measure(e, out);
    if (json.empty()) {
      std::puts(out.dump(1).c_str());
    } else {
      std::ofstream(json) << out.dump(1) << '\n';
    }
    return 0;
  });
}
