// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/call_table.hpp>

#include <orrery/wire/error.hpp>

#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace call_table_tests {

TEST(call_table, gives_each_call_a_number_other_than_0) {
  call_table<std::uint32_t, 22> calls;
  sink sinks[100];
  std::set<std::uint32_t> numbers;
  for (sink& s : sinks) numbers.insert(calls.pend(s));
  EXPECT_EQ(numbers.size(), 100u);
  EXPECT_FALSE(numbers.contains(0));
}

TEST(call_table, an_answer_finds_its_sink_once) {
  call_table<std::uint32_t, 22> calls;
  sink one;
  sink two;
  const auto first = calls.pend(one);
  const auto second = calls.pend(two);
  EXPECT_EQ(calls.find(first), &one);
  EXPECT_EQ(calls.take(second), &two);
  EXPECT_EQ(calls.take(second), nullptr);
  EXPECT_EQ(calls.take(first), &one);
}

TEST(call_table, a_late_answer_does_not_find_the_call_that_has_its_place) {
  call_table<std::uint32_t, 22> calls;
  sink old_call;
  sink new_call;
  const auto late = calls.pend(old_call);
  (void)calls.take(late);
  const auto now = calls.pend(new_call);
  EXPECT_NE(now, late);
  EXPECT_EQ(calls.take(late), nullptr);
  EXPECT_EQ(calls.take(now), &new_call);
}

TEST(call_table, numbers_stay_good_when_generations_begin_anew) {
  call_table<std::uint32_t, 30> calls;  // two bits are left for generations
  sink s;
  for (int i = 0; i < 20; ++i) {
    const auto number = calls.pend(s);
    EXPECT_NE(number >> 30, 0u);
    EXPECT_EQ(calls.take(number), &s);
    EXPECT_EQ(calls.find(number), nullptr);
  }
}

TEST(call_table, numbers_that_were_never_given_find_nothing) {
  call_table<std::uint32_t, 22> calls;
  sink s;
  const auto number = calls.pend(s);
  EXPECT_EQ(calls.find(0), nullptr);
  EXPECT_EQ(calls.find(number & calls.most), nullptr);
  EXPECT_EQ(calls.find(number + 1), nullptr);
  EXPECT_EQ(calls.find(~std::uint32_t{0}), nullptr);
}

TEST(call_table, ends_the_calls_that_something_has_made_void) {
  call_table<std::uint64_t, 32, std::uint32_t> calls;
  sink sinks[6];
  std::vector<std::uint64_t> numbers;
  for (std::uint32_t i = 0; i < 6; ++i) numbers.push_back(calls.pend(sinks[i], i % 2));
  std::vector<sink*> ended;
  calls.take_if([](const sink&, std::uint32_t note) { return note == 1; },
                [&](sink& s, std::uint32_t) { ended.push_back(&s); });
  EXPECT_EQ(ended, (std::vector<sink*>{&sinks[1], &sinks[3], &sinks[5]}));
  EXPECT_EQ(calls.find(numbers[0]), &sinks[0]);
  EXPECT_EQ(calls.find(numbers[1]), nullptr);
}

TEST(call_table, a_call_that_ends_may_make_others) {
  call_table<std::uint64_t, 32, std::uint32_t> calls;
  sink first;
  sink more[50];
  (void)calls.pend(first, 7);
  std::vector<std::uint64_t> numbers;
  calls.take_if([](const sink&, std::uint32_t note) { return note == 7; },
                [&](sink&, std::uint32_t) {
                  for (sink& s : more) numbers.push_back(calls.pend(s, 8));
                });
  ASSERT_EQ(numbers.size(), 50u);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(calls.take(numbers[static_cast<std::size_t>(i)]), &more[i]);
}

TEST(call_table, refuses_more_calls_than_there_are_numbers) {
  call_table<std::uint32_t, 2> calls;
  sink sinks[4];
  for (int i = 0; i < 3; ++i) (void)calls.pend(sinks[i]);
  EXPECT_THROW((void)calls.pend(sinks[3]), world_error);
}

}  // namespace call_table_tests
}  // namespace orrery::scheduler
