// SPDX-License-Identifier: Apache-2.0
// Events, and the line of those that wait for them.
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/event.hpp>
#include <orrery/service/waiting_line.hpp>

#include <new>
#include <vector>

#include <gtest/gtest.h>

namespace event_tests {

using orrery::service::event;
using orrery::testing::in_world;
using line = orrery::service::waiting_line<std::vector<int>>;

TEST(service_event, parks_until_it_is_set) {
  in_world(1, [] {
    event e;
    bool woke = false;
    const auto other = orrery::spawn_here([&] {
      e.wait();
      woke = true;
    });
    orrery::yield();
    EXPECT_FALSE(woke);
    e.set();
    while (!woke) orrery::yield();
    e.wait();  // it is set
    (void)other;
  });
}
TEST(service_event, throws_stopped_when_the_program_ends) {
  bool ended = false;
  in_world(1, [&] {
    orrery::spawn_here([&] {
      event e;
      try {
        e.wait();
      } catch (const orrery::stopped&) {
        ended = true;
        throw;
      }
    });
    orrery::yield();
  });
  EXPECT_TRUE(ended);
}

TEST(waiting_line, serves_who_has_waited_longest_and_nobody_who_has_left) {
  in_world(1, [] {
    line all;
    std::vector<int> order;
    std::vector<std::vector<int>> found(4);
    int ended = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      orrery::spawn_here([&, i] {
        found[i] = all.wait(i, 2);
        order.push_back(static_cast<int>(i));
        ++ended;
      });
      orrery::yield();
    }
    all.cancel(1);
    int left = 2;
    all.serve([&] { return left != 0; },
              [&](std::uint32_t client, std::uint32_t most) {
                --left;
                return std::vector<int>{static_cast<int>(client), static_cast<int>(most)};
              });
    while (ended != 3) orrery::yield();
    EXPECT_EQ(found[0], (std::vector<int>{0, 2}));
    EXPECT_TRUE(found[1].empty());
    EXPECT_EQ(found[2], (std::vector<int>{2, 2}));
    left = 1;
    all.serve([&] { return left-- > 0; }, [](std::uint32_t, std::uint32_t) { return std::vector<int>{9}; });
    while (ended != 4) orrery::yield();
    EXPECT_EQ(found[3], std::vector<int>{9});
  });
}

TEST(waiting_line, gives_what_is_thrown_for_a_client_to_that_one) {
  in_world(1, [] {
    line all;
    std::vector<std::vector<int>> found(3);
    int failed = 0;
    int ended = 0;
    for (std::uint32_t i = 0; i < 3; ++i) {
      orrery::spawn_here([&, i] {
        try {
          found[i] = all.wait(i, 1);
        } catch (const std::bad_alloc&) {
          ++failed;
        }
        ++ended;
      });
      orrery::yield();
    }
    all.serve([] { return true; },
              [](std::uint32_t client, std::uint32_t) {
                if (client == 1) throw std::bad_alloc();
                return std::vector<int>{static_cast<int>(client)};
              });
    while (ended != 3) orrery::yield();
    EXPECT_EQ(failed, 1);
    EXPECT_EQ(found[0], std::vector<int>{0});
    EXPECT_TRUE(found[1].empty());
    EXPECT_EQ(found[2], std::vector<int>{2});
  });
}

}  // namespace event_tests
