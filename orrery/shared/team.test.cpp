// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/shared.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace team_tests {

using orrery::spmd;
using orrery::team;
using orrery::team_member;
using orrery::testing::in_simulation;
using orrery::testing::in_world;

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const orrery::usage_error& e) {
    return e.what();
  }
  return "no usage_error";
}
void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

// The text at this member, where the first one calls something else than the others.
std::string mistake(team_member& t, int n) {
  const bool one = t.rank() == 0;
  return text_of([&] {
    switch (n) {
      case 0:
        one ? (void)t.all_reduce(1) : (void)t.all_reduce(1.0F);
        break;
      case 1:
        one ? (void)t.all_reduce(5L) : (void)t.all_reduce(5L, std::multiplies<>{});
        break;
      case 2:
        one ? (void)t.all_gather(5) : (void)t.all_gather(std::string("5"));
        break;
      case 3:
        (void)t.broadcast(5, one ? 0 : 1);
        break;
      case 4:
        one ? (void)t.scan(5) : (void)t.all_gather(5);
        break;
      case 5:
        one ? (void)t.all_to_all(std::vector<int>(t.size())) : (void)t.all_to_all(std::vector<std::string>(t.size()));
        break;
      case 6:
        (void)t.broadcast(std::string("x"), 7);
        break;
      default:
        one ? t.barrier() : (void)t.all_reduce(5);
    }
  });
}

TEST(team, collectives_that_differ_name_both_at_all_members) {
  const std::vector<std::vector<std::string>> parts{
      {"all_reduce of int with std::plus<void>", "all_reduce of float with std::plus<void>"},
      {"all_reduce of long with std::plus<void>", "all_reduce of long with std::multiplies<void>"},
      {"all_gather of int", "all_gather of std::"},
      {"broadcast of int from root 0", "broadcast of int from root 1"},
      {"scan of int", "all_gather of int"},
      {"all_to_all of int", "all_to_all of std::"},
      {"broadcast from root 7", "3 members"},
      {"barrier", "all_reduce of orrery::team_value"}};
  const auto all = [&] {
    for (std::size_t n = 0; n < parts.size(); ++n)
      for (const std::string& text : spmd<&mistake>(team(), static_cast<int>(n))) expect_parts(text, parts[n]);
  };
  in_world(3, all);
  in_simulation("machines=3,jitter=5us,seed=2", all);
}

/// Each counts itself, and after the barrier sees that all have.
std::uint64_t meet_often(team_member& t, orrery::shared_vector<std::uint64_t> counts) {
  std::uint64_t wrong = 0;
  for (std::uint64_t round = 0; round < counts.size(); ++round) {
    counts[round] += 1;
    t.barrier();
    wrong += counts[round] == t.size() ? 0 : 1;
  }
  return wrong;
}
TEST(team, two_thousand_members_of_one_pe_meet_in_barriers) {
  const auto all = [] {
    const std::size_t members = orrery::testing::slowed_down ? 300 : 2000;
    const orrery::shared_vector<std::uint64_t> counts(4, orrery::distribution::on(orrery::pe(1)));
    for (const std::uint64_t wrong : spmd<&meet_often>(team(orrery::pe(1), members), counts)) EXPECT_EQ(wrong, 0U);
  };
  in_world(2, all);
  in_simulation("machines=2,jitter=3us,seed=5", all);
}

/// A member that has the cache writes to an element of another one; no cache may have that.
bool sees_what_was_there(team_member& t, orrery::shared_vector<long> v) {
  bool good = true;
  with(read_cache(v, t), [&](auto& view) {
    for (std::uint64_t k = 0; k < v.size(); ++k) good = good && view[k] == 7;
  });
  v[(t.rank() + 1) % t.size()] = 100;
  return good;
}
TEST(team, a_cache_of_all_has_nothing_that_was_written_behind_it) {
  for (const std::string_view world : {"machines=3", "nodes=3", "pes=3", "machines=2,nodes=2,carriers=on"})
    for (int seed = 1; seed <= 20; ++seed)
      in_simulation(std::string(world) + ",jitter=5us,seed=" + std::to_string(seed), [] {
        const team all;
        const orrery::shared_vector<long> v(all.size(), orrery::distribution::block(), 7L);
        for (const bool good : spmd<&sees_what_was_there>(all, v)) EXPECT_TRUE(good);
      });
}

/// The member of the lost machine never comes to the barrier; the others say how theirs ended.
void wait_for_lost(team_member& t, orrery::shared_vector<int> ended) {
  if (t.rank() == 1) orrery::wait_until([] { return false; });
  try {
    t.barrier();
    ended[t.rank()] = 1;
  } catch (const orrery::node_lost&) {
    ended[t.rank()] = 2;
    throw;
  }
}
TEST(team, a_barrier_ends_with_node_lost_when_the_node_of_a_member_is) {
  const orrery::testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const orrery::shared_vector<int> ended(3, orrery::distribution::on(orrery::pe(0)));
    EXPECT_THROW(spmd<&wait_for_lost>(team(), ended), orrery::node_lost);
    EXPECT_EQ(ended[0], 2);
    EXPECT_EQ(ended[2], 2);
    EXPECT_EQ(ended[1], 0);
  });
}

// Others send to a member that ends first.
void end_before_exchange(team_member& t) {
  if (t.rank() == 1) throw std::domain_error("rank 1 has failed");
  (void)t.all_to_all(std::vector<int>(t.size()));
}
void end_before_gather(team_member& t, orrery::shared_vector<long> v) {
  if (t.rank() == 1) throw std::domain_error("rank 1 has failed");
  with(read_cache(v, t), [](auto&) {});
}
bool keeps_nothing() {
  const auto& kept = orrery::detail::shared_directory::of_this_pe().gathers;
  return kept.of.empty() && kept.given.empty();
}
void expect_nothing_kept() {
  for (std::uint32_t p = 0; p < orrery::world_pes(); ++p) {
    bool nothing = false;  // what was posted may be on its way
    for (int i = 0; i < 1000 && !nothing; ++i) {
      nothing = orrery::call<&keeps_nothing>(orrery::pe(p));
      if (!nothing) orrery::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_TRUE(nothing) << "on PE " << p;
  }
}
void end_early() {
  const orrery::shared_vector<long> v(12);
  const team all(orrery::everywhere(), 6);
  for (int i = 0; i < 5; ++i) {
    EXPECT_THROW(spmd<&end_before_exchange>(all), std::domain_error);
    EXPECT_THROW(spmd<&end_before_gather>(all, v), std::domain_error);
  }
  expect_nothing_kept();
}
TEST(team, values_for_a_member_that_has_ended_end_with_it) {
  in_world(3, end_early);
  for (int seed = 0; seed < 5; ++seed) in_simulation("machines=3,jitter=5us,seed=" + std::to_string(seed), end_early);
}

}  // namespace team_tests
