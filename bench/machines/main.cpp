// SPDX-License-Identifier: Apache-2.0
// What crosses machines: calls, posts, large arguments, barriers, arrays. Started as two ranks; see bench/machines/run.
#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
const clock_type::time_point begun = clock_type::now();  // before main

double us_since(clock_type::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count();
}

struct message64 {
  std::uint64_t words[8] = {};
};

struct Server {
  message64 echo(const message64& m) const { return m; }
  void note(const message64& m) { seen_ += m.words[0]; }
  void take(std::span<const double> v) { seen_ += static_cast<std::uint64_t>(v.size()); }
  std::uint64_t seen() const { return seen_; }

 private:
  std::uint64_t seen_ = 0;
};
ORRERY_PROCESS(Server, echo, note, take, seen);

struct Worker : orrery::member<Worker> {
  void meet(int rounds) {
    for (int i = 0; i < rounds; ++i) barrier();
  }
};
ORRERY_PROCESS(Worker, meet);

struct Cell : orrery::element<Cell> {
  void step(const orrery::result_target& to) { contribute(1.0, orrery::sum, to); }
};
ORRERY_PROCESS(Cell, step);

// The median over five batches of `count` of what one takes, in microseconds.
template <class Batch>
double median_us(int count, Batch&& batch) {
  std::vector<double> samples;
  batch(std::max(1, count / 10));
  for (int i = 0; i < 5; ++i) {
    const auto begin = clock_type::now();
    batch(count);
    samples.push_back(us_since(begin) / count);
  }
  std::ranges::sort(samples);
  return samples[2];
}

void report(const char* metric, double value) { std::printf("%s %.6g\n", metric, value); }

// Large arguments, alone: what `bulk` on the command line asks for.
void measure_bulk(const orrery::remote<Server>& server) {
  for (const auto& [metric, bytes, times] : {std::tuple{"machine_bulk_gbps", std::size_t{1} << 20, 200},
                                             {"machine_bulk_64m_gbps", std::size_t{64} << 20, 4}}) {
    const std::vector<double> data(bytes / sizeof(double), 1.0);
    report(metric, static_cast<double>(bytes) / 1e3 / median_us(times, [&](int n) {
                     for (int i = 0; i < n; ++i) post(server)->take(data);
                     (void)server->seen();
                   }));
  }
}

int measure(const orrery::args& words) {
  const std::uint32_t there = orrery::world_pes() - 1;
  const auto server = orrery::spawn<Server>(orrery::pe(there));
  if (words.size() > 1 && words[1] == "bulk") {
    measure_bulk(server);
    return 0;
  }
  const message64 m{};
  (void)server->echo(m);
  report("machine_startup_ms", us_since(begun) / 1000);
  report("machine_call_us", median_us(2'000, [&](int n) {
           for (int i = 0; i < n; ++i) (void)server->echo(m);
         }));
  report("machine_post_m", 1 / median_us(200'000, [&](int n) {
                             for (int i = 0; i < n; ++i) post(server)->note(m);
                             (void)server->seen();
                           }));
  measure_bulk(server);
  const auto group = orrery::spawn_group<Worker>(orrery::in_blocks(), 2);
  report("machine_barrier_us", median_us(2'000, [&](int n) { group->meet(n); }));
  const auto cells = orrery::create_array<Cell>(orrery::range<int>{1024});
  report("machine_array_us", median_us(200, [&](int n) {
           for (int i = 0; i < n; ++i) {
             auto [done, total] = orrery::expect_result<double>();
             post(cells)->step(done);
             (void)total.get();
           }
         }));
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return orrery::run(argc, argv, measure); }
