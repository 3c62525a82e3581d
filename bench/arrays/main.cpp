// SPDX-License-Identifier: Apache-2.0
// Figures of the array layer, as JSON: bench_arrays [--json FILE] [--only NAME,...] [--runs N] [--smoke]. Each is the median of N runs; beside them stands,
// from the same runs, a plain process.
#include "../measure.hpp"
#include "jacobi.hpp"
#include "simulated.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

using namespace orrery;
using bench::effort;
using bench::ns_since;
using bench::resident_bytes;

namespace {

struct Plain {
  void add(int x) { sum += x; }
  long get() const { return sum; }
  long sum = 0;
};
ORRERY_PROCESS(Plain, add, get);

struct Cell;
ORRERY_PROCESS(Cell, add, get, bounce, flood, step, hop, hop_then_tell, tell);
struct Cell : element<Cell> {
  void add(int x) { total += x; }
  long get() const { return total; }
  void bounce(int n, remote<function> done) {
    if (n == 0) {
      send(done, 0);
    } else {
      post(this_array()[1 - this_index()])->bounce(n - 1, done);
    }
  }
  void flood(int rounds, int size) {
    for (int i = 1; i < size; ++i) post(this_array()[(this_index() + i) % size])->add(1);
    if (rounds > 1) post(this_array()[this_index()])->flood(rounds - 1, size);
  }
  void step(const result_target& t) { contribute(1L, sum, t); }
  void hop(std::uint32_t pes) { migrate_to((this_pe() + 1) % pes); }
  void hop_then_tell(std::uint32_t pes, int n, remote<function> done) {
    if (n == 0) {
      send(done, 0);
      return;
    }
    post(this_array()[this_index()])->hop_then_tell(pes, n - 1, done);  // follows it
    hop(pes);
  }
  void tell(remote<function> done) { send(done, 0); }
  template <class A>
  void serialize(A& a) {
    a & total;
  }
  long total = 0;
};

double post_plain(effort e) {
  const int n = e.times(2'000'000);
  auto p = spawn<Plain>(here());
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) post(p)->add(1);
  if (p->get() != n) return -1;
  const double t = ns_since(begin);
  destroy(p);
  return t / n;
}
double post_element(effort e) {
  const int n = e.times(2'000'000);
  auto a = create_array<Cell>(range<int>{64});
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) post(a[7])->add(1);
  if (a[7]->get() != n) return -1;
  const double t = ns_since(begin);
  destroy(a);
  return t / n;
}
double pingpong(effort e) {
  const int n = e.times(200'000);
  auto a = create_array<Cell>(range<int>{2}, {.home = placement_map<int>::blocks(2)});
  const auto me = this_process<function>();
  post(a[0])->bounce(2000, me);
  (void)receive<int>();
  const auto begin = bench::clock::now();
  post(a[0])->bounce(2 * n, me);
  (void)receive<int>();
  const double t = ns_since(begin);
  destroy(a);
  return t / n;
}
double flood(effort e) {
  constexpr int size = 64;
  const int rounds = e.times(300);
  const int each = rounds * (size - 1);
  auto a = create_array<Cell>(range<int>{size}, {.home = placement_map<int>::cyclic(size)});
  const auto begin = bench::clock::now();
  for (int i = 0; i < size; ++i) post(a[i])->flood(rounds, size);
  quiescence();
  const double t = ns_since(begin);
  long all = 0;
  for (int i = 0; i < size; ++i) all += a[i]->get();
  destroy(a);
  return all == long{size} * each ? t / (double{size} * each) : -1;
}
double bcast_reduce(int size, effort e) {
  const int n = e.times(size > 100 ? 2'000 : 30'000);
  auto a = create_array<Cell>(range<int>{size}, {.home = placement_map<int>::blocks(size)});
  bench::clock::time_point begin;
  for (int i = -20; i < n; ++i) {
    if (i == 0) begin = bench::clock::now();
    auto [target, result] = expect_result<long>();
    post(a)->step(target);
    if (result.get() != size) return -1;
  }
  const double t = ns_since(begin);
  destroy(a);
  return t / n / 1e3;
}
double migrate(effort e) {
  const int n = e.times(100'000);
  auto a = create_array<Cell>(range<int>{1});
  const auto me = this_process<function>();
  post(a[0])->hop_then_tell(world_pes(), 1000, me);
  (void)receive<int>();
  const auto begin = bench::clock::now();
  post(a[0])->hop_then_tell(world_pes(), n, me);
  (void)receive<int>();
  const double t = ns_since(begin);
  destroy(a);
  return t / n / 1e3;
}
double migrate_all(effort e) {
  constexpr int size = 1024;
  const int n = e.times(200);
  auto a = create_array<Cell>(range<int>{size}, {.home = placement_map<int>::blocks(size)});
  bench::clock::time_point begin;
  for (int i = -5; i < n; ++i) {
    if (i == 0) begin = bench::clock::now();
    post(a)->hop(world_pes());
    auto [target, result] = expect_result<long>();
    post(a)->step(target);
    if (result.get() != size) return -1;
  }
  const double t = ns_since(begin);
  destroy(a);
  return t / n / 1e3;
}
double create_many(effort e) {
  const int n = e.times(1'000'000);
  const auto begin = bench::clock::now();
  auto a = create_array<Cell>(range<int>{n}, {.home = placement_map<int>::blocks(n)});
  const double t = ns_since(begin);
  destroy(a);
  return t / 1e9 * (1'000'000.0 / n);
}
double element_bytes(effort e) {
  const int n = e.times(1'000'000);
  const double before = resident_bytes();
  auto a = create_array<Cell>(range<int>{n}, {.home = placement_map<int>::blocks(n)});
  const double each = (resident_bytes() - before) / n;
  destroy(a);
  return each;
}
double quiescence_of_idle_world(effort e) {
  const int n = e.times(20'000);
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) quiescence();
  return ns_since(begin) / n / 1e3;
}
double insert(effort e) {
  const int n = e.times(200'000);
  auto a = create_array<Cell>();
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) a.post_insert(i);
  quiescence();
  const double t = ns_since(begin);
  destroy(a);
  return t / n;
}

// Of 100,000 PEs; measured once.
const bench::simulated& simulated(effort e) {
  static const bench::simulated s = bench::simulate(e.smoke ? 1000 : 100'000, e.smoke);
  return s;
}

struct metric {
  std::string name;
  int pes;  // 0: without a world
  int runs;  // 0: as asked
  std::function<double(effort)> measure;
};
std::vector<metric> metrics() {
  return {{"post_same_pe_ns", 1, 0, post_plain},
          {"array_post_same_pe_ns", 1, 0, post_element},
          {"array_pingpong_rtt_ns", 2, 0, pingpong},
          {"array_flood_ns", 2, 0, flood},
          {"bcast_reduce_2_us", 2, 0, [](effort e) { return bcast_reduce(2, e); }},
          {"bcast_reduce_16_us", 2, 0, [](effort e) { return bcast_reduce(16, e); }},
          {"bcast_reduce_1024_us", 2, 0, [](effort e) { return bcast_reduce(1024, e); }},
          {"bcast_reduce_1024_1pe_us", 1, 0, [](effort e) { return bcast_reduce(1024, e); }},
          {"migrate_us", 2, 0, migrate},
          {"migrate_all_1024_us", 2, 0, migrate_all},
          {"insert_ns", 2, 0, insert},
          {"quiescence_us", 2, 0, quiescence_of_idle_world},
          {"create_1m_s", 2, 3, create_many},
          {"element_bytes", 2, 1, element_bytes},
          {"jacobi_plain_mcells", 0, 0, [](effort e) { return bench::jacobi_plain_mcells(e.smoke); }},
          {"jacobi_512_mcells", 2, 0, [](effort e) { return bench::jacobi_mcells(512, e.smoke); }},
          {"jacobi_32_mcells", 2, 0, [](effort e) { return bench::jacobi_mcells(32, e.smoke); }},
          {"sim_pes_gib", 0, 1, [](effort e) { return simulated(e).gib; }},
          {"sim_events_m", 0, 1, [](effort e) { return simulated(e).collective_m_s; }},
          {"sim_messages_m", 0, 1, [](effort e) { return simulated(e).message_m_s; }}};
}

int run_world(int pes, const std::function<int(args)>& main) {
  std::vector<std::string> words{"bench_arrays", "--orrery-pes=" + std::to_string(pes)};
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  return run(static_cast<int>(argv.size()), argv.data(), main);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Figures of Orrery's arrays"};
  std::vector<std::string> only;
  int runs = 5;
  bool smoke = false;
  std::string file;
  app.add_option("--only", only, "metrics to measure")->delimiter(',');
  app.add_option("--runs", runs, "the figure is the median of so many")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", smoke, "do little: only see that it runs");
  app.add_option("--json", file, "write the figures there too");
  CLI11_PARSE(app, argc, argv);

  nlohmann::ordered_json out;
  int failed = 0;
  for (const auto& m : metrics()) {
    if (!only.empty() && std::ranges::find(only, m.name) == only.end()) continue;
    std::vector<double> v;
    const auto measure = [&](const args&) {
      for (int i = 0; i < (smoke ? 1 : m.runs != 0 ? m.runs : runs); ++i) v.push_back(m.measure(effort{smoke}));
      return 0;
    };
    failed += m.pes == 0 ? measure({}) : run_world(m.pes, measure);
    if (v.empty()) continue;
    std::ranges::sort(v);
    out[m.name] = v[v.size() / 2];
    failed += v.front() < 0 ? 1 : 0;
  }
  if (out.contains("post_same_pe_ns") && out.contains("array_post_same_pe_ns"))
    out["array_over_process_ns"] = out["array_post_same_pe_ns"].get<double>() - out["post_same_pe_ns"].get<double>();
  if (out.contains("jacobi_512_mcells") && out.contains("jacobi_32_mcells"))
    out["jacobi_32_ratio"] = out["jacobi_512_mcells"].get<double>() / out["jacobi_32_mcells"].get<double>();
  std::puts(out.dump(1).c_str());
  if (!file.empty()) std::ofstream(file) << out.dump(1) << '\n';
  return failed == 0 ? 0 : 1;
}
