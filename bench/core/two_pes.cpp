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

}  // namespace

std::vector<metric> bench::two_pes() {
  const std::vector<std::string> world{"--orrery-pes=2"};
  return {
      {"call_pe_rtt_ns", world, call_pe},
      {"post_pe_rate_m", world, post_pe},
  };
}
