// SPDX-License-Identifier: Apache-2.0
// Figures of tasks of C, as JSON: bench_task [--json [file]] [--only NAME,...] [--runs N] [--smoke]
// The tasks use task.h as generated C does; `function_` figures are those of C++ functions, for the ratio.
#include "../measure.hpp"

#include <orrery/task/task.h>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace {

using bench::effort;
using bench::ns_since;
using bench::resident_bytes;

// --- the messages, as orrery-cc makes them ---------------------------------------------------------------------------

struct hop {
  int left;
};
constexpr orrery_message_type hop_type = {"Hop", 1001, sizeof(hop), 0, nullptr};
struct next {
  orrery_task task;
  orrery_task done;
};
constexpr orrery_message_type next_type = {"Next", 1002, sizeof(next), 0, nullptr};
struct request {
  char bytes[64];
};
constexpr orrery_message_type request_type = {"Request", 1003, sizeof(request), 0, nullptr};

template <class T>
T receive(const orrery_message_type& type, orrery_task* sender = nullptr) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) orrery_exit();
  const auto* value = static_cast<T*>(orrery_open(&m, &type));
  if (value == nullptr) {
    std::fprintf(stderr, "%s\n", orrery_error());
    std::exit(1);
  }
  const T copy = *value;
  if (sender != nullptr) *sender = m.sender;
  orrery_release(&m);
  return copy;
}

// --- one PE ----------------------------------------------------------------------------------------------------------

void station(void*, std::size_t) {
  const next to = receive<next>(next_type);
  for (;;) {
    const int left = receive<hop>(hop_type).left;
    if (left < 0) return;
    const hop on{left - 1};
    orrery_send(left > 0 ? to.task : to.done, 0, &hop_type, &on, ORRERY_WAIT);
  }
}

double ring_hop(effort e) {
  constexpr int size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<orrery_task> ring(size);
  for (auto& t : ring) orrery_create(station, nullptr, 0, orrery_here(), &t);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const next n{ring[(i + 1) % ring.size()], orrery_self()};
    orrery_send(ring[i], 0, &next_type, &n, ORRERY_WAIT);
  }
  const auto round = [&](int n) {
    const hop first{n};
    orrery_send(ring[0], 0, &hop_type, &first, ORRERY_WAIT);
    (void)receive<hop>(hop_type);
  };
  round(size);
  const auto begin = bench::clock::now();
  round(hops);
  const double t = ns_since(begin);
  const hop end{-1};
  for (const auto& s : ring) orrery_send(s, 0, &hop_type, &end, ORRERY_WAIT);
  orrery_yield();
  return t / hops;
}

void function_station(orrery::remote<orrery::function> done) {
  const auto to = orrery::receive<orrery::remote<orrery::function>>();
  for (;;) {
    const int left = orrery::receive<int>();
    if (left < 0) return;
    orrery::send(left > 0 ? to : done, left - 1);
  }
}

double function_ring_hop(effort e) {
  constexpr int size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<orrery::remote<orrery::function>> ring;
  for (int i = 0; i < size; ++i)
    ring.push_back(orrery::spawn(orrery::here(), function_station, orrery::this_process<orrery::function>()));
  for (std::size_t i = 0; i < ring.size(); ++i) orrery::send(ring[i], ring[(i + 1) % ring.size()]);
  orrery::send(ring[0], size);
  (void)orrery::receive<int>();
  const auto begin = bench::clock::now();
  orrery::send(ring[0], hops);
  (void)orrery::receive<int>();
  const double t = ns_since(begin);
  for (const auto& s : ring) orrery::send(s, -1);
  orrery::yield();
  return t / hops;
}

void blocked(void*, std::size_t) { (void)receive<hop>(hop_type); }

// A million tasks that wait: until they are created, and until all have begun, if `begun`.
double spawn_and_wait(effort e, bool begun) {
  const int n = e.times(1'000'000);
  std::vector<orrery_task> all(static_cast<std::size_t>(n));
  const auto begin = bench::clock::now();
  for (auto& t : all) orrery_create(blocked, nullptr, 0, orrery_here(), &t);
  double t = ns_since(begin);
  orrery_yield();
  if (begun) t = ns_since(begin);
  const hop end{0};
  for (const auto& each : all) orrery_send(each, 0, &hop_type, &end, ORRERY_WAIT);
  orrery_yield();
  return t / n;
}

double spawn(effort e) { return spawn_and_wait(e, false); }
double spawn_begun(effort e) { return spawn_and_wait(e, true); }

// A million tasks that run to their end without waiting.
double spawn_and_run(effort e) {
  const int n = e.times(1'000'000);
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) orrery_create([](void*, std::size_t) {}, nullptr, 0, orrery_here(), nullptr);
  orrery_yield();
  return ns_since(begin) / n;
}

