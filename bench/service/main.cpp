// SPDX-License-Identifier: Apache-2.0
// Services against their peers, part by part; bench/service/run puts the parts together.
//   bench_service [--part threads|nodes|tuning|walking|peers|redis|figure4|figure5|figure6|here4|here5|here6] [--json FILE] [--smoke] ...
// Rates are in millions of operations a second of all clients together.
#include "workload.hpp"

#include <orrery/orrery.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

std::string program;  // NOLINT: nodes start it again
std::vector<std::string> arguments;  // NOLINT

}  // namespace

int bench::in_world(const std::vector<std::string>& options, const std::function<void()>& body) {
  std::vector<std::string> words{program};
  words.insert(words.end(), options.begin(), options.end());
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& w : words) pointers.push_back(w.data());
  pointers.push_back(nullptr);
  return orrery::run(static_cast<int>(words.size()), pointers.data(), [&](const orrery::args&) {
    body();
    return 0;
  });
}

int main(int argc, char** argv) {
  using namespace bench;
  program = argv[0];
  for (int i = 1; i < argc; ++i)
    if (!std::string_view(argv[i]).starts_with("--orrery")) arguments.emplace_back(argv[i]);
  settings s;
  std::string part = "threads";
  std::string json;
  std::string socket;
  CLI::App app("Services and their peers");
  app.allow_extras();  // of the runtime, in nodes that it starts
  app.add_option("--part", part)
      ->check(CLI::IsMember({"threads", "nodes", "tuning", "walking", "peers", "redis", "figure4", "figure5", "figure6",
                             "here4", "here5", "here6"}));
  app.add_option("--json", json, "write the figures there");
  app.add_option("--items", s.items, "keys in the list");
  app.add_option("--operations", s.operations, "of each client and run");
  app.add_option("--runs", s.runs, "all of which are written down");
  app.add_option("--window", s.window, "outstanding requests of a client; 0: automatic");
  app.add_option("--processes", s.processes, "of the walking list with one item in each");
  app.add_option("--socket", socket, "where Redis listens");
  app.add_flag("--smoke", s.smoke, "only see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (s.smoke) {
    s.items = 1U << 14U;
    s.operations = 20'000;
    s.processes = 2'000;
    s.runs = 1;
  }
  if (part.starts_with("figure") || part.starts_with("here")) {
    const std::string rows = measure_paper(s, part.back() - '0', part.starts_with("here"));
    if (!json.empty()) std::ofstream(json) << rows << '\n';
    return 0;
  }
  metrics found;
  if (part == "threads") measure_threads(s, found);
  if (part == "nodes") measure_nodes(s, found);
  if (part == "tuning") measure_tuning(s, found);
  if (part == "walking") measure_walking(s, found);
  if (part == "peers") measure_peers(s, found);
  if (part == "redis") measure_redis(s, socket, found);
  for (auto& [name, values] : found) {
    std::vector<double> sorted = values;
    std::ranges::sort(sorted);
    std::printf("%-28s %10.3f   (%.3f to %.3f)\n", name.c_str(), sorted[sorted.size() / 2], sorted.front(),
                sorted.back());
  }
  if (!json.empty()) std::ofstream(json) << nlohmann::json(found).dump(1) << '\n';
  return 0;
}
