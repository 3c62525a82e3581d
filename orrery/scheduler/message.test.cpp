// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/message.hpp>
#include <orrery/scheduler/slot.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace message_tests {

TEST(message_pool, gives_aligned_messages_with_room_for_their_payload) {
  message_pool pool;
  for (std::size_t payload = 0; payload < 3000; payload += 7) {
    message* m = pool.allocate(payload);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(m->payload()) % payload_alignment, 0U);
    EXPECT_GE(m->bytes, payload + sizeof(message));
    std::memset(m->payload(), 0x5a, payload);
    pool.release(m);
  }
}

TEST(message_pool, wastes_less_than_half_of_a_message) {
  message_pool pool;
  for (std::size_t payload = 0; payload < 5000; ++payload) {
    message* m = pool.allocate(payload);
    EXPECT_LE(m->bytes, std::max<std::size_t>(64, 2 * (payload + sizeof(message))));
    pool.release(m);
  }
}

TEST(message_pool, gives_again_what_came_back_last) {
  message_pool pool;
  message* a = pool.allocate(100);
  message* b = pool.allocate(100);
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.allocate(90), b);
  EXPECT_EQ(pool.allocate(110), a);
  pool.release(a);
  pool.release(b);
}

TEST(message_pool, needs_no_more_memory_for_what_was_there_before) {
  message_pool pool;
  std::set<const message*> first;
  for (int round = 0; round < 3; ++round) {
    std::vector<message*> all;
    for (int i = 0; i < 5000; ++i) all.push_back(pool.allocate(200));
    for (message* m : all) {
      if (round == 0) {
        first.insert(m);
      } else {
        EXPECT_TRUE(first.contains(m) || round == 1);  // a slab is more than was asked for
      }
      pool.release(m);
    }
    if (round == 1) first.insert(all.begin(), all.end());
  }
}

RC_GTEST_PROP(message_pool, gives_messages_that_do_not_overlap, (std::vector<std::uint16_t> turns)) {
  message_pool pool;
  struct held {
    message* m;
    std::size_t payload;
    int mark;
  };
  std::vector<held> all;
  const auto release = [&](std::size_t i) {
    const held h = all[i];
    RC_ASSERT(std::all_of(h.m->payload(), h.m->payload() + h.payload,
                          [&](std::byte b) { return b == static_cast<std::byte>(h.mark); }));
    pool.release(h.m);
    all[i] = all.back();
    all.pop_back();
  };
  int mark = 0;
  for (const auto turn : turns) {
    if (turn % 3 == 0 && !all.empty()) {
      release(turn / 3 % all.size());
      continue;
    }
    const std::size_t payload = turn / 3 % (turn % 2 == 0 ? 200 : 3000);
    all.push_back({pool.allocate(payload), payload, ++mark});
    std::memset(all.back().m->payload(), mark, payload);
  }
  while (!all.empty()) release(0);
}

}  // namespace message_tests
}  // namespace orrery::scheduler
