// SPDX-License-Identifier: Apache-2.0
// Elements that move or end while nodes are lost: each is found, or said to be gone, and nobody
// waits for ever.
#include <orrery/array/balance.hpp>
#include <orrery/array/checkpoint.hpp>
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

namespace orrery {
namespace lost_homes_tests {

using testing::attempt;
using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

// Elements live on PE 0, their homes are on PE 2, which is lost.
struct Left;
ORRERY_PROCESS(Left, get, hop);
struct Left : element<Left> {
  int get() const { return 1; }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  template <class A>
  void serialize(A&) {}
};
TEST(lost_homes, elements_can_be_destroyed_when_their_home_is_lost) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=2@1ms,detect=100us", [] {
    const auto a = create_array<Left>(
        {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 2U; })});
    for (std::int32_t i = 0; i < 4; ++i) a.insert_at(pe(0), i);
    quiescence();
    sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(a[0]->get(), 1);
    destroy(a[0]);
    post_destroy(a[1]);
    EXPECT_THROW((void)a[0]->get(), error);
    // One-way messages do not throw because of a loss.
    EXPECT_NO_THROW(post(a[100])->get());
    EXPECT_NO_THROW(post_destroy(a[101]));
    EXPECT_NO_THROW(post_migrate(a[102], 1));
    EXPECT_NO_THROW(a.post_insert(103));
    EXPECT_THROW((void)a[100]->get(), node_lost);
    future<int> asked;
    EXPECT_NO_THROW(asked = start(a[100])->get()) << "the future has what the call would have thrown";
    EXPECT_THROW((void)asked.get(), node_lost);
  });
}
// Elements come to a PE whose own have ended, while it waits for other PEs: the array must not go
// before them.
TEST(lost_homes, an_array_destroyed_while_its_elements_move_leaves_nothing_behind) {
  for (std::uint32_t seed = 1; seed <= 60; ++seed)
    in_simulation("machines=6,jitter=30us,seed=" + std::to_string(seed), [&] {
      const auto a = create_array<Left>(range<std::int32_t>{24}, {.branching = 1});
      for (std::int32_t i = 0; i < 24; ++i) post(a[i])->hop(static_cast<std::uint32_t>(i * 7 + 3) % 6);
      attempt([&] { destroy(a); });
    });
}
// An element has left a node, which is lost; a question that was to follow what had gone there
// before cannot be answered.
TEST(lost_homes, an_element_that_has_left_a_lost_node_is_found) {
  const testing::leaks_expected of_the_lost_node;
  using us = std::chrono::microseconds;
  for (int lost_at = 20000; lost_at <= 22400; lost_at += 200)
    in_simulation("machines=4,net=500us:150ns:10ns:25G,detect=100us,lose=3@" + std::to_string(lost_at) + "us", [] {
      const auto begin = now();
      const auto a = create_array<Left>(
          {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 1U; })});
      a.insert_at(pe(3), 0);
      for (int i = 0; i < 3; ++i) EXPECT_EQ(a[0]->get(), 1);
      post(a[0])->hop(2);
      ASSERT_LT(now() - begin, us(20000));
      sleep_for(us(20000) - (now() - begin));
      for (int i = 0; i < 2; ++i) {
        post(a[0])->get();
        sleep_for(us(300));
      }
      sleep_for(us(10000));
      for (int i = 0; i < 2; ++i) attempt([&] { EXPECT_EQ(a[0]->get(), 1); });
      EXPECT_EQ(a[0]->get(), 1);
    });
}
// Messages follow an element that is always ahead of them, also after a node was lost that it has
// never seen.
struct Restless;
ORRERY_PROCESS(Restless, step, count);
struct Restless : element<Restless> {
  int steps = 0;
  void step() {
    ++steps;
    migrate_to((this_pe() + 1) % 3);
  }
  int count() const { return steps; }
  template <class A>
  void serialize(A& a) {
    a & steps;
  }
};
TEST(lost_homes, messages_follow_an_element_after_a_node_was_lost) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=4,net=500us:150ns:10ns:25G,detect=100us,lose=3@20000us", [] {
    const auto a = create_array<Restless>(
        {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 1U; })});
    a.insert(0);
    sleep_for(std::chrono::milliseconds(40));
    for (int k = 0; k < 100; ++k) post(a[0])->step();
    sleep_for(std::chrono::milliseconds(400));
    EXPECT_EQ(a[0]->count(), 100);
  });
}
// A member of a section.
struct Voter;
ORRERY_PROCESS(Voter, vote);
struct Voter : element<Voter> {
  void vote(const section<Voter>& s, const result_target& t) { contribute(s, 1, sum, t); }
};
TEST(lost_homes, reductions_of_sections_end_when_elements_were_lost) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=4,detect=100us,lose=3@20000us", [] {
    const auto a = create_array<Voter>(range<std::int32_t>{8});
    std::vector<std::int32_t> all(8);
    std::iota(all.begin(), all.end(), 0);
    const auto s = create_section(a, all, 1);
    const auto vote = [&] {
      auto [target, result] = expect_result<int>();
      for (std::int32_t i = 0; i < 8; ++i) attempt([&] { post(a[i])->vote(s, target); });
      return std::move(result);
    };
    EXPECT_EQ(vote().get(), 8);
    auto [target, waits] = expect_result<int>();
    for (std::int32_t i = 0; i < 7; ++i) post(a[i])->vote(s, target);  // one is missing
    sleep_for(std::chrono::milliseconds(40));
    EXPECT_THROW((void)waits.get(), node_lost);
    for (int k = 0; k < 2; ++k) EXPECT_THROW((void)vote().get(), node_lost);
  });
}
// A section that cannot be made, or is destroyed, where a node is lost meanwhile.
void expect_no_members(array<Voter> a) {
  for (const auto* c : detail::part_of<Voter, std::int32_t>(detail::here_pe(), a.id()).cells())
    EXPECT_EQ(c->sections, nullptr) << "PE " << this_pe();
}
TEST(lost_homes, nothing_is_kept_of_a_section_whose_node_is_lost) {
  const testing::leaks_expected of_the_lost_node;
  static std::uint32_t lost;
  for (lost = 1; lost <= 2; ++lost) {  // PE 0's agent tells that of PE 1, and that one PE 2's
    static int made, refused;          // lost before, while and after the section is made
    made = refused = 0;
    for (int at = 0; at < 60; ++at)
      in_simulation(fmt::format("machines=3,net=10g,detect=20us,lose={}@{}us", lost, 1000 + 5 * at), [] {
        const auto begin = now();
        const auto a = create_array<Voter>(range<std::int32_t>{12});
        sleep_for(std::chrono::milliseconds(1) - (now() - begin));
        bool whole = false;
        attempt([&] {
          const auto s = create_section(a, range<std::int32_t>{12}, 1);
          whole = true;
          destroy(s);
        });
        ++(whole ? made : refused);
        sleep_for(std::chrono::milliseconds(1));
        for (const std::uint32_t p : {0U, 3 - lost}) call<&expect_no_members>(pe(p), a);
      });
    EXPECT_GT(made, 0);
    EXPECT_GT(refused, 0);
  }
}

