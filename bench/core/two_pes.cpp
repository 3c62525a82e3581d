// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <orrery/orrery.hpp>

#include <array>

using namespace orrery;
using namespace bench;

namespace {

using packet = std::array<std::uint64_t, 8>;  // 64 bytes

struct Far {
  void take(const packet& p) { sum += p[0]; }
  std::uint64_t get() const { return sum; }
  std::uint64_t sum = 0;
};
ORRERY_PROCESS(Far, take, get);

double call_pe(effort e) {
  const int n = e.times(200'000);
  auto p = spawn<Far>(pe(1));
  for (int i = 0; i < 1000; ++i) (void)p->get();
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) (void)p->get();
  const double t = ns_since(begin);
  destroy(p);
  return t / n;
}

double post_pe(effort e) {
  const int n = e.times(3'000'000);
  auto p = spawn<Far>(pe(1));
  packet data{1};
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) post(p)->take(data);
  if (p->get() != static_cast<std::uint64_t>(n)) return -1;
  const double t = ns_since(begin);
  destroy(p);
  return n / t * 1e3;
}

// A member of a group of 64: half of the ranks on each PE.
struct Rank;
ORRERY_PROCESS(Rank, meet, token);

struct Rank : member<Rank> {
  void meet(int rounds) {
    for (int i = 0; i < rounds; ++i) barrier();
  }
  void token(int hops, remote<function> done) {
    if (hops == 0) {
      send(done, 0);
    } else {
      post(this_group()[(rank() + 1) % size()])->token(hops - 1, done);
    }
  }
};
constexpr std::size_t ranks = 64;

double barrier_64(effort e) {
  const int n = e.times(20'000);
  auto g = spawn_group<Rank>(in_blocks(), ranks);
  g->meet(10);
  const auto begin = clock::now();
  g->meet(n);
  const double t = ns_since(begin);
  destroy(g);
  return t / n / 1e3;
}

double ring_64(effort e) {
  const int n = e.times(2'000'000);
  auto g = spawn_group<Rank>(in_blocks(), ranks);
  const auto me = this_process<function>();
  const auto begin = clock::now();
  post(g[0])->token(n, me);
  (void)receive<int>();
  const double t = ns_since(begin);
  destroy(g);
  return t / n / 1e3;
}

}  // namespace

std::vector<metric> bench::two_pes() {
  const std::vector<std::string> world{"--orrery-pes=2"};
  return {
      {"call_pe_rtt_ns", world, call_pe},
      {"post_pe_rate_m", world, post_pe},
      {"barrier_64_us", world, barrier_64},
      {"ring_64_hop_us", world, ring_64},
  };
}
