// SPDX-License-Identifier: Apache-2.0
// The paper's list on two PEs of this machine: figure 4's levels, and what one item in each process costs.
#include "../measure.hpp"
#include "client.hpp"

#include <orrery/service/walking_list.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace bench {
namespace {

using slow_list = orrery::walking_list<std::uint32_t, std::uint64_t>;
using orrery::consistency;

std::vector<slow_list::item> sorted_items(std::uint32_t n) {
  std::vector<slow_list::item> all(n);
  for (std::uint32_t i = 0; i < n; ++i) all[i] = {mixed(i), i};
  std::ranges::sort(all);
  return all;
}

// Thousands of finds a second with P = 10 and 2^20 items.
void measure_levels(const settings& s, metrics& found) {
  const std::vector<std::uint32_t> pes{0, 1};
  auto l = slow_list::make({.processes = 10, .granularity = s.items / 20 + 1, .forwards = 64});
  l.fill(sorted_items(s.items), true);
  const std::pair<consistency, const char*> levels[] = {{consistency::total, "total_k"},
                                                        {consistency::sequential, "sequential_k"},
                                                        {consistency::sequential_of_the_paper, "sequential_paper_k"},
                                                        {consistency::per_key, "per_key_k"},
                                                        {consistency::unordered, "unordered_k"}};
  for (int run = 0; run < s.runs; ++run)
    for (const auto& [order, name] : levels) {
      client_plan p{.s = s, .order = order};
      p.s.operations = std::min(s.operations, s.smoke ? 500U : 50'000U);
      p.s.window = 64;
      found[name].push_back(rate_of(l, pes, p) * 1e3);
    }
  l.end();
}

void measure_process_bytes(const settings& s, metrics& found) {
  const std::uint32_t of_each = s.processes / 2;
  for (const bool shortcuts : {false, true}) {
    const auto items = sorted_items(2 * of_each);
    const double before = resident_bytes();
    auto l = slow_list::make({.processes = of_each, .granularity = 1, .shortcuts = shortcuts});
    l.fill(items);
    const double bytes = (resident_bytes() - before) / (2.0 * of_each) - sizeof(std::uint32_t) - sizeof(std::uint64_t);
    found[shortcuts ? "process_item_shortcut_bytes" : "process_item_bytes"].push_back(bytes);
    {
      auto session = l.open({.window = 64});
      std::uint64_t hits = 0;
      for (std::uint32_t i = 0; i < 64; ++i) session.start_find(items[i * (items.size() / 64)].first);
      while (const auto r = session.receive()) hits += r->done ? 1 : 0;
      if (hits != 64) std::puts("bench_service: keys are missing in the walking list");
    }
    l.end();
  }
}

}  // namespace

void measure_walking(const settings& s, metrics& found) {
  in_world({"--orrery-pes=2"}, [&] { measure_process_bytes(s, found); });
  in_world({"--orrery-pes=2"}, [&] { measure_levels(s, found); });
}

}  // namespace bench
