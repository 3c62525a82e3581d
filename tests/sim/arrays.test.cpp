// SPDX-License-Identifier: Apache-2.0
// What can be said of arrays on many PEs, as virtual time is the same each time: what the figures of docs/scaling.md show, for smaller worlds.
#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/scheduler/simulator.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::in_simulation;

struct Cell;
ORRERY_PROCESS(Cell, step, go, hear);
struct Cell : element<Cell> {
  void step(const result_target& done) { contribute(1, sum, done); }
  void go(std::uint32_t to) { migrate_to(to); }
  void hear() {}
  template <class A>
  void serialize(A&) {}
};

struct Talker {
  void talk(const array<Cell>& to, int i) { post(to[i])->hear(); }
  ORRERY_PROCESS_MEMBERS(Talker, talk)
};

struct way {
  std::uint64_t routed = 0;
  std::uint64_t hops = 0;
  friend bool operator==(const way&, const way&) = default;
};
// What f sends to elements, and how far that goes.
way way_of(auto f) {
  const auto all = [] {
    way w;
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      const pe_counters c = stats(p);
      w.routed += c.routed;
      w.hops += c.hops;
    }
    return w;
  };
  const way before = all();
  f();
  quiescence();
  const way after = all();
  return {after.routed - before.routed, after.hops - before.hops};
}

TEST(simulated_arrays, count_the_hops_of_messages_until_the_way_is_known) {
  scheduler::sim_report report;
  in_simulation(
      "machines=4",
      [] {
        const auto a = create_array<Cell>(range<int>{4}, {.home = placement_map<int>::cyclic(4)});
        const auto talker = spawn<Talker>(pe(0));
        const auto talk = [&] { post(talker)->talk(a, 1); };
        EXPECT_EQ(way_of(talk), (way{1, 1})) << "it is at its home";
        (void)way_of([&] { post(a[1])->go(2); });
        EXPECT_EQ(way_of(talk), (way{1, 2})) << "the home sends it on";
        EXPECT_EQ(way_of(talk), (way{1, 1})) << "the sender has learned the way";
        (void)way_of([&] { post(a[1])->go(3); });
        EXPECT_EQ(way_of(talk), (way{1, 2})) << "the place that it has left sends it on";
        EXPECT_EQ(way_of(talk), (way{1, 1}));
        (void)way_of([&] { post(a[1])->go(0); });
        (void)way_of(talk);
        EXPECT_EQ(way_of(talk), (way{0, 0})) << "it is on the sender's PE";
      },
      &report);
  EXPECT_GE(report.routed, 5U);
  EXPECT_GT(report.hops, report.routed);
  const std::string text = describe(parse_simulation("machines=4"), report);
  EXPECT_NE(text.find(fmt::format("{} to elements with {} hops", report.routed, report.hops)), std::string::npos)
      << text;
}

// Virtual time of a broadcast that ends in a reduction.
std::int64_t collective_ns(std::uint32_t pes) {
  std::int64_t ns = 0;
  in_simulation(fmt::format("machines={}", pes), [&] {
    const auto size = static_cast<int>(pes);
    const auto a = create_array<Cell>(range<int>{size}, {.home = placement_map<int>::blocks(size)});
    for (int i = 0; i < 3; ++i) {
      const auto begin = now();
      auto [target, result] = expect_result<int>();
      post(a)->step(target);
      EXPECT_EQ(result.get(), size);
      ns = (now() - begin).count();
    }
  });
  return ns;
}

TEST(simulated_arrays, reach_all_pes_and_come_back_in_logarithmic_time) {
  const std::uint32_t most = testing::slowed_down ? 256 : 4096;
  std::vector<std::int64_t> steps;  // what four times as many PEs cost more
  std::int64_t last = collective_ns(4);
  for (std::uint32_t pes = 16; pes <= most; pes *= 4) {
    const std::int64_t now = collective_ns(pes);
    steps.push_back(now - last);
    last = now;
  }
  // The tree has four branches: each step is one level more, there and back, of at most four messages sent one after the other.
  constexpr std::int64_t level = 2 * (900 + 2 * 150) + 2 * 4 * 150 + 2 * 4 * 20;
  for (const std::int64_t step : steps) {
    EXPECT_GT(step, 0);
    EXPECT_LT(step, 2 * level);
  }
}

array_footprint footprint_here(array<Cell> a) { return a.footprint(); }

// Bytes that the PEs keep of an array, on average, after each element has moved and has been sent a message.
double bytes_of_pe(std::uint32_t pes, int each) {
  double bytes = 0;
  in_simulation(fmt::format("machines={}", pes), [&] {
    const int size = static_cast<int>(pes) * each;
    const auto a = create_array<Cell>(range<int>{size});
    for (int i = 0; i < size; ++i) post(a[i])->go((static_cast<std::uint32_t>(i) * 7919U + 5) % pes);
    quiescence();
    for (std::uint32_t p = 0; p < pes; ++p) {
      const auto talker = spawn<Talker>(pe(p));
      for (int k = 0; k < each; ++k) post(talker)->talk(a, (static_cast<int>(p) * each + k + size / 2) % size);
    }
    quiescence();
    for (std::uint32_t p = 1; p < pes; ++p)
      bytes += static_cast<double>(call<&footprint_here>(pe(p), a).bytes) / (pes - 1);
  });
  return bytes;
}

TEST(simulated_arrays, keep_as_much_on_a_pe_as_it_has_elements_however_many_pes_there_are) {
  const double few = bytes_of_pe(16, 64);
  const double many = bytes_of_pe(128, 64);
  EXPECT_LT(many, 1.25 * few);
  EXPECT_LT(bytes_of_pe(64, 128), 2.5 * many);
}

}  // namespace
}  // namespace orrery
