// SPDX-License-Identifier: Apache-2.0
// What crosses machines. Started as ranks with a word that says what is measured (calls, bulk, idle, wake, loss); see
// bench/machines/run.
#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

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

void measure_calls(const orrery::remote<Server>& server) {
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
}

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

double own_cpu_seconds() {
  rusage u{};
  ::getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

// The part of a core that all ranks together take while they have nothing to do.
void measure_idle() {
  const auto all_seconds = [] {
    double sum = 0;
    for (std::uint32_t n = 0; n < orrery::world_nodes(); ++n) sum += orrery::call<&own_cpu_seconds>(orrery::node(n));
    return sum;
  };
  orrery::sleep_for(std::chrono::milliseconds(500));
  const double before = all_seconds();
  const auto begin = clock_type::now();
  orrery::sleep_for(std::chrono::seconds(5));
  const double elapsed = us_since(begin) / 1e6;
  report("machine_idle_percent", 100 * (all_seconds() - before) / elapsed);
}

// A call when both have gone to sleep.
void measure_wake(const orrery::remote<Server>& server) {
  std::vector<double> samples;
  for (int i = 0; i < 51; ++i) {
    orrery::sleep_for(std::chrono::milliseconds(20));
    const auto begin = clock_type::now();
    (void)server->echo({});
    samples.push_back(us_since(begin));
  }
  std::ranges::sort(samples);
  report("machine_wake_us", samples[samples.size() / 2]);
}

void die() { ::kill(::getpid(), SIGKILL); }

// From the kill of a rank until its caller knows.
void measure_loss() {
  const auto begin = clock_type::now();
  try {
    orrery::call<&die>(orrery::node(orrery::world_nodes() - 1));
  } catch (const orrery::node_lost&) {
    report("machine_loss_ms", us_since(begin) / 1000);
  }
}

int measure(const orrery::args& words) {
  const std::string part = words.size() > 1 ? words[1] : "";
  const auto server = orrery::spawn<Server>(orrery::pe(orrery::world_pes() - 1));
  if (part == "calls") {
    measure_calls(server);
  } else if (part == "bulk") {
    measure_bulk(server);
  } else if (part == "idle") {
    measure_idle();
  } else if (part == "wake") {
    measure_wake(server);
  } else if (part == "loss") {
    (void)server->seen();
    measure_loss();
  } else {
    std::fputs("what is measured: calls, bulk, idle, wake or loss\n", stderr);
    return 2;
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return orrery::run(argc, argv, measure); }