double blocked_bytes(effort e) {
  const int n = e.times(1'000'000);
  const double before = resident_bytes();
  for (int i = 0; i < n; ++i) orrery_create(blocked, nullptr, 0, orrery_here(), nullptr);
  orrery_yield();
  return (resident_bytes() - before) / n;
}

// --- two nodes -------------------------------------------------------------------------------------------------------

void server(void*, std::size_t) {
  for (;;) {
    orrery_task client;
    const request r = receive<request>(request_type, &client);
    if (r.bytes[0] == 'e') return;
    orrery_send(client, 0, &request_type, &r, ORRERY_WAIT);
  }
}

double round_trip(effort e) {
  const int n = e.times(500'000);
  orrery_task s;
  if (orrery_create(server, nullptr, 0, orrery_node(1), &s) != ORRERY_OK) return -1;
  request r{};
  const auto exchange = [&] {
    orrery_send(s, 0, &request_type, &r, ORRERY_WAIT);
    (void)receive<request>(request_type);
  };
  for (int i = 0; i < 1000; ++i) exchange();
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) exchange();
  const double t = ns_since(begin);
  r.bytes[0] = 'e';
  orrery_send(s, 0, &request_type, &r, ORRERY_WAIT);
  return orrery_join(s, ORRERY_FOREVER) == ORRERY_OK ? t / n : -1;
}

// --- buffers ---------------------------------------------------------------------------------------------------------

struct picture {
  orrery_buffer values;
};
constexpr orrery_field picture_fields[] = {{"values", ORRERY_BUFFER, offsetof(picture, values), 0, 0, 0, 0, nullptr}};
constexpr orrery_message_type picture_type = {"Picture", 1004, sizeof(picture), 1, picture_fields};

std::uint64_t sum_of(const orrery_buffer& b) {
  const auto* words = static_cast<const std::uint64_t*>(b.data);
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < b.size / 64; ++i)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += words[8 * i + k];
  std::uint64_t all = 0;
  for (const std::uint64_t each : sums) all += each;
  return all;
}

void reader(void*, std::size_t) {
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    const std::uint64_t sum = sum_of(static_cast<picture*>(orrery_open(&m, &picture_type))->values);
    orrery_send_bytes(m.sender, 0, &sum, sizeof sum, ORRERY_WAIT);
    orrery_release(&m);
  }
}

orrery_buffer written(std::size_t bytes) {
  orrery_buffer b;
  if (orrery_buffer_make(bytes, &b) != ORRERY_OK) std::exit(1);
  std::fill_n(static_cast<std::uint64_t*>(b.data), bytes / 8, 1);
  return b;
}

// GB/s: a buffer of 256 MiB is handed to another OS process, which reads it and says so. The first one maps the pages there.
double reference(effort e) {
  const std::size_t bytes = static_cast<std::size_t>(e.times(256)) << 20;
  orrery_task t;
  if (orrery_create(reader, nullptr, 0, orrery_node(1), &t) != ORRERY_OK) return -1;
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const picture p{written(bytes)};
    const auto begin = bench::clock::now();
    orrery_send(t, 0, &picture_type, &p, ORRERY_WAIT);
    orrery_message m;
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return -1;
    best = std::max(best, static_cast<double>(bytes) / ns_since(begin));
    std::uint64_t sum = 0;
    std::memcpy(&sum, m.data, sizeof sum);
    orrery_release(&m);
    if (sum != bytes / 8) return -1;
  }
  orrery_stop(t);
  return orrery_join(t, ORRERY_FOREVER) == ORRERY_OK ? best : -1;
}

// The same of its own memory.
double own_memory(effort e) {
  const std::size_t bytes = static_cast<std::size_t>(e.times(256)) << 20;
  orrery_buffer b = written(bytes);
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto begin = bench::clock::now();
    if (sum_of(b) != bytes / 8) return -1;
    best = std::max(best, static_cast<double>(bytes) / ns_since(begin));
  }
  orrery_buffer_free(&b);
  return best;
}

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
      {"blocked_task_bytes", {"--orrery-pes=1"}, blocked_bytes, true},
      {"spawn_task_ns", {"--orrery-pes=1"}, spawn},
      {"spawn_begun_task_ns", {"--orrery-pes=1"}, spawn_begun},
      {"spawn_run_task_ns", {"--orrery-pes=1"}, spawn_and_run},
      {"task_ring_hop_ns", {"--orrery-pes=1"}, ring_hop},
      {"function_ring_hop_ns", {"--orrery-pes=1"}, function_ring_hop},
      {"reference_gbps", {"--orrery-nodes=2", "--orrery-pes=1"}, reference},
      {"own_memory_gbps", {"--orrery-pes=1"}, own_memory},
      {"task_rtt_nodes_ns", {"--orrery-nodes=2", "--orrery-pes=1", "--orrery-waiting=wait"}, round_trip},
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
