// SPDX-License-Identifier: Apache-2.0
#include "simulated.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

using namespace orrery;

namespace bench {
namespace {

constexpr std::int32_t each = 10;

struct Member;
ORRERY_PROCESS(Member, step, pass);
struct Member : element<Member> {
  void step(const result_target& done) { contribute(1, sum, done); }
  void pass(std::int32_t left) {
    ++passed;
    if (left > 0) post(this_array()[next()])->pass(left - 1);
  }
  // On another PE: blocks of `each` are together.
  [[nodiscard]] std::int32_t next() const {
    return static_cast<std::int32_t>((static_cast<std::int64_t>(this_index()) + 7919 * each) %
                                     (static_cast<std::int64_t>(world_pes()) * each));
  }
  template <class A>
  void serialize(A& a) {
    a & passed;
  }
  std::int32_t passed = 0;
};

double resident_gib() {
  std::ifstream status("/proc/self/status");
  double kib = 0;
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmRSS:") || line.starts_with("VmPTE:")) kib += std::atof(line.c_str() + 6);
  return kib / (1 << 20);
}

// Since the start: methods, and records that are no messages to elements.
std::uint64_t events() {
  std::uint64_t n = 0;
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const pe_counters c = stats(p);
    n += c.executed + c.received - c.hops;
  }
  return n;
}

// Millions of events a second: of the processor's, as a simulation is one thread, which others may keep from running.
double rate(auto work) {
  const std::uint64_t before = events();
  const std::clock_t begin = std::clock();
  work();
  const double t = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return static_cast<double>(events() - before) / t / 1e6;
}

}  // namespace

simulated simulate(std::uint32_t pes, bool smoke) {
  simulated s{-1, -1, -1};
  std::string words[] = {"bench_arrays", "--orrery-sim=machines=" + std::to_string(pes), "--orrery-quiet"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
  const auto size = static_cast<std::int32_t>(pes) * each;
  (void)run(3, argv, [&](const args&) {
    const auto a = create_array<Member>(range<std::int32_t>{size}, {.home = placement_map<std::int32_t>::blocks(size)});
    bool right = true;
    const auto collective = [&](int times) {
      for (int i = 0; i < times; ++i) {
        auto [target, result] = expect_result<int>();
        post(a)->step(target);
        right = right && result.get() == size;
      }
    };
    const auto messages = [&](std::int32_t times) {
      post(a)->pass(times - 1);
      quiescence();
    };
    collective(1);  // rings are made, and pages touched
    messages(2);
    s.collective_m_s = rate([&] { collective(smoke ? 1 : 5); });
    s.message_m_s = rate([&] { messages(smoke ? 1 : 6); });
    s.gib = resident_gib();
    if (!right) s = {-1, -1, -1};
    return 0;
  });
  return s;
}

}  // namespace bench
