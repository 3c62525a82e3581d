// SPDX-License-Identifier: Apache-2.0
#include "../peers/sum_words.hpp"
#include "bench.hpp"

#include <orrery/orrery.hpp>

#include <array>
#include <span>

using namespace orrery;
using namespace bench;

namespace {

using packet = std::array<std::uint64_t, 8>;  // 64 bytes

struct Server {
  packet echo(const packet& p) const { return p; }
  void take(const packet& p) { sum += p[0]; }
  void read(std::span<const std::uint64_t> data) { sum += peers::sum_words(data.data(), data.size_bytes()); }
  std::uint64_t get() const { return sum; }
  std::uint64_t sum = 0;
};
ORRERY_PROCESS(Server, echo, take, read, get);

double call_node(effort e) {
  const int n = e.times(200'000);
  auto p = spawn<Server>(node(1));
  packet data{1};
  for (int i = 0; i < 1000; ++i) data = p->echo(data);
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) data = p->echo(data);
  const double t = ns_since(begin);
  destroy(p);
  return t / n;
}

// Both sides have had nothing to do for long enough to sleep.
double call_node_sleep(effort e) {
  const int n = e.times(400);
  auto p = spawn<Server>(node(1));
  packet data{1};
  double t = 0;
  for (int i = 0; i < n; ++i) {
    sleep_for(std::chrono::milliseconds(1));
    const auto begin = clock::now();
    data = p->echo(data);
    t += ns_since(begin);
  }
  destroy(p);
  return t / n / 1e3;
}

double post_node(effort e) {
  const int n = e.times(3'000'000);
  auto p = spawn<Server>(node(1));
  packet data{1};
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) post(p)->take(data);
  if (p->get() != static_cast<std::uint64_t>(n)) return -1;
  const double t = ns_since(begin);
  destroy(p);
  return n / t * 1e3;
}

double bulk_node(effort e) {
  const int n = e.times(3'000);
  auto p = spawn<Server>(node(1));
  const std::vector<std::uint64_t> data(1 << 17, 1);  // 1 MiB
  for (int i = 0; i < 50; ++i) post(p)->read(data);
  (void)p->get();
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) post(p)->read(data);
  if (p->get() != (static_cast<std::uint64_t>(n) + 50) << 17) return -1;
  const double t = ns_since(begin);
  destroy(p);
  return n * 8.0 * (1 << 17) / t;
}

// A client that has one call outstanding, until the time is up; how many were answered.
struct Client {
  long run(remote<Server> server, double seconds) {
    packet data{1};
    long n = 0;
    for (const auto begin = clock::now(); ns_since(begin) < seconds * 1e9; n += 8)
      for (int i = 0; i < 8; ++i) data = server->echo(data);
    return n;
  }
};
ORRERY_PROCESS(Client, run);

double calls_node_7(effort e) {
  const double seconds = e.smoke ? 0.05 : 0.5;
  auto server = spawn<Server>(node(0));
  std::vector<remote<Client>> clients;
  for (std::uint32_t i = 1; i < world_nodes(); ++i) clients.push_back(spawn<Client>(node(i)));
  std::vector<future<long>> answered;
  for (auto& c : clients) answered.push_back(start(c)->run(server, seconds));
  long sum = 0;
  for (auto& f : answered) sum += f.get();
  for (auto& c : clients) destroy(c);
  destroy(server);
  return static_cast<double>(sum) / seconds / 1e3;
}

}  // namespace

std::vector<metric> bench::nodes() {
  const std::vector<std::string> two{"--orrery-nodes=2", "--orrery-pes=1"};
  return {
      {"call_node_rtt_ns", two, call_node},
      {"call_node_sleep_rtt_us", two, call_node_sleep},
      {"post_node_rate_m", two, post_node},
      {"bulk_node_gbps", two, bulk_node},
      {"calls_node_7_rate_k", {"--orrery-nodes=8", "--orrery-pes=1"}, calls_node_7},
  };
}
