// SPDX-License-Identifier: Apache-2.0
// Settings at their extremes: whatever the sizes of rings, mailboxes, stacks and memory, nothing hangs and nothing is lost.
#include "../support/scenario.hpp"

#include <orrery/array/array.hpp>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace orrery::faults {
namespace extremes_tests {

using namespace testing;

constexpr std::size_t payloads[] = {0, 100, 4'096, 5'000, 24'000, 100'000};

// --- calls between all PEs ---------------------------------------------------------------------------------------------

struct echo {
  std::vector<char> give(const std::vector<char>& v) { return v; }
  void take(const std::vector<char>& v) { bytes += v.size(); }
  std::size_t taken() { return bytes; }
  void fail(std::size_t n) { throw std::length_error(std::string(n, 'w')); }
  std::size_t bytes = 0;
};
ORRERY_PROCESS(echo, give, take, taken, fail);

int talk_to(std::uint32_t to) {
  const auto e = spawn<echo>(pe(to));
  int wrong = 0;
  std::size_t posted = 0;
  for (int round = 0; round < 3; ++round)
    for (const std::size_t n : payloads) {
      const std::vector<char> v(n, 'x');
      std::vector<future<std::vector<char>>> answers;
      for (int i = 0; i < 5; ++i) answers.push_back(start(e)->give(v));
      for (int i = 0; i < 5; ++i, posted += n) post(e)->take(v);
      for (auto& a : answers) wrong += a.get() != v ? 1 : 0;
      try {
        e->fail(n);
        ++wrong;
      } catch (const std::length_error&) {
      }
    }
  return wrong + (e->taken() != posted ? 1 : 0);
}

void all_talk_to_all() {
  std::vector<future<int>> all;
  for (std::uint32_t from = 0; from < world_pes(); ++from)
    for (std::uint32_t to = 0; to < world_pes(); ++to) all.push_back(start_call<&talk_to>(pe(from), to));
  for (auto& f : all) check(f.get() == 0, "a wrong answer");
}

// --- elements that move ------------------------------------------------------------------------------------------------

struct heavy;
ORRERY_PROCESS(heavy, hop, sum_of, all_of);
struct heavy : element<heavy, int> {
  heavy() : data(3'000) { std::iota(data.begin(), data.end(), 0.0); }
  void hop(std::uint32_t to) { migrate_to(to); }
  void sum_of(const result_target& t) { contribute(std::accumulate(data.begin(), data.end(), 0.0), sum, t); }
  void all_of(const result_target& t) { contribute(std::vector(data.begin(), data.begin() + 100), concat, t); }
  template <class A>
  void serialize(A& a) {
    a & data;
  }
  std::vector<double> data;  // 24 KB
};
struct listener {
  void hear(const std::vector<double>& v) { heard = v; }
  double total() { return std::accumulate(heard.begin(), heard.end(), 0.0); }
  std::vector<double> heard;
};
ORRERY_PROCESS(listener, hear, total);

void elements_move() {
  constexpr int elements = 40;
  constexpr double each = 3'000.0 * 2'999.0 / 2;
  const auto a = create_array<heavy>(range<int>{elements}, {.name = "heavy"});
  for (std::uint32_t round = 0; round < 30; ++round) {
    for (int i = 0; i < elements; ++i) post(a[i])->hop((static_cast<std::uint32_t>(i) + round) % world_pes());
    auto [target, result] = expect_result<double>();
    post(a)->sum_of(target);
    check(result.get() == elements * each, "a wrong sum");
  }
  // A result that no ring can take in one record, for a process elsewhere.
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto l = spawn<listener>(pe(p));
    post(a)->all_of(result_to<&listener::hear>(l));
    while (l->total() == 0.0) yield();
    check(l->total() == elements * 4'950.0, "a wrong result");
  }
}

void traffic() {
  all_talk_to_all();
  elements_move();
}

using settings = std::vector<std::string>;
class extreme : public ::testing::TestWithParam<settings> {};
TEST_P(extreme, settings_neither_hang_nor_lose_anything) {
  for (const auto& nodes :
       {std::pair{"--orrery-nodes=2", "--orrery-pes=2"}, std::pair{"--orrery-nodes=1", "--orrery-pes=3"}}) {
    settings all{"--scenario=traffic", nodes.first, nodes.second};
    all.insert(all.end(), GetParam().begin(), GetParam().end());
    const std::string said = outcome_of(all);
    EXPECT_TRUE(said.ends_with("good")) << nodes.first << ": " << said;
    EXPECT_EQ(count_of(said, "failed, and nobody waits"), 0) << said;
  }
}
INSTANTIATE_TEST_SUITE_P(
    of, extreme,
    ::testing::Values(settings{"--orrery-ring=32K"},
                      settings{"--orrery-ring=32K", "--orrery-mailbox=4K", "--orrery-memory=1M"},
                      settings{"--orrery-ring=256K", "--orrery-memory=1M"},  // four rings take more than that
                      settings{"--orrery-ring=16M", "--orrery-mailbox=2G", "--orrery-method-stack=16M"}),
    [](const auto& i) { return std::to_string(i.index); });

const orrery::testing::scenarios_of_file of_this({{"traffic", traffic}});

}  // namespace extremes_tests
}  // namespace orrery::faults
