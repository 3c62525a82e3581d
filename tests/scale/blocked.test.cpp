// SPDX-License-Identifier: Apache-2.0
// Very many process functions that wait in receive: each has a stack of its own.
#include "memory.hpp"

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

using testing::in_world;
using testing::page_table_bytes;
using testing::resident_bytes;
using testing::slowed_down;

void answer_once(remote<function> to) { send(to, receive<std::uint64_t>() + 1); }

/// Makes that many on this PE, and returns when all wait.
std::vector<remote<function>> make(std::size_t count, remote<function> to) {
  std::vector<remote<function>> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(spawn(here(), answer_once, to));
  yield();  // behind all that were queued: each has run as far as it can
  return all;
}

/// As many as there are to be, or half of what the machine has memory for.
std::size_t how_many(std::size_t wanted) {
  return slowed_down ? std::min<std::size_t>(wanted, 2'000) : std::min(wanted, testing::available_bytes() / 2 / 5'000);
}

/// Sends to each and adds up the answers.
void wake_all(const std::vector<remote<function>>& all) {
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    send(all[i], i);
    expected += i + 1;
  }
  for (std::size_t i = 0; i < all.size(); ++i) expected -= receive<std::uint64_t>();
  EXPECT_EQ(expected, 0U);
}

TEST(blocked_functions, cost_at_most_4700_bytes_each_and_answer_when_a_message_comes) {
  const std::size_t count = how_many(1'000'000);
  const auto counts = in_world(1, [count] {
    const std::size_t before = resident_bytes();
    const std::size_t tables = page_table_bytes();
    const auto all = make(count, this_process<function>());
    const std::size_t each = (resident_bytes() - before) / count;
    RecordProperty("bytes_of_a_blocked_function", static_cast<int>(each));
    RecordProperty("bytes_of_its_page_tables", static_cast<int>((page_table_bytes() - tables) / count));
    EXPECT_TRUE(slowed_down || each <= 4'700) << each << " bytes each";
    EXPECT_LT(testing::mappings(), 65'530U) << "the kernel's default limit";
    wake_all(all);
  });
  // Most of the answers find the receiver's mailbox full. Who waits for room is woken when there is some, not all at each time.
  EXPECT_LE(counts[0].parks, 5 * count);
}

TEST(blocked_functions, give_their_stacks_back_when_they_have_ended) {
  const std::size_t count = how_many(100'000);
  in_world(1, [count] {
    std::size_t after_first = 0;
    for (int round = 0; round < 5; ++round) {
      wake_all(make(count, this_process<function>()));
      yield();
      if (round == 0) after_first = resident_bytes();
    }
    EXPECT_TRUE(slowed_down || resident_bytes() <= after_first + after_first / 10)
        << after_first << " bytes, then " << resident_bytes();
  });
}

TEST(blocked_functions, wait_on_all_pes_and_are_unwound_at_the_end) {
  const std::size_t count = how_many(100'000);
  in_world(2, [count] {
    const auto me = this_process<function>();
    auto far = start_call<&make>(pe(1), count, me);
    const auto near = make(count, me);
    wake_all(far.get());
    EXPECT_EQ(near.size(), count);  // these are never sent anything
  });
}

}  // namespace
}  // namespace orrery
