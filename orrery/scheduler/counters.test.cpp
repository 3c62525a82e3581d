// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/counters.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <set>
#include <string_view>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace counters_tests {

constexpr std::int64_t ms = 1'000'000;

pe_counters seen(const counter_publisher& p, std::int64_t now_ns) {
  std::array<std::uint64_t, published_words> words{};
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = p.words()[i].load();
  return decode_counters(words, now_ns);
}

TEST(counters, each_has_a_name_and_a_meaning_of_its_own) {
  std::set<std::string_view> names;
  std::set<std::string_view> meanings;
  for (const counter_info& c : counter_table()) {
    EXPECT_TRUE(names.insert(c.name).second) << c.name;
    EXPECT_TRUE(meanings.insert(c.meaning).second) << c.name;
    EXPECT_FALSE(c.meaning.ends_with('.')) << c.name;
  }
}

TEST(counters, no_member_is_listed_twice) {
  counters c;
  for (const counter_info& i : counter_table()) ++(c.*i.value);
  for (const counter_info& i : counter_table()) EXPECT_EQ(c.*i.value, 1u) << i.name;
}

TEST(counters, what_is_published_is_what_others_see) {
  counter_publisher p(nullptr);
  counters c;
  std::uint64_t n = 100;
  for (const counter_info& i : counter_table()) c.*i.value = n++;
  p.publish(c, 5 * ms);
  const pe_counters s = seen(p, 6 * ms);
  for (const counter_info& i : counter_table()) EXPECT_EQ(s.*i.value, c.*i.value) << i.name;
  EXPECT_EQ(s.at_ns, 5 * ms);
  EXPECT_FALSE(s.asleep);
}

TEST(counters, they_are_published_into_the_words_that_are_given) {
  std::array<std::atomic<std::uint64_t>, published_words> words{};
  counter_publisher p(words.data());
  counters c;
  c.executed = 7;
  p.publish(c, ms);
  EXPECT_EQ(p.words().data(), words.data());
  EXPECT_EQ(seen(p, ms).executed, 7u);
}

TEST(counters, of_a_pe_that_has_not_run_yet_all_are_0) {
  const counter_publisher p(nullptr);
  const pe_counters s = seen(p, 5 * ms);
  EXPECT_EQ(s.at_ns, 0);
  EXPECT_EQ(s.executed, 0u);
  EXPECT_FALSE(s.asleep);
}

TEST(counters, a_working_pe_publishes_sooner_or_later) {
  counter_publisher p(nullptr);
  counters c;
  c.executed = 1;
  p.poll(c);
  EXPECT_EQ(seen(p, 0).executed, 1u);
  for (c.executed = 2; seen(p, 0).executed == 1; ++c.executed) p.poll(c);
  EXPECT_GT(seen(p, 0).executed, 1u);
}

TEST(counters, the_idle_time_of_a_sleeping_pe_goes_on) {
  counter_publisher p(nullptr);
  counters c;
  c.idle_ns = 3 * ms;
  p.sleeping(c, 10 * ms);
  EXPECT_TRUE(seen(p, 12 * ms).asleep);
  EXPECT_EQ(seen(p, 12 * ms).idle_ns, 5u * ms);
  EXPECT_EQ(seen(p, 50 * ms).idle_ns, 43u * ms);
}

TEST(counters, a_pe_that_wakes_up_shows_the_idle_time_it_has_counted) {
  counter_publisher p(nullptr);
  counters c;
  p.sleeping(c, 10 * ms);
  c.idle_ns = 8 * ms;
  p.awake(c, 18 * ms);
  EXPECT_FALSE(seen(p, 30 * ms).asleep);
  EXPECT_EQ(seen(p, 30 * ms).idle_ns, 8u * ms);
}

TEST(counters, a_pe_that_is_often_idle_publishes_once_a_millisecond) {
  counter_publisher p(nullptr);
  counters c;
  p.publish(c, 10 * ms);
  c.executed = 1;
  p.awake(c, 10 * ms + 1);
  EXPECT_EQ(seen(p, 11 * ms).executed, 0u);
  p.awake(c, 11 * ms);
  EXPECT_EQ(seen(p, 11 * ms).executed, 1u);
}

TEST(counters, no_idle_time_is_made_up_when_clocks_disagree) {
  counter_publisher p(nullptr);
  counters c;
  c.idle_ns = 5;
  p.sleeping(c, 10 * ms);
  EXPECT_EQ(seen(p, 9 * ms).idle_ns, 5u);
}

}  // namespace counters_tests
}  // namespace orrery::scheduler
