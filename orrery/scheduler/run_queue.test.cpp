// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/run_queue.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace run_queue_tests {

TEST(run_queue, a_new_one_is_empty) {
  const run_queue q;
  EXPECT_TRUE(q.empty());
  EXPECT_EQ(q.size(), 0U);
}

TEST(run_queue, knows_what_each_entry_is) {
  run_queue q;
  slot a{};
  fiber b;
  sink c;
  q.push(a);
  q.push(b);
  q.push(c);
  run_queue::entry e = q.pop();
  EXPECT_TRUE(e.is_slot());
  EXPECT_EQ(e.as_slot(), &a);
  e = q.pop();
  EXPECT_FALSE(e.is_slot());
  EXPECT_TRUE(e.is_fiber());
  EXPECT_EQ(e.as_fiber(), &b);
  e = q.pop();
  EXPECT_FALSE(e.is_slot());
  EXPECT_FALSE(e.is_fiber());
  EXPECT_EQ(e.as_sink(), &c);
  EXPECT_TRUE(q.empty());
}

RC_GTEST_PROP(run_queue, gives_what_is_next_before_all_others, (std::uint8_t waiting, std::uint8_t recent)) {
  run_queue q;
  std::vector<slot> slots(std::size_t{waiting} + recent);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (i < waiting) {
      q.push(slots[i]);
    } else {
      q.push_recent(slots[i]);
    }
  }
  for (std::size_t left = slots.size();; --left) {
    sink next;
    q.push_next(next);
    RC_ASSERT(q.size() == left + 1);
    RC_ASSERT(q.pop().as_sink() == &next);
    if (left == 0) break;
    RC_ASSERT(q.pop().is_slot());
  }
}

TEST(run_queue, lets_a_sink_stand_in_the_place_of_a_process) {
  run_queue q;
  slot a{};
  slot b{};
  slot c{};
  sink place;
  q.push(a);
  q.push(b);
  q.push_recent(c);
  EXPECT_TRUE(q.replace(b, place));
  EXPECT_FALSE(q.replace(b, place));
  EXPECT_EQ(q.pop().as_slot(), &c);
  EXPECT_EQ(q.pop().as_slot(), &a);
  EXPECT_EQ(q.pop().as_sink(), &place);
  EXPECT_TRUE(q.empty());
}

RC_GTEST_PROP(run_queue, gives_what_came_first_whatever_its_size, (std::vector<std::int16_t> turns)) {
  run_queue q;
  std::deque<std::uintptr_t> model;
  std::uintptr_t next = 64;
  const auto pop = [&] {
    RC_ASSERT(q.front().bits == model.front());
    RC_ASSERT(q.pop().bits == model.front());
    model.pop_front();
  };
  for (const auto turn : turns) {  // so many are pushed, or popped
    for (int i = 0; i < turn % 300; ++i, next += 64) {
      q.push(*reinterpret_cast<slot*>(next));
      model.push_back(next);
    }
    for (int i = 0; i < -turn % 300 && !model.empty(); ++i) pop();
    RC_ASSERT(q.size() == model.size());
    RC_ASSERT(q.empty() == model.empty());
  }
  while (!model.empty()) pop();
  RC_ASSERT(q.empty());
}

slot& numbered(std::uintptr_t n) { return *reinterpret_cast<slot*>((n + 1) * 64); }
std::uintptr_t number_of(run_queue::entry e) { return e.bits / 64 - 1; }

TEST(run_queue, who_gets_a_message_from_here_goes_first_the_newest_of_them_before) {
  run_queue q;
  q.push(numbered(0));
  q.push_recent(numbered(1));
  q.push(numbered(2));
  q.push_recent(numbered(3));
  for (std::size_t n = 0; const std::uintptr_t expected : {3U, 1U, 0U, 2U})
    EXPECT_EQ(number_of(q.ahead(n++)), expected);
  for (const std::uintptr_t expected : {3U, 1U, 0U, 2U}) EXPECT_EQ(number_of(q.pop()), expected);
  EXPECT_TRUE(q.empty());
}

// Two that give each other messages for ever hold nobody up: neither those that wait nor those that
// were recent before them.
TEST(run_queue, nobody_waits_for_ever) {
  run_queue q;
  constexpr std::uintptr_t waiting = 20;
  constexpr std::uintptr_t recent = 30;
  for (std::uintptr_t n = 0; n < waiting; ++n) q.push(numbered(n));
  for (std::uintptr_t n = 0; n < recent; ++n) q.push_recent(numbered(waiting + n));
  std::vector<std::size_t> when(waiting + recent);
  std::size_t seen = 0;
  std::size_t pops = 0;
  for (std::uintptr_t next = 1000; seen < when.size() && pops < 1'000'000; ++next) {
    q.push_recent(numbered(next));
    const std::uintptr_t n = number_of(q.pop());
    ++pops;
    if (n >= when.size()) continue;
    when[n] = pops;
    ++seen;
  }
  ASSERT_EQ(seen, when.size());
  for (std::uintptr_t n = 0; n < waiting; ++n) EXPECT_LE(when[n], (n + 1) * (run_queue::waiting_every + 1));
  for (std::uintptr_t n = 0; n < recent; ++n)
    EXPECT_LE(when[waiting + n], (n + 1) * (run_queue::oldest_every + 1) + waiting);
}

// Messages from elsewhere without an end, either: those of this PE have most of the turns.
TEST(run_queue, who_waits_does_not_hold_up_the_recent_ones) {
  run_queue q;
  constexpr std::uintptr_t recent = 30;
  for (std::uintptr_t n = 0; n < recent; ++n) q.push_recent(numbered(n));
  std::size_t pops = 0;
  for (std::uintptr_t seen = 0; seen < recent; ++pops) {
    q.push(numbered(1000 + pops));
    if (number_of(q.pop()) < recent) ++seen;
  }
  EXPECT_LE(pops, recent + recent / run_queue::waiting_every + 1);
}

RC_GTEST_PROP(run_queue, gives_each_once_and_no_waiting_one_before_another_that_waited_longer,
              (std::vector<std::int16_t> turns)) {
  run_queue q;
  std::deque<std::uintptr_t> waiting;  // those that were never recent
  std::set<std::uintptr_t> inside;
  std::uintptr_t next = 0;
  const auto pop = [&] {
    const auto foretold = number_of(q.front());
    const auto n = number_of(q.pop());
    RC_ASSERT(n == foretold);
    RC_ASSERT(inside.erase(n) == 1);
    if (const auto at = std::ranges::find(waiting, n); at != waiting.end()) {
      RC_ASSERT(at == waiting.begin());
      waiting.pop_front();
    }
  };
  for (const auto turn : turns) {
    for (int i = 0; i < turn % 400; ++i, ++next) {
      if (turn % 3 == 0) {
        q.push(numbered(next));
        waiting.push_back(next);
      } else {
        q.push_recent(numbered(next));
      }
      inside.insert(next);
    }
    for (int i = 0; i < -turn % 400 && !q.empty(); ++i) pop();
    RC_ASSERT(q.size() == inside.size());
  }
  while (!q.empty()) pop();
  RC_ASSERT(inside.empty());
}

}  // namespace run_queue_tests
}  // namespace orrery::scheduler
