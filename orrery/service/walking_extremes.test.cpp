// SPDX-License-Identifier: Apache-2.0
// Walking lists where everything is scarce, or large: clients that never fetch replies, full
// mailboxes, values of 1 MiB, erasures under a range.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_extremes.hpp>
#include <orrery/service/walking_list.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace walking_extremes_tests {

using orrery::consistency;
using list = orrery::walking_list<int, int>;
// With the slot of a process (64 bytes) and what the allocator adds, 192,000 processes of one item
// take less than 128 bytes each beside it.
static_assert(sizeof(orrery::service::walk_node<std::uint32_t, std::uint64_t>) <= 56);

int find_all(const list& l) {
  auto s = l.open({.window = 1});
  int answered = 0;
  for (int i = 0; i < 200; ++i) answered += s.find(i % 40).value_or(0) >= 0 ? 1 : 0;
  return answered;
}

TEST(walking_extremes, go_on_with_small_mailboxes_and_clients_that_never_fetch) {
  for (const std::uint32_t forwards : {0U, 1U, 1000U}) {
    orrery::scheduler::node_settings settings;
    settings.pes = 2;
    settings.pe.mailbox_bytes = 4 << 10;  // a few dozen messages
    orrery::testing::in_world(settings, [&] {
      auto l = list::make({.processes = 30, .granularity = 1, .forwards = forwards});
      std::vector<orrery::future<int>> ends;
      const consistency orders[] = {consistency::total, consistency::sequential, consistency::unordered,
                                    consistency::per_key};
      for (std::uint32_t i = 0; i < 4; ++i)
        ends.push_back(orrery::start_call<&orrery::testing::never_fetch<list>>(orrery::pe(i % 2), l, orders[i], 256U));
      EXPECT_EQ(orrery::call<&find_all>(orrery::pe(1), l), 200);
      for (auto& e : ends) e.get();
      l.end();
    });
  }
}

// With K automatic: processes are slow, and mailboxes small.
TEST(walking_extremes, pass_on_less_at_a_time_when_sends_are_refused) {
  orrery::scheduler::node_settings settings;
  settings.pe.mailbox_bytes = 4 << 10;
  orrery::transport::sim_settings sim;
  sim.machines = 2;
  orrery::testing::in_simulation(sim, settings, [] {
    auto l = list::make({.processes = 2,
                         .granularity = 100,
                         .forwards = orrery::tuning::automatic,
                         .search = std::chrono::nanoseconds(100)});
    std::vector<std::pair<int, int>> items;
    for (int k = 0; k < 400; ++k) items.emplace_back(k, k);
    l.fill(items);
    {
      auto s = l.open({.window = 1024, .order = consistency::total});
      for (int k = 0; k < 4000; ++k) s.start_find(k % 400);
      int found = 0;
      while (const auto r = s.receive()) found += r->done ? 1 : 0;
      EXPECT_EQ(found, 4000);
    }
    const auto head = l.statistics().front();
    EXPECT_GT(head.refused, 0U);
    EXPECT_LT(head.forwards, 64U);
    l.end();
  });
}

TEST(walking_extremes, hold_values_that_grow_to_a_mebibyte) {
  orrery::testing::in_world(2, [] {
    auto l = orrery::walking_list<int, std::string>::make({.processes = 10, .granularity = 3});
    {
      auto s = l.open({.window = 8});
      for (std::size_t size = 1; size <= std::size_t{1} << 20U; size *= 32)
        for (int k = 0; k < 6; ++k) s.insert_or_update(k, std::string(size, static_cast<char>('a' + k)));
      for (int k = 6; k < 12; ++k) EXPECT_TRUE(s.insert(k, "small"));  // splits move the large ones
      EXPECT_EQ(s.size(), 12U);
      for (int k = 0; k < 6; ++k) {
        const auto value = s.find(k);
        ASSERT_TRUE(value);
        EXPECT_EQ(value->size(), std::size_t{1} << 20U);
        EXPECT_EQ(value->back(), 'a' + k);
      }
      EXPECT_EQ(s.snapshot(4, 7).size(), 3U);
    }
    l.end();
  });
}

int erase_and_insert(const list& l) {
  auto s = l.open({.window = 32});
  for (int round = 0; round < 10; ++round)
    for (int k = 1; k < 100; k += 2) {  // odd ones come and go in pairs: k, then k + 100
      if (round % 2 == 0) {
        (void)s.insert(k, round);
        (void)s.insert(k + 100, round);
      } else {
        (void)s.erase(k + 100);
        (void)s.erase(k);
      }
    }
  return 0;
}

// A range that is read while its items come and go never has the later of two without the earlier
// one.
TEST(walking_extremes, erase_under_ranges_that_are_read) {
  orrery::testing::in_simulation("machines=3,jitter=20us,seed=3", [] {
    auto l = list::make({.processes = 60, .granularity = 2, .spares = orrery::spare_order::ring});
    {
      auto s = l.open();
      for (int k = 0; k < 200; k += 2) EXPECT_TRUE(s.insert(k, k));
    }
    auto writer = orrery::start_call<&erase_and_insert>(orrery::pe(1), l);
    {
      auto s = l.open();
      while (!writer.ready()) {
        std::map<int, int> seen;
        auto all = s.stream({}, {}, 16);
        for (auto part = all.next(); !part.empty(); part = all.next()) seen.insert(part.begin(), part.end());
        for (int k = 0; k < 200; k += 2) EXPECT_TRUE(seen.contains(k)) << k;
        for (int k = 1; k < 100; k += 2) EXPECT_TRUE(!seen.contains(k + 100) || seen.contains(k)) << k;
        int last = -1;
        auto scan = s.scan({}, {}, 8);
        for (auto part = scan.next(); !part.empty(); part = scan.next())
          for (const auto& [k, v] : part) EXPECT_GT(k, std::exchange(last, k));
        if (HasFailure()) break;
      }
    }
    writer.get();
    l.end();
  });
}

}  // namespace walking_extremes_tests
