// SPDX-License-Identifier: Apache-2.0
// The ordered list: on the PEs of one node, and between two nodes.
#include "../measure.hpp"
#include "client.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace bench {
namespace {

double bytes_of_item(const fast_list& l) {
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  for (const auto& r : l.statistics()) {
    bytes += r.bytes;
    items += r.items;
  }
  return static_cast<double>(bytes) / static_cast<double>(items) - sizeof(std::uint32_t) - sizeof(std::uint64_t);
}

// Microseconds of a find when there is one at a time.
double find_one(const fast_list& l, const settings& s) {
  auto session = l.open({.window = 1});
  std::uint64_t hits = 0;
  const std::uint32_t times = std::min(s.operations, 100'000U);
  const auto begin = clock_type::now();
  for (std::uint32_t i = 0; i < times; ++i) hits += session.find(mixed(i % s.items)) ? 1 : 0;
  const double us = seconds_since(begin) / times * 1e6;
  if (hits == 0) std::puts("bench_service: no key was found");
  return us;
}

// Items a second of snapshots, and of scans, of about so many items.
void measure_ranges(const fast_list& l, const settings& s, std::uint32_t length, metrics& found) {
  auto session = l.open({});
  const std::uint64_t width = (std::uint64_t{1} << 32U) / s.items * length;
  const std::uint32_t times = s.smoke ? 3 : 2'000'000 / length;
  for (const bool snapshot : {true, false}) {
    std::uint64_t items = 0;
    const auto begin = clock_type::now();
    for (std::uint32_t i = 0; i < times; ++i) {
      const auto from = static_cast<std::uint32_t>(mixed(i) % ((std::uint64_t{1} << 32U) - width));
      const auto to = static_cast<std::uint32_t>(from + width);
      if (snapshot) {
        items += session.snapshot(from, to).size();
        continue;
      }
      auto scan = session.scan(from, to, length);
      for (auto part = scan.next(); !part.empty(); part = scan.next()) items += part.size();
    }
    found[(snapshot ? "range_" : "scan_") + std::to_string(length) + "_m"].push_back(static_cast<double>(items) /
                                                                                     seconds_since(begin) / 1e6);
  }
}

// Finds at a given rate (a second): microseconds from the moment at which each was due to its reply. What is due is
// flushed at once; requests for a range that has not answered share the next message to it. The first of all, for
// p.warm_up_s, are not told.
std::vector<double> paced(const fast_list& l, const client_plan& p, double rate) {
  const std::vector<operation> all = plan(p.s, p.id, false);
  auto session = l.open({.window = orrery::tuning::automatic});
  std::vector<double> took(all.size());
  const auto begin = clock_type::now();
  const auto take = [&](const auto& r) {
    took[r.request] = (seconds_since(begin) - static_cast<double>(r.request) / rate) * 1e6;
  };
  for (std::size_t next = 0; next < all.size();) {
    const auto due = std::min<std::size_t>(static_cast<std::size_t>(seconds_since(begin) * rate) + 1, all.size());
    for (; next < due; ++next) session.start_find(all[next].key);
    session.flush_idle();
    orrery::yield();
    while (const auto r = session.try_receive()) take(*r);
  }
  while (const auto r = session.receive()) take(*r);
  const auto warm = std::min(static_cast<std::size_t>(rate * p.warm_up_s), took.size() / 2);
  took.erase(took.begin(), took.begin() + static_cast<std::ptrdiff_t>(warm));
  return took;
}

void measure_latency(const fast_list& l, const std::vector<std::uint32_t>& pes, settings s, double peak_m,
                     metrics& found) {
  constexpr double warm_up_s = 0.25;
  const double rate = peak_m * 1e6 / 2 / static_cast<double>(pes.size());
  const auto for_a_while = static_cast<std::uint32_t>(rate * (1 + warm_up_s)) + 100;
  s.operations = s.smoke ? std::min(s.operations, for_a_while) : for_a_while;
  std::vector<orrery::future<std::vector<double>>> clients;
  client_plan p{.s = s, .warm_up_s = warm_up_s};
  for (p.id = 0; p.id < pes.size(); ++p.id)
    clients.push_back(orrery::start_call<&paced>(orrery::pe(pes[p.id]), l, p, rate));
  std::vector<std::vector<double>> took;  // nobody sorts while others still ask his PE
  for (auto& c : clients) took.push_back(c.get());
  double p50 = 0;
  double p99 = 0;
  for (auto& one : took) {
    std::ranges::sort(one);
    p50 = std::max(p50, one[one.size() / 2]);
    p99 = std::max(p99, one[one.size() * 99 / 100]);
  }
  found["p50_us"].push_back(p50);
  found["p99_us"].push_back(p99);
}

}  // namespace

void measure_threads(const settings& s, metrics& found) {
  in_world({"--orrery-pes=2"}, [&] {
    const std::vector<std::uint32_t> pes{0, 1};
    fast_list l = filled(s, pes);
    found["item_bytes"].push_back(bytes_of_item(l));
    found["find_one_threads_us"].push_back(find_one(l, s));
    measure_ranges(l, s, 100, found);
    measure_ranges(l, s, s.smoke ? 1000 : 10'000, found);
    std::vector<double> peaks;
    for (int run = 0; run < s.runs; ++run) {
      for (const bool mix : {false, true}) {
        const double rate = rate_of(l, pes, {.s = s, .mix = mix});
        found[mix ? "mix_m" : "find_m"].push_back(rate);
        if (!mix) peaks.push_back(rate);
      }
    }
    for (int run = 0; run < s.runs; ++run) measure_latency(l, pes, s, bench::median(peaks), found);
    l.end();
  });
}

// The list is on the second node, the client on the first.
void measure_nodes(const settings& s, metrics& found) {
  in_world({"--orrery-nodes=2", "--orrery-pes=1"}, [&] {
    fast_list l = filled(s, {1});
    for (int run = 0; run < s.runs; ++run) {
      found["find_nodes_m"].push_back(rate_of(l, {0}, {.s = s}));
      found["mix_nodes_m"].push_back(rate_of(l, {0}, {.s = s, .mix = true}));
      found["find_one_us"].push_back(find_one(l, s));
    }
    l.end();
  });
}

// What automatic W and G reach after a second, and the best of a sweep of fixed ones.
void measure_tuning(const settings& s, metrics& found) {
  in_world({"--orrery-pes=2"}, [&] {
    const std::vector<std::uint32_t> pes{0, 1};
    double least = 1e9;
    const std::pair<keys, const char*> all[] = {
        {keys::uniform, "uniform"}, {keys::zipf, "zipf"}, {keys::sequential, "sequential"}};
    for (const auto& [distribution, name] : all) {
      double best = 0;
      for (const std::uint32_t range_items : {1U << 14U, 1U << 16U, 1U << 18U}) {
        fast_list l = filled(s, pes, distribution == keys::sequential, range_items);
        for (const std::uint32_t window : {64U, 512U, 2048U, 8192U, 16384U}) {
          client_plan p{.s = s, .distribution = distribution};
          p.s.window = window;
          best = std::max(best, rate_of(l, pes, p));
          if (s.smoke) break;
        }
        l.end();
      }
      fast_list l = filled(s, pes, distribution == keys::sequential);
      client_plan p{.s = s, .distribution = distribution, .warm_up_s = s.smoke ? 0.01 : 1.0};
      p.s.window = 0;
      double automatic = 0;
      for (int run = 0; run < (s.smoke ? 1 : 3); ++run) automatic = std::max(automatic, rate_of(l, pes, p));
      l.end();
      found[std::string("automatic_") + name + "_m"].push_back(automatic);
      found[std::string("static_") + name + "_m"].push_back(best);
      least = std::min(least, automatic / best);
    }
    found["tuned_ratio"].push_back(least);
  });
}

}  // namespace bench
