// SPDX-License-Identifier: Apache-2.0
// Walking lists that lose a node, and clients that are lost, in simulated worlds of many schedules.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/internal/test_extremes.hpp>
#include <orrery/service/walking_list.hpp>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace walking_loss_tests {

using orrery::consistency;
using list = orrery::walking_list<int, int>;

constexpr consistency levels[] = {consistency::total, consistency::sequential, consistency::per_key,
                                  consistency::unordered, consistency::sequential_of_the_paper};

// Requests until one fails with node_lost; returns how many were answered before.
int use_until_it_is_lost(const list& l, consistency order) {
  auto s = l.open({.window = 16, .order = order});
  int answered = 0;
  bool lost = false;
  for (int i = 0; !lost; ++i) {
    orrery::testing::start_one_of_many(s, i);
    while (const auto r = s.try_receive()) {
      if (r->error != nullptr) {
        EXPECT_THROW(r->check(), orrery::node_lost);
        lost = true;
      } else {
        ++answered;
      }
    }
    if (i % 8 == 0) orrery::sleep_for(std::chrono::microseconds(1));
  }
  while (const auto r = s.receive()) {
    if (r->error != nullptr) {
      EXPECT_THROW(r->check(), orrery::node_lost);
    }
  }
  EXPECT_THROW((void)s.find(1), orrery::node_lost);
  EXPECT_THROW((void)s.snapshot(), orrery::node_lost);
  EXPECT_THROW((void)s.insert(1, 1), orrery::node_lost);
  return answered;
}

TEST(walking_loss, of_a_node_fails_all_requests_with_node_lost) {
  const orrery::testing::leaks_expected of_the_lost_node;
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    const std::string world =
        fmt::format("machines=3,lose={}@{}us,detect=50us,jitter=10us,seed={}", 1 + seed % 2, 300 + 37 * seed, seed);
    orrery::testing::in_simulation(world, [&] {
      auto l = list::make(
          {.processes = 20, .granularity = 1 + seed % 3, .forwards = seed % 4, .spares = orrery::spare_order::ring});
      std::vector<orrery::future<int>> ends;
      for (const consistency order : levels)
        ends.push_back(orrery::start_call<&use_until_it_is_lost>(orrery::pe(0), l, order));
      int answered = 0;
      for (auto& e : ends) answered += e.get();
      EXPECT_GT(answered, 0);
      EXPECT_THROW((void)l.open(), orrery::node_lost);
      EXPECT_THROW((void)l.statistics(), orrery::node_lost);
      l.end();
    });
    if (HasFailure()) break;
  }
}

int end_at_the_first_error(const list& l, int seed) {
  auto s = l.open({.window = 64, .order = levels[seed % 5]});
  for (int i = 0;; ++i) {
    orrery::testing::start_one_of_many(s, i + seed);
    while (const auto r = s.try_receive())
      if (r->error != nullptr) {
        EXPECT_THROW(r->check(), orrery::node_lost);
        return 1;
      }
    if (i % 8 == 0) orrery::sleep_for(std::chrono::microseconds(1));
  }
}

// While a manager waits for room in the mailbox of one gate, others end.
TEST(walking_loss, of_a_node_is_told_to_all_gates_while_sessions_end) {
  const orrery::testing::leaks_expected of_the_lost_node;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    orrery::scheduler::node_settings settings;
    settings.pe.mailbox_bytes = 4 << 10;  // a few dozen messages
    const auto world = orrery::parse_simulation(
        fmt::format("machines=3,lose={}@{}us,detect=50us,jitter=10us,seed={}", 1 + seed % 2, 2000 + 37 * seed, seed));
    orrery::testing::in_simulation(world, settings, [&] {
      auto l = list::make({.processes = 20, .granularity = 2, .spares = orrery::spare_order::ring});
      std::vector<orrery::future<int>> ends;
      for (int i = 0; i < 16; ++i) ends.push_back(orrery::start_call<&end_at_the_first_error>(orrery::pe(0), l, i));
      int ended = 0;
      for (auto& e : ends) ended += e.get();
      EXPECT_EQ(ended, 16);
      l.end();
    });
    if (HasFailure()) break;
  }
}

// Requests that nobody has answered when another process ends the list.
TEST(walking_loss, of_the_whole_list_fails_what_it_has_not_taken_with_process_gone) {
  for (const consistency order : levels)
    for (const std::uint32_t window : {1U, 16U, 64U}) {
      const std::string world = fmt::format("machines=2,jitter=10us,seed={}", window);
      const auto counts = orrery::testing::in_simulation(world, [&] {
        auto l = list::make({.processes = 50, .forwards = window % 3});
        auto s = l.open({.window = window, .order = order});
        for (int k = 0; k < 40; ++k) s.insert(k, k);
        for (int k = 0; k < 100; ++k) s.start_find(k % 50);
        l.end();
        int answered = 0;
        while (const auto reply = s.receive()) {
          ++answered;
          if (reply->error) {
            EXPECT_THROW(reply->check(), orrery::process_gone);
          }
        }
        EXPECT_EQ(answered, 100);
        EXPECT_THROW((void)s.find(1), orrery::process_gone);
      });
      for (const auto& c : counts) EXPECT_EQ(c.failed_posts, 0U);
      if (HasFailure()) return;
    }
}

int use_for_ever(const list& l) {
  auto s = l.open({.window = 16});
  for (int i = 0;; ++i) {
    s.start_insert_or_update(100 + i % 20, i);
    while (s.try_receive()) {
    }
  }
}

TEST(walking_loss, of_a_client_loses_its_requests_only) {
  const orrery::testing::leaks_expected of_the_lost_node;
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    const std::string world =
        fmt::format("machines=3,lose=2@{}us,detect=50us,jitter=10us,seed={}", 300 + 37 * seed, seed);
    orrery::testing::in_simulation(world, [&] {
      auto l = list::make({.pes = {0, 1}, .processes = 40, .forwards = seed % 4});
      {
        auto s = l.open();
        for (int k = 0; k < 20; ++k) EXPECT_TRUE(s.insert(k, k));
        auto lost = orrery::start_call<&use_for_ever>(orrery::pe(2), l);
        EXPECT_THROW((void)lost.get(), orrery::node_lost);
        for (int k = 0; k < 20; ++k) EXPECT_EQ(s.find(k), k);
        for (int k = 100; k < 120; ++k) (void)s.insert_or_update(k, k);
        EXPECT_EQ(s.size(), 40U);
      }
      l.end();
    });
    if (HasFailure()) break;
  }
}

}  // namespace walking_loss_tests
