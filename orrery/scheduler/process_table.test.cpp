// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/process_table.hpp>

#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace process_table_tests {

constexpr std::uint32_t few = 1024;

slot& take(process_table& t) {
  slot* const s = t.take_free();
  return s != nullptr ? *s : t.take_new();
}

TEST(process_table, finds_a_process_by_its_address) {
  process_table t(3, few, false);
  slot& s = take(t);
  const address a = t.address_of(s);
  EXPECT_EQ(a.pe, 3u);
  EXPECT_EQ(t.find(a.slot, a.generation), &s);
  EXPECT_EQ(s.state, process_state::running);
}

TEST(process_table, finds_nothing_where_no_process_was) {
  process_table t(0, few, false);
  const address a = t.address_of(take(t));
  EXPECT_EQ(t.find(a.slot + 1, 1), nullptr);
  EXPECT_EQ(t.find(a.slot, a.generation + 1), nullptr);
  EXPECT_EQ(t.find(wire::no_slot, 1), nullptr);
}

TEST(process_table, an_address_of_an_ended_process_finds_nothing) {
  process_table t(0, few, false);
  slot& s = take(t);
  const address before = t.address_of(s);
  t.close(s);
  EXPECT_EQ(t.find(before.slot, before.generation), nullptr);
  t.give_back(s);
  slot& again = take(t);
  EXPECT_EQ(&again, &s);
  EXPECT_EQ(t.find(before.slot, before.generation), nullptr);
  EXPECT_EQ(t.find(before.slot, again.generation), &again);
}

TEST(process_table, a_generation_is_never_0) {
  process_table t(0, few, false);
  slot& s = take(t);
  s.generation = ~std::uint32_t{0};
  t.close(s);
  EXPECT_EQ(s.generation, 1u);
}

TEST(process_table, uses_the_slot_first_that_was_freed_last) {
  process_table t(0, few, false);
  std::vector<slot*> all;
  for (int i = 0; i < 3; ++i) all.push_back(&take(t));
  for (slot* s : all) {
    t.close(*s);
    t.give_back(*s);
  }
  EXPECT_EQ(&take(t), all[2]);
  EXPECT_EQ(&take(t), all[1]);
  EXPECT_EQ(&take(t), all[0]);
  EXPECT_EQ(&take(t), all[2] + 1);
}

TEST(process_table, nothing_of_a_process_is_left_for_the_next_one) {
  process_table t(0, few, false);
  slot& s = take(t);
  s.dying = s.suspected = s.is_function = true;
  s.depth = 2;
  s.class_number = 9;
  s.charge = 5;
  t.close(s);
  t.give_back(s);
  const slot& next = take(t);
  ASSERT_EQ(&next, &s);
  EXPECT_FALSE(next.dying || next.suspected || next.is_function || next.has_object);
  EXPECT_EQ(next.depth, 0u);
  EXPECT_EQ(next.class_number, 0u);
  EXPECT_EQ(next.charge, 0u);
}

TEST(process_table, says_when_it_is_full) {
  process_table t(0, few, false);
  for (std::uint32_t i = 0; i < few; ++i) (void)take(t);
  EXPECT_EQ(t.used(), t.capacity());
  EXPECT_THROW((void)take(t), std::bad_alloc);
  EXPECT_EQ(t.all().size(), few);
}

}  // namespace process_table_tests
}  // namespace orrery::scheduler
