// SPDX-License-Identifier: Apache-2.0
// Figures 4, 5 and 6 of the paper in simulated worlds: machines of 8 cores, 10 Gb/s Ethernet between them; and the same on this machine.
#include "client.hpp"

#include <orrery/service/walking_list.hpp>

#include <algorithm>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

using orrery::consistency;
using paper_list = orrery::walking_list<std::uint32_t, std::uint32_t>;

struct world {
  std::uint32_t here = 0;  // PEs of this machine; 0: a simulated cluster
  std::uint32_t machines = 24;
  std::uint32_t items = 1U << 20U;
  std::uint32_t processes = 10;  // P
  std::uint32_t forwards = 64;  // K
  std::uint32_t window = 16;  // W
  std::uint32_t requests = 64;  // of each client; there is one on each core
  consistency order = consistency::total;

  [[nodiscard]] std::uint32_t cores() const noexcept { return here != 0 ? here : machines * 8; }
};

struct times {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Random finds, of keys that are there.
times client(const paper_list& l, const world& w, std::uint32_t id) {
  auto s = l.open({.window = w.window, .order = w.order});
  const std::int64_t begin = orrery::now().count();
  for (std::uint32_t i = 0; i < w.requests; ++i) {
    s.start_find(mixed(std::uint64_t{id} * w.requests + i) % w.items * 4);
    while (s.try_receive()) {
    }
  }
  while (s.receive()) {
  }
  return {begin, orrery::now().count()};
}

// Thousands of requests a second, of virtual time in a simulated cluster.
double throughput(const world& w) {
  const std::uint32_t cores = w.cores();
  double rate = 0;
  const std::string of_world = w.here != 0
                                   ? fmt::format("--orrery-pes={}", w.here)
                                   : fmt::format("--orrery-sim=machines={},pes=8,net=10g,jitter=1us", w.machines);
  in_world({of_world, "--orrery-quiet"}, [&] {
    const std::uint32_t granularity = (w.items - 1) / (cores * w.processes) + 1;
    auto l = paper_list::make({.processes = w.processes,
                               .granularity = granularity,
                               .forwards = w.forwards,
                               .search = std::chrono::nanoseconds(w.here != 0 ? 0 : 10)});
    std::vector<paper_list::item> items(w.items);
    for (std::uint32_t i = 0; i < w.items; ++i) items[i] = {i * 4, i};
    l.fill(items, true);
    std::vector<orrery::future<times>> ends;
    for (std::uint32_t i = 0; i < cores; ++i) ends.push_back(orrery::start_call<&client>(orrery::pe(i), l, w, i));
    times all{INT64_MAX, 0};
    for (auto& e : ends) {
      const times t = e.get();
      all = {std::min(all.begin, t.begin), std::max(all.end, t.end)};
    }
    rate = static_cast<double>(w.requests) * cores / static_cast<double>(all.end - all.begin) * 1e6;
    l.end();
  });
  return rate;
}

nlohmann::json row(const world& w, const char* level) {
  const double k = throughput(w);
  std::printf("%-24s cores %3u P %3u K %3u W %3u: %9.2f k/s\n", level, w.cores(), w.processes, w.forwards, w.window, k);
  std::fflush(stdout);
  return {{"level", level}, {"cores", w.cores()}, {"P", w.processes}, {"K", w.forwards}, {"W", w.window}, {"k", k}};
}

const std::vector<std::pair<consistency, const char*>> levels{
    {consistency::total, "total"},
    {consistency::sequential, "sequential"},
    {consistency::sequential_of_the_paper, "sequential (paper)"},
    {consistency::unordered, "unordered"}};

// As many requests as take some tenths of a second, and the ranges of parameters that two cores tell something about.
std::string measure_here(const settings& s, int figure) {
  nlohmann::json rows = nlohmann::json::array();
  world w{.here = std::max(2U, std::thread::hardware_concurrency()), .requests = s.smoke ? 20U : 20'000U};
  if (s.smoke) w.items = 1U << 12U;
  if (figure == 4) {
    const std::uint32_t most = w.here;
    for (w.here = 1; w.here <= most; w.here *= 2)
      for (const auto& [order, name] : levels) {
        w.order = order;
        rows.push_back(row(w, name));
      }
  } else if (figure == 5) {
    w.window = 8;
    for (const std::uint32_t processes : s.smoke ? std::vector{4U} : std::vector{1U, 2U, 5U, 10U, 20U, 50U, 100U})
      for (const auto& [order, name] : levels) {
        if (order == consistency::total) continue;
        w.order = order;
        w.processes = processes;
        rows.push_back(row(w, name));
      }
  } else {
    w.processes = s.smoke ? 4 : 100;  // as in the paper
    w.order = consistency::sequential_of_the_paper;
    w.requests = s.smoke ? 20 : 5'000;
    for (const std::uint32_t forwards : s.smoke ? std::vector{0U} : std::vector{0U, 1U, 4U, 16U, 64U})
      for (const std::uint32_t window : s.smoke ? std::vector{4U} : std::vector{1U, 4U, 16U, 64U}) {
        w.forwards = forwards;
        w.window = window;
        rows.push_back(row(w, "sequential (paper)"));
      }
  }
  return rows.dump(1);
}

}  // namespace

std::string measure_paper(const settings& s, int figure, bool here) {
  if (here) return measure_here(s, figure);
  nlohmann::json rows = nlohmann::json::array();
  world w;
  if (s.smoke) w.items = 1U << 12U;
  if (s.smoke) w.requests = 8;
  if (figure == 4) {
    for (const std::uint32_t machines : s.smoke ? std::vector{2U} : std::vector{1U, 2U, 4U, 8U, 16U, 22U})
      for (const auto& [order, name] : levels) {
        w.machines = machines;
        w.order = order;
        rows.push_back(row(w, name));
      }
  } else if (figure == 5) {
    w.machines = s.smoke ? 2 : 22;
    w.requests = s.smoke ? 8 : 32;
    w.window = 8;
    for (const std::uint32_t processes : s.smoke ? std::vector{4U} : std::vector{1U, 2U, 5U, 10U, 20U, 50U})
      for (const auto& [order, name] : levels) {
        if (order == consistency::total) continue;
        w.order = order;
        w.processes = processes;
        rows.push_back(row(w, name));
      }
  } else {
    w.machines = s.smoke ? 2 : 24;
    w.processes = 4;  // the paper has 100; K = 0 would take an hour
    w.order = consistency::sequential_of_the_paper;
    for (const std::uint32_t forwards : s.smoke ? std::vector{0U} : std::vector{0U, 1U, 4U, 16U, 64U})
      for (const std::uint32_t window : s.smoke ? std::vector{4U} : std::vector{1U, 4U, 16U, 64U}) {
        w.forwards = forwards;
        w.window = window;
        w.requests = s.smoke ? 8 : 16 + window;
        rows.push_back(row(w, "sequential (paper)"));
      }
  }
  return rows.dump(1);
}

}  // namespace bench