// A process that sends broadcasts waits for those under way, which never come where a node is lost.
struct Stepper;
ORRERY_PROCESS(Stepper, step);
struct Stepper : element<Stepper> {
  void step() {}
};
array<Stepper> make_steppers() { return create_array<Stepper>(range<std::int32_t>{12}, {.branching = 1}); }
TEST(lost_homes, a_process_that_sends_broadcasts_hears_of_the_loss) {
  const testing::leaks_expected of_the_lost_node;
  for (const char* const lost : {"1", "2"})
    in_simulation("machines=3,detect=100us,lose=" + std::string(lost) + "@2ms", [] {
      const auto a = call<&make_steppers>(pe(1));  // its tree: 1, 2, 0
      EXPECT_THROW(
          {
            for (;;) post(a)->step();
          },
          node_lost);
    });
}
// Takes its time to end, and looks at its array then.
struct Lingering;
ORRERY_PROCESS(Lingering, go);
struct Lingering : element<Lingering> {
  static inline std::atomic<int> ended = 0;
  std::uint32_t id = this_array().id();
  ~Lingering() {
    sleep_for(std::chrono::milliseconds(2));
    EXPECT_EQ(this_array().id(), id);
    ++ended;
  }
  void go(std::uint32_t n) {
    migrate_to((static_cast<std::uint32_t>(this_index()) * 7 + n * 5 + n * n) % world_pes());
    if (n > 0) post(this_array()[this_index()])->go(n - 1);
  }
  template <class A>
  void serialize(A& a) {
    a & id;
  }
};
TEST(lost_homes, an_array_is_there_as_long_as_a_destructor_of_its_elements_runs) {
  const auto body = [](int pause_us, bool packed) {
    constexpr int count = 24;
    Lingering::ended = 0;
    const auto a = create_array<Lingering>(range<std::int32_t>{count},
                                           {.name = "an array with a long enough name", .always_serialize = packed});
    for (std::int32_t i = 0; i < count; ++i) {
      if (i % 3 == 0) {
        post_destroy(a[i]);
      } else {
        post(a[i])->go(30);
      }
    }
    sleep_for(std::chrono::microseconds(pause_us));
    destroy(a);
    for (int i = 0; i < 8; ++i)  // in the memory that is free now
      (void)create_array<Lingering>({.name = "another array with a long enough name"});
    quiescence();
    EXPECT_GE(Lingering::ended, count);
    if (!packed && !scheduler::through_wire && std::getenv("ORRERY_TEST_SIM") == nullptr) {
      EXPECT_EQ(Lingering::ended, count);  // else those that left end too
    }
  };
  for (const std::uint32_t pes : {1U, 3U}) in_world(pes, [&] { body(200, false); });
  for (int seed = 1; seed <= 40; ++seed)
    in_simulation("pes=6,jitter=30us,seed=" + std::to_string(seed), [&] { body(seed * 3, seed % 2 == 0); });
}

// The answer goes by way of the home, which is lost while it is under way: at any time of the two
// ways.
TEST(lost_homes, an_answer_by_way_of_a_home_that_is_lost_comes_all_the_same) {
  const testing::leaks_expected of_the_lost_nodes;
  for (int at = 0; at < 40; ++at) {
    const std::string lost = "machines=3,net=10g,detect=20us,lose=2@" + std::to_string(1000 + at) + "us";
    in_simulation(lost, [] {
      const auto begin = now();
      const auto a = create_array<Left>(
          {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 2U; })});
      for (std::int32_t i = 0; i < 8; ++i) a.insert_at(pe(static_cast<std::uint32_t>(i) % 2), i);
      sleep_for(std::chrono::milliseconds(1) - (now() - begin));
      for (std::int32_t i = 0; i < 8; ++i) attempt([&] { destroy(a[i]); });
    });
  }
}

}  // namespace lost_homes_tests
}  // namespace orrery
