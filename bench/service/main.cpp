// SPDX-License-Identifier: Apache-2.0
// An ordered list against a B-tree under sharded mutexes, in the same run: 2 clients, 32-bit keys, 8-byte values.
//   bench_service [--json FILE] [--items N] [--operations N] [--runs N] [--window N] [--smoke]
// Rates are in millions of operations a second of all clients together, medians of runs that alternate with those of the peer.
#include "peer.hpp"

#include <orrery/orrery.hpp>
#include <orrery/service/ordered_list.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using bench::operation;
using clock_type = std::chrono::steady_clock;
using list = orrery::ordered_list<std::uint32_t, std::uint64_t>;

struct settings {
  std::uint32_t items = 1U << 20U;
  std::uint32_t operations = 4'000'000;  // of each client
  std::uint32_t window = 8192;
  int runs = 5;
};

double seconds_since(clock_type::time_point begin) {
  return std::chrono::duration<double>(clock_type::now() - begin).count();
}

std::uint32_t mixed(std::uint64_t n) {  // a bijection of 32 bits: keys are uniform, and none is there twice
  auto x = static_cast<std::uint32_t>(n);
  x = (x ^ (x >> 16U)) * 0x7feb'352dU;
  x = (x ^ (x >> 15U)) * 0x846c'a68bU;
  return x ^ (x >> 16U);
}

/// What one client does. Of a mix half of the keys that it is about are there.
std::vector<operation> plan(const settings& s, std::uint32_t client, bool mix) {
  std::vector<operation> all(s.operations);
  std::uint64_t random = 0x9e37'79b9'7f4a'7c15U * (client + 1);
  for (operation& o : all) {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    const auto r = static_cast<std::uint32_t>(random >> 32U);
    o.key = mixed(r % (mix ? 2 * s.items : s.items));
    o.what = mix ? static_cast<operation::kind>((random & 0xffffU) % 3) : operation::find;
  }
  return all;
}

// --- the list -------------------------------------------------------------------------------------------------------

struct client_result {
  std::uint64_t done = 0;
  double seconds = 0;
};

client_result drive(const list& l, std::uint32_t client, const settings& s, bool mix) {
  const std::vector<operation> all = plan(s, client, mix);
  auto session = l.open({.window = s.window});
  client_result result;
  const auto take = [&](const auto& r) { result.done += r.done ? 1 : 0; };
  const auto begin = clock_type::now();
  for (const operation& o : all) {
    switch (o.what) {
      case operation::find:
        session.start_find(o.key);
        break;
      case operation::insert:
        session.start_insert(o.key, o.key);
        break;
      default:
        session.start_erase(o.key);
    }
    while (const auto r = session.try_receive()) take(*r);
  }
  while (const auto r = session.receive()) take(*r);
  result.seconds = seconds_since(begin);
  return result;
}

// Clients on these PEs; operations a second of all.
double rate_of(const list& l, const std::vector<std::uint32_t>& pes, const settings& s, bool mix) {
  std::vector<orrery::future<client_result>> clients;
  for (std::uint32_t i = 0; i < pes.size(); ++i)
    clients.push_back(orrery::start_call<&drive>(orrery::pe(pes[i]), l, i, s, mix));
  double slowest = 0;
  for (auto& c : clients) slowest = std::max(slowest, c.get().seconds);
  return static_cast<double>(s.operations) * static_cast<double>(pes.size()) / slowest / 1e6;
}

list filled(const settings& s, const std::vector<std::uint32_t>& pes) {
  list l = list::make({.pes = pes});
  auto session = l.open({.window = s.window});
  for (std::uint32_t i = 0; i < s.items; ++i) {
    session.start_insert(mixed(i), i);
    while (session.try_receive()) {
    }
  }
  while (session.receive()) {
  }
  return l;
}

double bytes_of_item(const list& l) {
  std::uint64_t bytes = 0;
  std::uint64_t items = 0;
  for (const auto& r : l.statistics()) {
    bytes += r.bytes;
    items += r.items;
  }
  return static_cast<double>(bytes) / static_cast<double>(items) - sizeof(std::uint32_t) - sizeof(std::uint64_t);
}

// --- the peer ---------------------------------------------------------------------------------------------------------

double peer_rate(bench::sharded_btree& tree, const settings& s, bool mix) {
  std::vector<std::vector<operation>> plans{plan(s, 0, mix), plan(s, 1, mix)};
  const auto begin = clock_type::now();
  {
    std::vector<std::jthread> clients;
    for (const auto& p : plans) clients.emplace_back([&] { tree.run(p); });
  }
  return 2.0 * s.operations / seconds_since(begin) / 1e6;
}

using metrics = std::map<std::string, std::vector<double>>;

void measure(const settings& s, metrics& found) {
  const std::vector<std::uint32_t> pes{0, 1};
  list l = filled(s, pes);
  found["item_bytes"].push_back(bytes_of_item(l));
  bench::sharded_btree tree;
  if (bench::has_peer)
    for (std::uint32_t i = 0; i < s.items; ++i) tree.insert(mixed(i), i);
  for (int run = 0; run < s.runs; ++run) {
    for (const bool mix : {false, true}) {
      const std::string name = mix ? "mix_m" : "find_m";
      found[name].push_back(rate_of(l, pes, s, mix));
      if (bench::has_peer) found["btree_" + name].push_back(peer_rate(tree, s, mix));
    }
  }
  auto session = l.open({.window = 1});
  std::uint64_t hits = 0;
  const std::uint32_t times = std::min(s.operations, 100'000U);
  const auto begin = clock_type::now();
  for (std::uint32_t i = 0; i < times; ++i) hits += session.find(mixed(i)) ? 1 : 0;
  found["find_one_threads_us"].push_back(seconds_since(begin) / times * 1e6);
  if (hits == 0) std::puts("bench_service: no key was found");
  l.end();
}

}  // namespace

int main(int argc, char** argv) {
  settings s;
  std::string json;
  bool smoke = false;
  CLI::App app("An ordered list against a B-tree under sharded mutexes");
  app.add_option("--json", json, "write the figures there");
  app.add_option("--items", s.items, "keys in the list");
  app.add_option("--operations", s.operations, "of each client and run");
  app.add_option("--runs", s.runs, "of which the median counts");
  app.add_option("--window", s.window, "outstanding requests of a client");
  app.add_flag("--smoke", smoke, "only see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (smoke) s = {.items = 1U << 14U, .operations = 20'000, .window = s.window, .runs = 1};
  metrics found;
  std::vector<std::string> options{argv[0], "--orrery-pes=2"};
  std::vector<char*> words;
  for (std::string& o : options) words.push_back(o.data());
  words.push_back(nullptr);
  const int code = orrery::run(static_cast<int>(words.size()) - 1, words.data(), [&](const orrery::args&) {
    measure(s, found);
    return 0;
  });
  nlohmann::json all;
  for (auto& [name, values] : found) {
    std::ranges::sort(values);
    all[name] = values[values.size() / 2];
    std::printf("%-24s %8.2f   (%.2f to %.2f)\n", name.c_str(), values[values.size() / 2], values.front(),
                values.back());
  }
  if (!bench::has_peer) std::puts("btree_*                  absent: libabsl-dev was not there when this was built");
  if (!json.empty()) std::ofstream(json) << all.dump(2) << '\n';
  return code;
}
