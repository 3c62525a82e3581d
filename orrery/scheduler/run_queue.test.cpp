// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/run_queue.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace {

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

}  // namespace
}  // namespace orrery::scheduler
