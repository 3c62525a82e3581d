// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace read_mostly_tests {

using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where there are replicas.
class read_mostly_data : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(read_mostly_data);

TEST_P(read_mostly_data, a_scalar_is_read_written_and_changed) {
  in_each([] {
    const shared<long> s(5, pe(1));
    with(read_mostly(s), [](auto& m) {
      EXPECT_EQ(m, 5);
      m = 8;
      EXPECT_EQ(m, 8);
      EXPECT_EQ(m.fetch_min(3), 8);
      EXPECT_EQ(m.fetch_add(4), 3);
      EXPECT_EQ(m.fetch_max(2), 7);
      EXPECT_EQ(m.exchange(9), 7);
      long expected = 1;
      EXPECT_FALSE(m.compare_exchange(expected, 2));
      EXPECT_EQ(expected, 9);
      EXPECT_TRUE(m.compare_exchange(expected, 2));
      EXPECT_EQ(m, 2);
    });
    EXPECT_EQ(s, 2);
  });
}

struct wide_value {
  std::array<std::uint32_t, 9> words{};
  friend bool operator==(const wide_value&, const wide_value&) = default;
};
TEST_P(read_mostly_data, vectors_of_any_distribution_and_element) {
  in_each([] {
    for (const distribution& d : {distribution::block(), distribution::cyclic(), distribution::bounds({0, 9, 11})}) {
      const shared_vector<wide_value> v(11, d);
      for (std::uint64_t i = 0; i < v.size(); ++i) v[i] = wide_value{{static_cast<std::uint32_t>(i), 7}};
      with(read_mostly(v), [&](auto& m) {
        EXPECT_EQ(m.size(), 11U);
        for (std::uint32_t i = 0; i < v.size(); ++i) EXPECT_EQ(m[i].get(), (wide_value{{i, 7}}));
        m[10] = wide_value{{1, 2, 3}};
        m[0] = m[10];
        EXPECT_EQ(m[0].get(), (wide_value{{1, 2, 3}}));
      });
      EXPECT_EQ(v[0].get(), (wide_value{{1, 2, 3}}));
      destroy(v);
    }
  });
}

// A vector that takes several pieces to fetch.
TEST_P(read_mostly_data, large_vectors_are_fetched_in_pieces) {
  in_each([] {
    const shared_vector<long> v(200'000, distribution::bounds({150'000, 150'001, 200'000}));
    for (const std::uint64_t i : {0U, 77'777U, 149'999U, 150'000U, 199'999U}) v[i] = static_cast<long>(i) + 1;
    with(read_mostly(v), [](auto& m) {
      for (const std::uint64_t i : {0U, 77'777U, 149'999U, 150'000U, 199'999U})
        EXPECT_EQ(m[i], static_cast<long>(i) + 1);
      EXPECT_EQ(m[5], 0);
    });
    const shared_vector<long> none(0);
    with(read_mostly(none), [](auto& m) { EXPECT_EQ(m.size(), 0U); });
  });
}

TEST_P(read_mostly_data, an_index_that_is_outside_is_an_error) {
  in_each([] {
    const shared_vector<int> v(4);
    with(read_mostly(v), [](auto& m) {
      EXPECT_NE(what_is_thrown<std::out_of_range>([&] { (void)m[4].get(); }).find("index 4"), std::string::npos);
      EXPECT_THROW(m[5] = 1, std::out_of_range);
    });
  });
}

TEST_P(read_mostly_data, a_view_excludes_its_scopes) {
  in_each([] {
    const shared_vector<int> v(6, distribution::on(here()));
    with(read_view(v), [&](auto&) { EXPECT_THROW(with(read_mostly(v), [](auto&) {}), usage_error); });
    with(read_mostly(v), [&](auto&) { EXPECT_THROW(with(read_view(v), [](auto&) {}), usage_error); });
    with(read_view(v), [](auto&) {});
  });
}

// All write; what one has written, all read, when it has told them that it has.
std::string write_in_turns(team_member& t, shared_vector<long> v) {
  std::string wrong;
  with(read_mostly(v), [&](auto& m) {
    for (long round = 1; round <= 5; ++round) {
      for (std::uint64_t i = t.rank(); i < v.size(); i += t.size()) m[i] = round * 100 + static_cast<long>(i);
      t.barrier();
      for (std::uint64_t i = 0; i < v.size(); ++i)
        if (m[i] != round * 100 + static_cast<long>(i))
          wrong += fmt::format("round {}: [{}] is {}\n", round, i, m[i].get());
      t.barrier();
    }
  });
  return wrong;
}
TEST_P(read_mostly_data, a_write_is_at_all_replicas_when_it_returns) {
  in_each([] {
    const shared_vector<long> v(10, distribution::cyclic());
    for (const std::string& wrong : spmd<&write_in_turns>(team(everywhere(), 5), v)) EXPECT_EQ(wrong, "");
    EXPECT_EQ(v[9], 509);
  });
}

