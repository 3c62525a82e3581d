// SPDX-License-Identifier: Apache-2.0
// Figures of tasks of C, as JSON: bench_task [--json [file]] [--only NAME,...] [--runs N] [--smoke]
#include "figures.hpp"

#include <orrery/orrery.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using bench_task::effort;

struct metric {
  const char* name;
  std::vector<const char*> world;
  double (*measure)(effort);
  bool once = false;  // later runs find the memory that the first has freed
};

int run_world(const metric& m, const std::function<double()>& measure, nlohmann::ordered_json& out) {
  std::vector<std::string> words{"bench_task"};
  words.insert(words.end(), m.world.begin(), m.world.end());
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  return orrery::run(static_cast<int>(argv.size()), argv.data(), [&](const orrery::args&) {
    out[m.name] = measure();
    return 0;
  });
}

}  // namespace

int main(int argc, char** argv) {
  // A node that a run of ours has launched: it serves.
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr)
    return orrery::run(argc, argv, [](const orrery::args&) { return 0; });
  CLI::App app{"Figures of tasks of C"};
  std::vector<std::string> only;
  int runs = 5;
  bool smoke = false;
  std::string file;
  app.add_option("--only", only, "metrics to measure")->delimiter(',');
  app.add_option("--runs", runs, "the figure is the median of so many")->check(CLI::PositiveNumber);
  app.add_flag("--smoke", smoke, "do little: only see that it runs");
  app.add_option("--json", file, "write the figures there too")->expected(0, 1);
  CLI11_PARSE(app, argc, argv);
  const metric all[] = {
      {"blocked_task_bytes", {"--orrery-pes=1"}, bench_task::blocked_bytes, true},
      {"spawn_task_ns", {"--orrery-pes=1"}, bench_task::spawn},
      {"spawn_begun_task_ns", {"--orrery-pes=1"}, bench_task::spawn_begun},
      {"spawn_run_task_ns", {"--orrery-pes=1"}, bench_task::spawn_and_run},
      {"task_ring_hop_ns", {"--orrery-pes=1"}, bench_task::ring_hop},
      {"function_ring_hop_ns", {"--orrery-pes=1"}, bench_task::function_ring_hop},
      {"reference_gbps", {"--orrery-nodes=2", "--orrery-pes=1"}, bench_task::reference},
      {"own_memory_gbps", {"--orrery-pes=1"}, bench_task::own_memory},
      {"weather_subscribers_m", {"--orrery-nodes=4", "--orrery-pes=1"}, bench_task::broadcast},
      {"task_rtt_nodes_ns", {"--orrery-nodes=2", "--orrery-pes=1", "--orrery-waiting=wait"}, bench_task::round_trip},
  };
  nlohmann::ordered_json out;
  int failed = 0;
  for (const metric& m : all) {
    if (!only.empty() && std::ranges::find(only, m.name) == only.end()) continue;
    failed += run_world(
        m,
        [&] {
          std::vector<double> values;
          for (int i = 0; i < (smoke || m.once ? 1 : runs); ++i) values.push_back(m.measure(effort{smoke}));
          std::ranges::sort(values);
          return values[values.size() / 2];
        },
        out);
  }
  std::puts(out.dump(1).c_str());
  if (!file.empty()) std::ofstream(file) << out.dump(1) << '\n';
  return failed == 0 ? 0 : 1;
}
