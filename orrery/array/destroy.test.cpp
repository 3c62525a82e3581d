// SPDX-License-Identifier: Apache-2.0
// How arrays end: nothing stays, nobody waits for ever.
#include <orrery/array/section.hpp>

#include <orrery/process/idle.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn_here.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace destroy_tests {

using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

struct Item;
ORRERY_PROCESS(Item, give, give_to, end_array, look_at, doze, work_when_idle, hop);
struct Item : element<Item> {
  static inline std::atomic<int> alive = 0;
  static constexpr bool orrery_reentrant = true;
  Item() { ++alive; }
  ~Item() { --alive; }
  void give(result_target t) { contribute(1, sum, t); }
  void give_to(section<Item> s, result_target t) { contribute(s, 1, sum, t); }
  void end_array() { destroy(this_array()); }
  std::size_t look_at(orrery::array<Item> other) {
    quiescence(other);
    return other.local_size();
  }
  static inline std::atomic<bool> wakes = false;
  void doze() {
    while (!wakes) sleep_for(std::chrono::microseconds(100));
  }
  void work_when_idle() {
    when_idle([] {});
  }
  void hop(std::uint32_t to) { migrate_to(to); }
  template <class A>
  void serialize(A&) {}
};

void expect_none(orrery::array<Item> all) { EXPECT_THROW((void)all.local_size(), process_gone); }

// Some have contributed, on all PEs, on one, to the whole and to a section: a part of a result is
// none.
void reductions_of_what_ends() {
  for (int who = 0; who < 12; ++who) {
    const auto a = create_array<Item>(range<std::int32_t>{12}, {.name = "items"});
    const auto s = create_section(a, range<std::int32_t>{9});
    auto [whole, of_all] = expect_result<int>();
    auto [partly, of_some] = expect_result<int>();
    for (int i = 0; i < 12; ++i)
      if (i != who) orrery::post(a[i])->give(whole);
    post(a[4])->give_to(s, partly);
    orrery::post(s)->work_when_idle();
    orrery::post(a)->work_when_idle();
    quiescence(a);
    destroy(a);
    EXPECT_NE(what_is_thrown<process_gone>([&] { (void)of_all.get(); }).find("items was destroyed"), std::string::npos);
    EXPECT_NE(what_is_thrown<process_gone>([&] { (void)of_some.get(); }).find("a section of items was destroyed"),
              std::string::npos);
    destroy(s);
  }
}
TEST(array_destroy, who_waits_for_a_reduction_is_told) {
  for (const std::uint32_t pes : {1U, 3U}) in_world(pes, reductions_of_what_ends);
  in_simulation("machines=4,jitter=5us", reductions_of_what_ends);
}

// Nobody receives them any more.
TEST(array_destroy, elements_on_their_way_when_the_world_ends_end_with_it) {
  for (int seed = 1; seed <= 60; ++seed) {
    for (const bool destroys : {false, true})
      in_simulation(fmt::format("machines=1,pes=4,jitter=5us,seed={}", seed), [destroys] {
        const auto a = create_array<Item>(range<std::int32_t>{12}, {});
        for (std::int32_t i = 0; i < 12; ++i) orrery::post(a[i])->hop(static_cast<std::uint32_t>(i) % 4);
        if (destroys) destroy(a);
      });
    EXPECT_EQ(Item::alive, 0);
  }
}

// While values are on their way: the whole result, or none.
TEST(array_destroy, no_reduction_ends_with_a_part_of_its_result) {
  for (int seed = 1; seed <= 60; ++seed)
    in_simulation("machines=5,jitter=20us,seed=" + std::to_string(seed), [&] {
      const auto a = create_array<Item>(range<std::int32_t>{20}, {.name = "items", .branching = 1});
      auto [target, result] = expect_result<int>();
      for (int i = 0; i < 20; ++i) post(a[i])->give(target);
      sleep_for(std::chrono::microseconds(seed));
      destroy(a);
      try {
        EXPECT_EQ(result.get(), 20);
      } catch (const process_gone&) {
      }
    });
}

TEST(array_destroy, ends_what_is_behind_a_lost_pe) {
  const testing::leaks_expected of_the_lost_node;
  for (const std::uint32_t branching : {1U, 2U, 4U})
    for (const std::uint32_t lost : {1U, 2U, 5U}) {
      Item::alive = 0;
      in_simulation("machines=6,detect=100us,lose=" + std::to_string(lost) + "@1ms", [&] {
        const auto a = create_array<Item>(
            range<std::int32_t>{24}, {.name = "items",
                                      .home = placement_map<std::int32_t>([](const std::int32_t& i, std::uint32_t pes) {
                                        return std::uint32_t(i) % pes;
                                      }),
                                      .branching = branching});
        EXPECT_EQ(Item::alive, 24);
        sleep_for(std::chrono::milliseconds(5));
        EXPECT_THROW(destroy(a), node_lost);
        EXPECT_EQ(Item::alive, 4);  // of the lost PE
        EXPECT_THROW(destroy(a), process_gone);
        for (std::uint32_t p = 0; p < 6; ++p)
          if (p != lost) call<&expect_none>(pe(p), a);
      });
    }
}

