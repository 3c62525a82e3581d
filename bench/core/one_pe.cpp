// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <orrery/orrery.hpp>

#include <algorithm>
#include <numeric>
#include <random>

using namespace orrery;
using namespace bench;

namespace {

struct Counter {
  void add(int x) { sum += x; }
  long get() const { return sum; }
  long sum = 0;
};
ORRERY_PROCESS(Counter, add, get);

struct Link;
ORRERY_PROCESS(Link, link, pass);
struct Link {
  void link(remote<Link> n, remote<function> d) { next = n, done = d; }
  void pass(int hops) {
    if (hops == 0) {
      send(done, 0);
    } else {
      post(next)->pass(hops - 1);
    }
  }
  remote<Link> next;
  remote<function> done;
};

double call_inline(effort e) {
  const int n = e.times(5'000'000);
  auto p = spawn<Counter>(here());
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) p->add(1);
  const double t = ns_since(begin);
  destroy(p);
  return t / n;
}

double post_same_pe(effort e) {
  const int n = e.times(2'000'000);
  auto p = spawn<Counter>(here());
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) post(p)->add(1);
  if (p->get() != n) return -1;
  const double t = ns_since(begin);
  destroy(p);
  return t / n;
}

double ring(int size, int hops, bool shuffled) {
  std::vector<remote<Link>> links;
  for (int i = 0; i < size; ++i) links.push_back(spawn<Link>(here()));
  std::vector<std::size_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  if (shuffled) std::ranges::shuffle(order, std::mt19937(7));
  const auto me = this_process<function>();
  for (std::size_t i = 0; i < order.size(); ++i) links[order[i]]->link(links[order[(i + 1) % order.size()]], me);
  post(links[0])->pass(size);
  (void)receive<int>();
  const auto begin = clock::now();
  post(links[0])->pass(hops);
  (void)receive<int>();
  const double t = ns_since(begin);
  for (auto& l : links) destroy(l);
  return t / hops;
}

void station(remote<function> done) {
  const auto next = receive<remote<function>>();
  for (;;) {
    const int hops = receive<int>();
    if (hops == 0) send(done, 0);
    if (hops < 0) return;
    if (hops > 0) send(next, hops - 1);
  }
}

double receive_ring(effort e) {
  const int size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<remote<function>> ring;
  for (int i = 0; i < size; ++i) ring.push_back(spawn(here(), station, this_process<function>()));
  for (std::size_t i = 0; i < ring.size(); ++i) send(ring[i], ring[(i + 1) % ring.size()]);
  send(ring[0], size);
  (void)receive<int>();
  const auto begin = clock::now();
  send(ring[0], hops);
  (void)receive<int>();
  const double t = ns_since(begin);
  for (auto& s : ring) send(s, -1);
  yield();
  return t / hops;
}

// 100 senders, one receiver.
double fanin(effort e) {
  const int each = e.times(50'000);
  auto sink = spawn<Counter>(here());
  const auto me = this_process<function>();
  const auto begin = clock::now();
  for (int i = 0; i < 100; ++i)
    (void)spawn(
        here(),
        [](remote<Counter> to, remote<function> done, int n) {
          for (int k = 0; k < n; ++k) post(to)->add(1);
          send(done, 0);
        },
        sink, me, each);
  for (int i = 0; i < 100; ++i) (void)receive<int>();
  if (sink->get() != 100L * each) return -1;
  const double t = ns_since(begin);
  destroy(sink);
  return 100.0 * each / t * 1e3;
}

// 100 processes that call one server.
double calls(effort e) {
  const int each = e.times(50'000);
  auto server = spawn<Counter>(here());
  const auto me = this_process<function>();
  const auto begin = clock::now();
  for (int i = 0; i < 100; ++i)
    (void)spawn(
        here(),
        [](remote<Counter> to, remote<function> done, int n) {
          for (int k = 0; k < n; ++k) to->add(1);
          send(done, 0);
        },
        server, me, each);
  for (int i = 0; i < 100; ++i) (void)receive<int>();
  if (server->get() != 100L * each) return -1;
  const double t = ns_since(begin);
  destroy(server);
  return 100.0 * each / t * 1e3;
}

}  // namespace

std::vector<metric> bench::one_pe() {
  const std::vector<std::string> world{"--orrery-pes=1"};
  return {
      {"call_inline_ns", world, call_inline},
      {"post_same_pe_ns", world, post_same_pe},
      {"ring_1k_hop_ns", world, [](effort e) { return ring(1000, e.times(3'000'000), false); }},
      {"ring_100k_hop_ns", world, [](effort e) { return ring(100'000, e.times(2'000'000), true); }},
      {"ring_1k_receive_hop_ns", world, receive_ring},
      {"fanin_100_rate_m", world, fanin},
      {"calls_100_rate_m", world, calls},
  };
}