// Elements that only grow are never seen to fall, whoever writes, and while scopes open and end.
// Each process adds what the model says; nothing is lost.
std::string add_at_random(team_member& t, shared_vector<long> v, std::uint64_t seed) {
  std::mt19937_64 r(seed * 1000 + t.rank());
  std::vector<long> seen(v.size());
  std::string wrong;
  for (int scope = 0; scope < 4; ++scope) {
    with(read_mostly(v), [&](auto& m) {
      for (int step = 0; step < 6; ++step) {
        const std::uint64_t i = r() % v.size();
        switch (r() % 4) {
          case 0:
            m[i].fetch_add(1);
            break;
          case 1: {
            long old = m[i];
            while (!m[i].compare_exchange(old, old + 1)) {
            }
            break;
          }
          case 2:
            m[i] += 1;
            break;
          default:
            m[i].fetch_add(1);
            if (r() % 2 == 0) yield();
            break;
        }
        for (std::uint64_t k = 0; k < v.size(); ++k) {
          const long now = m[k];
          if (now < seen[k]) wrong += fmt::format("member {}: [{}] fell from {} to {}\n", t.rank(), k, seen[k], now);
          seen[k] = now;
        }
      }
    });
  }
  t.barrier();
  long sum = 0;
  with(read_mostly(v), [&](auto& m) {
    for (std::uint64_t k = 0; k < v.size(); ++k) sum += m[k];
    t.barrier();
  });
  const auto expected = static_cast<long>(t.size()) * 4 * 6;
  if (sum != expected) wrong += fmt::format("member {}: {} of {} additions\n", t.rank(), sum, expected);
  return wrong;
}

class simulated_read_mostly : public ::testing::TestWithParam<std::uint64_t> {};
TEST_P(simulated_read_mostly, replicas_agree_under_random_schedules) {
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t seed = GetParam() * 40 + i;
    in_simulation(
        fmt::format("machines={},pes={},jitter={}us,seed={}", 2 + seed % 4, 1 + seed % 2, 1 + seed % 30, seed), [&] {
          const std::vector<distribution> ways{distribution::block(), distribution::cyclic(), distribution::on(pe(1))};
          const shared_vector<long> v(1 + seed % 7, ways[seed % 3]);
          const team t(everywhere(), world_pes() + seed % 3);
          for (const std::string& wrong : spmd<&add_at_random>(t, v, seed)) EXPECT_EQ(wrong, "") << seed;
          destroy(v);
        });
  }
}
INSTANTIATE_TEST_SUITE_P(schedules, simulated_read_mostly, ::testing::Range<std::uint64_t>(0, 5));

TEST(read_mostly_threads, replicas_agree) {
  const std::uint64_t seed = testing::test_seed();
  for (std::uint64_t i = 0; i < 5; ++i)
    in_world(2, [&] {
      // Elements that do not lie in order have replicas on threads, too.
      const shared_vector<long> v(5, i % 2 == 0 ? distribution::block() : distribution::cyclic());
      for (const std::string& wrong : spmd<&add_at_random>(team(everywhere(), 4), v, seed + i)) EXPECT_EQ(wrong, "");
    });
}

TEST(read_mostly_loss, writers_go_on_without_a_lost_reader) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const shared<int> s(1, pe(0));
    post_call<+[](shared<int> of) { with(read_mostly(of), [](auto&) { sleep_for(std::chrono::seconds(1)); }); }>(pe(1),
                                                                                                                 s);
    sleep_for(std::chrono::milliseconds(5));
    with(read_mostly(s), [](auto& m) {
      m = 2;
      EXPECT_EQ(m, 2);
    });
    const shared<int> there(1, pe(2));
    with(read_mostly(there), [](auto& m) { m = 4; });
    EXPECT_EQ(there, 4);
  });
}

TEST(read_mostly_loss, what_a_lost_owner_had_stays_readable_in_a_scope) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const shared<int> s(3, pe(1));
    with(read_mostly(s), [](auto& m) {
      sleep_for(std::chrono::milliseconds(5));
      EXPECT_EQ(m, 3);
      EXPECT_THROW(m = 4, node_lost);
    });
    EXPECT_THROW(with(read_mostly(s), [](auto&) {}), node_lost);
  });
}

}  // namespace read_mostly_tests
}  // namespace orrery