TEST(array_destroy, goes_on_when_a_pe_is_lost_meanwhile) {
  const testing::leaks_expected of_the_lost_node;
  for (int at = 0; at < 60; ++at) {
    in_simulation("machines=6,net=10g,detect=20us,lose=1@" + std::to_string(1000 + at) + "us", [] {
      const auto begin = now();
      const auto a = create_array<Item>(range<std::int32_t>{24}, {.name = "items", .branching = 1});
      sleep_for(std::chrono::milliseconds(1) - (now() - begin));
      try {
        destroy(a);
      } catch (const node_lost&) {
      }
      sleep_for(std::chrono::milliseconds(1));
      for (const std::uint32_t p : {0U, 2U, 3U, 4U, 5U}) call<&expect_none>(pe(p), a);
    });
  }
}

TEST(array_destroy, is_refused_to_an_element_of_the_array_before_anything_happens) {
  in_world(2, [] {
    const auto a = create_array<Item>(range<std::int32_t>{8}, {.name = "items"});
    const auto b = create_array<Item>(range<std::int32_t>{8});
    for (int i = 0; i < 8; ++i) EXPECT_THROW(a[i]->end_array(), deadlock_error);
    EXPECT_LE(a[1]->look_at(b), 8U);  // another array is another one, though of the same class
    EXPECT_THROW((void)a[1]->look_at(a), usage_error);
    for (int i = 0; i < 8; ++i) a[i]->give({});
    destroy(a);
    destroy(b);
  });
}

TEST(array_destroy, waits_for_methods_that_are_parked) {
  in_world(2, [] {
    const auto a = create_array<Item>(range<std::int32_t>{8}, {.name = "items"});
    Item::wakes = false;
    auto [target, result] = expect_result<int>();
    auto dozing = start(a[0])->doze();
    a[0]->give(target);  // it dozes now
    for (int i = 1; i < 8; ++i) a[i]->give(target);
    (void)spawn_here([] {
      sleep_for(std::chrono::milliseconds(2));
      Item::wakes = true;
    });
    destroy(a);
    EXPECT_TRUE(Item::wakes);
    dozing.get();
    EXPECT_THROW(destroy(a), process_gone);
    EXPECT_EQ(result.get(), 8);  // all had contributed
  });
}

struct Selfish : element<Selfish> {
  static inline std::atomic<int> refused = 0;
  ~Selfish() {
    try {
      destroy(this_array());
    } catch (const deadlock_error&) {
      ++refused;
    }
  }
};
ORRERY_PROCESS(Selfish);
TEST(array_destroy, is_refused_to_the_destructor_of_an_element) {
  in_world(2, [] {
    const auto a = create_array<Selfish>(range<std::int32_t>{8});
    destroy(a[3]);
    EXPECT_EQ(Selfish::refused, 1);
    destroy(a);
    EXPECT_EQ(Selfish::refused, 8);
  });
}

// Elements that wait for others that nobody has created would keep the array for ever.
struct Asking;
ORRERY_PROCESS(Asking, ask, ask_in_order);
struct Asking : element<Asking> {
  static constexpr bool keep_order(std::string_view method) { return method == "ask_in_order"; }
  void ask(int other) {
    if (other != 0) this_array()[other]->ask(0);
  }
  void ask_in_order(int other) {
    if (other != 0) this_array()[other]->ask_in_order(0);
  }
};
void calls_to_nobody() {
  const auto a = create_array<Asking>(range<std::int32_t>{8});
  std::vector<future<void>> asking;
  for (int i = 0; i < 8; ++i)
    asking.push_back(i % 2 == 0 ? start(a[i])->ask(100 + i) : start(a[i])->ask_in_order(100 + i));
  asking.push_back(start(a[200])->ask(0));
  asking.push_back(start(a[200])->ask_in_order(0));
  destroy(a);
  for (auto& f : asking) EXPECT_THROW(f.get(), process_gone);
}
TEST(array_destroy, calls_to_elements_that_were_not_created_fail) {
  for (const std::uint32_t pes : {1U, 3U}) in_world(pes, calls_to_nobody);
  in_simulation("machines=4,jitter=5us", calls_to_nobody);
}

TEST(array_destroy, what_it_left_undone_is_not_counted_for_another_array) {
  in_world(1, [] {
    std::set<std::uint32_t> numbers;
    std::uint32_t first = 0;
    for (bool reused = false; !reused;) {
      const auto a = create_array<Item>();
      if (first == 0) {
        first = a.id();
        a.insert(1);
        a[1]->work_when_idle();  // later: this process does not wait until then
      }
      reused = !numbers.insert(a.id()).second;
      if (!reused) {
        if (a.id() == first) orrery::destroy(a[1]);
        destroy(a);
        continue;
      }
      EXPECT_EQ(a.id(), first);  // as late as can be
      a.insert(1);
      sleep_for(std::chrono::milliseconds(1));
      quiescence(a);
    }
    EXPECT_GT(numbers.size(), 10'000U);
  });
}

}  // namespace destroy_tests
}  // namespace orrery
