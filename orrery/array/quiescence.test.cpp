// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/section.hpp>

#include <orrery/process/idle.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

namespace orrery {
namespace quiescence_tests {

using testing::in_world;

std::atomic<int> finished{0};

struct Node;
ORRERY_PROCESS(Node, pass, doze, doze_for, visit, wait, hop, all_give, section_give);
struct Node : element<Node> {
  void pass(int more) {
    if (more == 0) {
      ++finished;
      return;
    }
    const int to = (this_index() * 7 + more) % 16;
    post(this_array()[to])->pass(more - 1);
    if (more % 5 == 0) migrate_to(static_cast<std::uint32_t>(more) % 3);
  }
  void doze() {
    sleep_for(std::chrono::milliseconds(20));
    ++finished;
  }
  void doze_for(int) { ++finished; }
  void visit() { ++finished; }
  bool wait() {
    try {
      quiescence(this_array());
    } catch (const usage_error&) {
      return true;
    }
    return false;
  }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  void all_give(result_target t) { contribute(1, sum, t); }
  void section_give(section<Node> s, result_target t) { contribute(s, 1, sum, t); }
  template <class A>
  void serialize(A&) {}
};

TEST(array_quiescence, of_an_array_that_does_nothing_is_there) {
  in_world(3, [] {
    const auto a = create_array<Node>(range<std::int32_t>{16});
    quiescence(a);
    quiescence(a);
  });
}

struct Idler;
ORRERY_PROCESS(Idler, step);
struct Idler : element<Idler> {
  explicit Idler(bool works = false) {
    if (works) when_idle([] { ++finished; });
  }
  void step(int left) {
    ++finished;
    if (left > 0) when_idle([me = this_array()[this_index()], left] { post(me)->step(left - 1); });
  }
};
TEST(array_quiescence, waits_for_what_elements_do_when_their_pe_is_idle) {
  in_world(2, [] {
    const auto a = create_array<Idler>(range<std::int32_t>{32});
    finished = 0;
    post(a)->step(9);
    quiescence(a);
    EXPECT_EQ(finished, 320);
    destroy(a);
    finished = 0;
    const auto b = create_array<Idler>(range<std::int32_t>{32}, {}, {}, true);
    quiescence(b);
    EXPECT_EQ(finished, 32);
    for (int i = 32; i < 64; ++i) b.insert(i, true);
    quiescence(b);
    EXPECT_EQ(finished, 64);
  });
}

TEST(array_quiescence, waits_for_messages_that_make_messages) {
  in_world(3, [] {
    const auto a = create_array<Node>(range<std::int32_t>{16});
    for (int round = 0; round < 20; ++round) {
      finished = 0;
      for (int i = 0; i < 16; ++i) post(a[i])->pass(40 + i);
      quiescence(a);
      EXPECT_EQ(finished, 16);
    }
  });
}

TEST(array_quiescence, waits_for_methods_that_are_parked) {
  in_world(2, [] {
    const auto a = create_array<Node>(range<std::int32_t>{4});
    finished = 0;
    for (int i = 0; i < 4; ++i) post(a[i])->doze();
    quiescence(a);
    EXPECT_EQ(finished, 4);
  });
}

TEST(array_quiescence, waits_for_broadcasts_and_reductions_whose_result_is_a_broadcast) {
  in_world(3, [] {
    const auto a = create_array<Node>(range<std::int32_t>{16});
    const auto s = create_section(a, range<std::int32_t>{8});
    for (int round = 0; round < 20; ++round) {
      finished = 0;
      post(a)->all_give(result_to<&Node::doze_for>(a));
      quiescence(a);
      EXPECT_EQ(finished, 16);
      post(s)->section_give(s, result_to<&Node::doze_for>(a));
      for (int i = 0; i < 16; ++i) post(a[i])->hop(static_cast<std::uint32_t>(i + round) % 3);
      quiescence(a);
      EXPECT_EQ(finished, 32);
    }
  });
}

TEST(array_quiescence, does_not_wait_for_what_other_processes_do) {
  in_world(2, [] {
    const auto busy = create_array<Node>(range<std::int32_t>{16}, {.name = "busy"});
    const auto calm = create_array<Node>(range<std::int32_t>{16}, {.name = "calm"});
    finished = 0;
    post(busy[0])->pass(testing::slowed_down ? 20'000 : 200'000);
    post(calm[3])->visit();
    quiescence(calm);
    EXPECT_GE(finished, 1);
    quiescence(busy);
    EXPECT_EQ(finished, 2);
  });
}

TEST(array_quiescence, does_not_wait_for_elements_that_nobody_has_created) {
  in_world(2, [] {
    const auto a = create_array<Node>(range<std::int32_t>{4});
    finished = 0;
    for (int i = 100; i < 110; ++i) post(a[i])->visit();
    quiescence(a);
    EXPECT_EQ(finished, 0);
    for (int i = 100; i < 110; ++i) a.post_insert(i);
    quiescence(a);
    EXPECT_EQ(finished, 10);
  });
}

TEST(array_quiescence, comes_though_messages_failed) {
  in_world(2, [] {
    const auto a = create_array<Node>(range<std::int32_t>{8});
    for (int i = 0; i < 8; ++i) destroy(a[i]);
    for (int i = 0; i < 8; ++i) EXPECT_THROW(a[i]->visit(), process_gone);
    quiescence(a);
  });
}

struct Unwritable {
  template <class A>
  void serialize(A&) {
    if (A::is_saving::value) throw std::runtime_error("not to be written");
  }
};
struct Given;
ORRERY_PROCESS(Given, nothing);
struct Given : element<Given> {
  Given() = default;
  explicit Given(const Unwritable&) {}
  void nothing() {}
};
TEST(array_quiescence, comes_though_arguments_of_a_constructor_could_not_be_written) {
  in_world(2, [] {
    const auto a = create_array<Given>(
        {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 1U; })});
    EXPECT_THROW(a.insert(0, Unwritable()), std::runtime_error);
    EXPECT_THROW(a.start_insert(1, Unwritable()).get(), std::runtime_error);
    EXPECT_THROW(a.post_insert(2, Unwritable()), std::runtime_error);
    EXPECT_THROW(a.insert_at(pe(1), 3, Unwritable()), std::runtime_error);
    quiescence(a);
    for (std::int32_t i = 0; i < 4; ++i) a.insert(i);  // the indices are free
    quiescence(a);
  });
}

TEST(array_quiescence, cannot_be_waited_for_by_an_element) {
  in_world(2, [] {
    const auto a = create_array<Node>(range<std::int32_t>{2});
    EXPECT_TRUE(a[0]->wait());
    EXPECT_TRUE(a[1]->wait());
  });
}

// A place that is not used is asked whether it can be forgotten: that question must not count among
// the messages that wait there.
TEST(array_quiescence, is_found_while_messages_wait_for_elements_that_nobody_has_created) {
  in_world(2, [] {
    auto a =
        create_array<Node>(array_options<int>{.name = "nodes", .home = placement_map<int>::cyclic(1000), .cached = 4});
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < 60; ++i) post(a[i])->visit();
      quiescence(a);
    }
    const int before = finished;
    for (int i = 0; i < 60; ++i) a.insert(i);
    quiescence(a);
    EXPECT_EQ(finished - before, 240);
  });
}

}  // namespace quiescence_tests
}  // namespace orrery
