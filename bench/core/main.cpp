// SPDX-License-Identifier: Apache-2.0
// The runtime's own figures, as JSON: bench_core [--json [file]] [--only NAME,...] [--runs N] [--smoke] [--startup] [--idle SECONDS]
#include "bench.hpp"

#include <orrery/orrery.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include <time.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace bench {

double median_of(int runs, const std::function<double()>& f) {
  std::vector<double> v;
  for (int i = 0; i < runs; ++i) v.push_back(f());
  return median(std::move(v));
}

}  // namespace bench

namespace {

int run_world(const std::vector<std::string>& options, const std::function<int(orrery::args)>& main) {
  std::vector<std::string> words{"bench_core"};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  return orrery::run(static_cast<int>(argv.size()), argv.data(), main);
}

int pid_here() { return getpid(); }

int startup(orrery::args) {
  for (std::uint32_t n = 1; n < orrery::world_nodes(); ++n) (void)orrery::call<&pid_here>(orrery::node(n));
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  std::printf("%lld\n", static_cast<long long>(t.tv_sec) * 1'000'000'000 + t.tv_nsec);
  return 0;
}

int idle(double seconds) {
  std::string pids = "pids";
  for (std::uint32_t n = 0; n < orrery::world_nodes(); ++n)
    pids += ' ' + std::to_string(orrery::call<&pid_here>(orrery::node(n)));
  std::puts(pids.c_str());
  std::fflush(stdout);
  orrery::sleep_for(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  // A node that a run of ours has launched: it serves.
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr) return orrery::run(argc, argv, [](orrery::args) { return 0; });

  CLI::App app{"Figures of the Orrery runtime"};
  std::vector<std::string> only;
  int runs = 5;
  bool smoke = false;
  bool start = false;
  double idle_seconds = 0;
  std::string file;
  app.add_option("--only", only, "metrics to measure")->delimiter(',');
  app.add_option("--runs", runs, "the figure is the median of so many")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", smoke, "do little: only see that it runs");
  app.add_flag("--startup", start, "print the time of the first answered call between nodes");
  app.add_option("--idle", idle_seconds, "print the pids of all nodes and do nothing for so long");
  app.add_option("--json", file, "write the figures there too")->expected(0, 1);
  app.allow_extras();
  CLI11_PARSE(app, argc, argv);
  const std::vector<std::string> rest = app.remaining();
  if (start) return run_world(rest, startup);
  if (idle_seconds > 0) return run_world(rest, [&](orrery::args) { return idle(idle_seconds); });

  nlohmann::ordered_json out;
  int failed = 0;
  for (const auto& group : {bench::one_pe(), bench::two_pes(), bench::nodes(), bench::memory(), bench::waits()})
    for (const auto& m : group) {
      if (!only.empty() && std::ranges::find(only, m.name) == only.end()) continue;
      failed += run_world(m.world, [&](orrery::args) {
        out[m.name] = bench::median_of(smoke ? 1 : runs, [&] { return m.measure(bench::effort{smoke}); });
        return 0;
      });
    }
  std::puts(out.dump(1).c_str());
  if (!file.empty()) std::ofstream(file) << out.dump(1) << '\n';
  return failed == 0 ? 0 : 1;
}
