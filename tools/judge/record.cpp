// SPDX-License-Identifier: Apache-2.0
// Runs clients against a service in the real system, on threads and nodes, and writes what they saw as JSON, for tools/judge/judge.
//   record_histories [--orrery-pes=N] [--orrery-nodes=N] --service ordered_list|hash_map|walking_list --level LEVEL --out FILE ...
#include <orrery/orrery.hpp>
#include <orrery/service/hash_map.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using orrery::consistency;

const std::map<std::string, consistency> levels{{"unordered", consistency::unordered},
                                                {"per_key", consistency::per_key},
                                                {"sequential", consistency::sequential},
                                                {"total", consistency::total},
                                                {"sequential_of_the_paper", consistency::sequential_of_the_paper}};
const std::vector<std::string> operations{"find",   "insert",           "erase",
                                          "update", "insert_or_update", "compare_and_update"};

struct plan {
  std::uint32_t clients = 3;
  std::uint32_t requests = 300;
  std::uint32_t keys = 30;
  std::uint32_t window = 16;
  std::uint32_t seed = 1;
  consistency level = consistency::per_key;
};

struct event {
  std::uint32_t session = 0;
  std::uint64_t number = 0;
  std::uint8_t operation = 0;
  int key = 0;
  int value = 0;
  int expected = 0;
  std::int64_t begun = 0;  // ns of a clock that all nodes of a machine share
  std::int64_t ended = 0;
  bool done = false;
  bool failed = false;
  std::optional<int> found;
  std::uint64_t moment = 0;
};

std::int64_t clock_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class Session>
constexpr bool compares = requires(Session& s) { s.start_compare_and_update(0, 0, 0); };

template <class Session>
void make_request(Session& s, const event& e) {
  switch (e.operation) {
    case 0:
      s.start_find(e.key);
      break;
    case 1:
      s.start_insert(e.key, e.value);
      break;
    case 2:
      s.start_erase(e.key);
      break;
    case 3:
      s.start_update(e.key, e.value);
      break;
    case 4:
      s.start_insert_or_update(e.key, e.value);
      break;
    default:
      if constexpr (compares<Session>) s.start_compare_and_update(e.key, e.expected, e.value);
  }
}

// One client: random requests, many outstanding.
template <class Service>
std::vector<event> act(const Service& of, std::uint32_t id, const plan& p) {
  std::mt19937 random(p.seed * 1000 + id);
  std::vector<event> mine;
  auto s = of.open({.window = p.window, .order = p.level});
  const auto take = [&](const auto& r) {
    event& e = mine[r.request];
    e.ended = clock_now();
    e.done = r.done;
    e.failed = r.error != nullptr;
    e.found = r.value;
    if constexpr (requires { r.moment; }) e.moment = r.moment;
  };
  for (std::uint32_t i = 0; i < p.requests; ++i) {
    event e;
    e.session = id;
    e.number = i;
    e.operation = static_cast<std::uint8_t>(random() % (compares<decltype(s)> ? 6 : 5));
    e.key = static_cast<int>(random() % p.keys);
    e.value = static_cast<int>(random() % 4);
    e.expected = static_cast<int>(random() % 4);
    e.begun = clock_now();
    mine.push_back(e);
    make_request(s, e);
    if (random() % 8 == 0) {
      if (const auto r = s.receive()) take(*r);
    }
    while (const auto r = s.try_receive()) take(*r);
  }
  while (const auto r = s.receive()) take(*r);
  return mine;
}

template <class Service>
std::vector<event> run_clients(Service service, const plan& p) {
  std::vector<orrery::future<std::vector<event>>> ends;
  for (std::uint32_t i = 0; i < p.clients; ++i)
    ends.push_back(orrery::start_call<&act<Service>>(orrery::pe(i % orrery::world_pes()), service, i, p));
  std::vector<event> all;
  for (auto& e : ends) {
    const std::vector<event> of_one = e.get();
    all.insert(all.end(), of_one.begin(), of_one.end());
  }
  service.end();
  return all;
}

nlohmann::json to_json(const std::vector<event>& all, const std::string& level) {
  nlohmann::json events = nlohmann::json::array();
  for (const event& e : all) {
    if (e.failed) continue;  // the list was full: nothing has happened
    nlohmann::json j{{"session", e.session}, {"number", e.number}, {"operation", operations[e.operation]},
                     {"key", e.key},         {"value", e.value},   {"expected", e.expected},
                     {"begun", e.begun},     {"ended", e.ended},   {"done", e.done},
                     {"moment", e.moment}};
    if (e.found) j["found"] = *e.found;
    events.push_back(std::move(j));
  }
  return {{"level", level}, {"events", std::move(events)}};
}

}  // namespace

int main(int argc, char** argv) {
  plan p;
  std::string service = "ordered_list";
  std::string level = "per_key";
  std::string out = "history.json";
  CLI::App app("Writes what clients of a service saw as JSON");
  app.allow_extras();  // --orrery-...
  app.add_option("--service", service)->check(CLI::IsMember({"ordered_list", "hash_map", "walking_list"}));
  app.add_option("--level", level)->check(CLI::IsMember(levels));
  app.add_option("--out", out, "where the history goes");
  app.add_option("--clients", p.clients);
  app.add_option("--requests", p.requests, "of each client");
  app.add_option("--keys", p.keys);
  app.add_option("--window", p.window);
  app.add_option("--seed", p.seed);
  CLI11_PARSE(app, argc, argv);
  p.level = levels.at(level);
  return orrery::run(argc, argv, [&](const orrery::args&) {
    std::vector<event> all;
    if (service == "hash_map") {
      all = run_clients(orrery::hash_map<int, int>::make(), p);
    } else if (service == "walking_list") {
      all =
          run_clients(orrery::walking_list<int, int>::make({.processes = p.keys, .granularity = 2, .forwards = 4}), p);
    } else {
      all = run_clients(orrery::ordered_list<int, int>::make({.range_items = 3}), p);
    }
    std::ofstream file(out);
    file << to_json(all, level).dump() << '\n';
    std::printf("%zu requests of %u clients\n", all.size(), p.clients);
    return file.good() ? 0 : 1;
  });
}
