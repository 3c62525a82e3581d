// SPDX-License-Identifier: Apache-2.0
// Random calls, migrations, insertions and ends, broadcasts, reductions, sections and balancing
// while a node is lost: everybody is answered, and nobody is told of a circle that is none.
#include <orrery/array/balance.hpp>
#include <orrery/array/own_index.hpp>
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace loss_chaos_tests {

struct Walker;
ORRERY_PROCESS(Walker, hop, walk, kept_walk, early_walk);
struct Walker : element<Walker, std::uint32_t> {
  static constexpr bool keep_order(std::string_view method) { return method == "kept_walk"; }
  static constexpr early when_early(std::string_view method) {
    return method == "early_walk" ? early::create_at_sender : early::wait;
  }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  // To the elements with these numbers one after the other, which are larger each time.
  int walk(std::vector<std::uint32_t> way) { return go(way); }
  int kept_walk(std::vector<std::uint32_t> way) { return go(way); }
  int early_walk(std::vector<std::uint32_t> way) { return go(way); }
  template <class A>
  void serialize(A&) {}

 private:
  int go(std::vector<std::uint32_t> way) {
    if (way.empty()) return 1;
    const auto next = this_array()[way.back()];
    const std::uint32_t how = way.back() % 3;
    way.pop_back();
    if (how == 0) return next->walk(way) + 1;
    if (how == 1) return next->kept_walk(way) + 1;
    return start(next)->early_walk(way).get() + 1;
  }
};

// The errors that may be thrown while a node is lost: an error that says that something is gone, or
// (`tries`) was there already.
template <class F>
void attempt(F f, bool tries = true) {
  try {
    f();
  } catch (const node_lost&) {
  } catch (const process_gone&) {
  } catch (const usage_error&) {
    if (!tries) throw;
  }
}
// Each ends with its result or such an error.
template <class R>
void expect_ends(std::vector<future<R>>& all) {
  for (auto& f : all) attempt([&] { (void)f.get(); }, false);
  all.clear();
}
template <class World, class Body>
void in_worlds(World world_of, Body body) {
  const testing::leaks_expected of_the_lost_nodes;
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 20 : 600);
  const std::uint64_t first = testing::test_seed();
  ::testing::internal::CaptureStderr();  // lines on what was lost, of each
  for (std::uint64_t seed = first; seed < first + runs && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    testing::in_simulation(world_of(seed) + ",seed=" + std::to_string(seed), [&] { body(seed); });
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  if (::testing::Test::HasFailure()) std::fputs(said.c_str(), stderr);
}

template <class Body>
void while_a_node_is_lost(Body body) {
  in_worlds(
      [](std::uint64_t seed) {
        return "machines=4,jitter=3us,lose=3@" + std::to_string(100 + seed * 7 % 900) +
               "us,detect=" + std::to_string(seed % 4 * 10) + "us";
      },
      body);
}
// Up to four cuts in one direction, some of which are over before anybody is missed.
template <class Body>
void while_the_network_is_cut(Body body) {
  in_worlds(
      [](std::uint64_t seed) {
        std::mt19937_64 random(seed);
        std::string world = "machines=4,carriers=on,jitter=3us,silence=100us,detect=20us";
        for (std::uint64_t n = 1 + random() % 4; n > 0; --n) {
          const std::uint64_t from = random() % 4;
          world += ",cut=" + std::to_string(from) + ":" + std::to_string((from + 1 + random() % 3) % 4) + "@" +
                   std::to_string(random() % 900) + "us";
          if (random() % 2 == 0) world += "+" + std::to_string(1 + random() % 250) + "us";
        }
        return world;
      },
      body);
}

void random_calls(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return static_cast<std::uint32_t>(random() % below); };
  const bool churn = draw(2) == 0;
  constexpr std::uint32_t elements = 12;
  array_options<std::uint32_t> how;
  how.cached = draw(2) == 0 ? 2 : 1000;
  how.homes = 1 + draw(3);
  how.always_serialize = draw(2) == 0;
  const bool homes_stay = draw(2) == 0;
  if (homes_stay)
    how.home = placement_map<std::uint32_t>([](const std::uint32_t& i, std::uint32_t pes) { return i % (pes - 1); });
  const auto a = create_array<Walker, std::uint32_t>(how);
  std::vector<future<int>> calls;
  std::vector<future<void>> ends;
  for (std::uint32_t i = 0; i < elements; ++i) attempt([&] { a.insert(i); });
  for (int round = 0; round < 12; ++round) {
    for (int k = 0; k < 10; ++k) {
      const std::uint32_t who = draw(elements);
      std::vector<std::uint32_t> way;
      for (std::uint32_t i = elements; --i > who;)
        if (draw(3) == 0) way.push_back(i);
      attempt([&] {
        switch (draw(6)) {
          case 0:
            post(a[who])->hop(draw(world_pes()));
            break;
          case 1:
            calls.push_back(start(a[who])->walk(way));
            break;
          case 2:
            calls.push_back(start(a[who])->kept_walk(way));
            break;
          case 3:
            calls.push_back(start(a[who])->early_walk(way));
            break;
          case 4:
            if (churn) ends.push_back(start_destroy(a[who]));
            break;
          default:
            sleep_for(std::chrono::microseconds(draw(30)));
        }
      });
      if (churn && draw(3) == 0) a.post_insert(draw(elements));
    }
    // else calls would wait for those that are gone
    for (std::uint32_t i = 0; i < elements; ++i) a.post_insert(i);
    expect_ends(calls);
    expect_ends(ends);
  }
  attempt([&] { destroy(a); });
}

TEST(array_loss, of_a_node_leaves_nobody_without_an_answer) { while_a_node_is_lost(random_calls); }

TEST(array_loss, where_networks_are_cut_leaves_nobody_without_an_answer) {
  while_the_network_is_cut([](std::uint64_t seed) { attempt([&] { random_calls(seed); }, false); });
}

// A schedule in which something waited for ever.
void again(const std::string& world, std::uint64_t seed) {
  const testing::leaks_expected of_the_lost_node;
  ::testing::internal::CaptureStderr();
  testing::in_simulation(world + ",seed=" + std::to_string(seed), [seed] { random_calls(seed); });
  (void)::testing::internal::GetCapturedStderr();
}
// An element that is created on demand waits until a question has followed what went before it, to
// a PE where the array has ended meanwhile.
TEST(array_loss, of_a_node_before_an_array_ends_leaves_no_question_without_an_answer) {
  again("machines=4,jitter=3us,lose=3@536us,detect=0us", 175258348);
}
// The same of a call that asks, behind which others wait. Nodes hear of the loss one by one.
TEST(array_loss, of_a_node_before_an_array_ends_leaves_no_call_without_an_answer) {
  again("machines=4,carriers=on,jitter=3us,lose=3@638us,detect=20us", 2914704334);
}

struct Voter;
ORRERY_PROCESS(Voter, hop, vote, vote_in, hear, heard);
struct Voter : element<Voter, std::uint32_t> {
  void hop(std::uint32_t pe) { migrate_to(pe); }
  void vote(result_target t) { contribute(1, sum, t); }
  void vote_in(section<Voter> s, result_target t) { contribute(s, 1, sum, t); }
  void hear() { ++count; }
  int heard() const { return count; }
  template <class A>
  void serialize(A& a) {
    a & count;
  }

 private:
  int count = 0;
};

void random_collectives(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return static_cast<std::uint32_t>(random() % below); };
  constexpr std::uint32_t elements = 12;
  array_options<std::uint32_t> how;
  how.cached = draw(2) == 0 ? 2 : 1000;
  how.homes = 1 + draw(3);
  how.always_serialize = draw(2) == 0;
  how.branching = 1 + draw(3);
  const auto a = create_array<Voter>(range<std::uint32_t>{elements}, how);
  std::vector<section<Voter>> sections;
  std::vector<future<int>> results;
  std::vector<future<void>> moves;
  const auto wanted = [&] {
    auto [target, result] = expect_result<int>();
    results.push_back(std::move(result));
    return target;
  };
  const auto make_section = [&] {
    std::vector<std::uint32_t> members;
    for (std::uint32_t i = 0; i < elements; ++i)
      if (draw(2) == 0) members.push_back(i);
    if (members.empty()) members.push_back(0);  // else no result ever comes
    sections.push_back(create_section(a, members, 1 + draw(3)));
  };
  const auto any_section = [&] { return sections[draw(sections.size())]; };
  const auto act = [&] {
    switch (draw(11)) {
      case 0:
        moves.push_back(start_migrate(a[draw(elements)], draw(world_pes())));
        break;
      case 1:
        post(a)->vote(wanted());
        break;
      case 2:
        make_section();
        break;
      case 3:
        if (!sections.empty()) {
          const auto s = any_section();
          post(s)->vote_in(s, wanted());
        }
        break;
      case 4:
        if (!sections.empty()) post(any_section())->hear();
        break;
      case 5:
        post(a)->hear();
        break;
      case 6:
        if (!sections.empty()) {
          const auto s = sections.back();
          sections.pop_back();
          destroy(s);
        }
        break;
      case 7:
        quiescence(a);
        break;
      case 8:
        (void)balance(a, *balance_rotate());
        break;
      case 9:
        results.push_back(start(a[draw(elements)])->heard());
        break;
      default:
        post(a[draw(elements)])->hop(draw(world_pes()));
        sleep_for(std::chrono::microseconds(draw(40)));
    }
  };
  for (int k = 0; k < 80; ++k)
    attempt([&] {
      const std::size_t before = results.size();
      try {
        act();
      } catch (...) {  // nobody was asked for the result
        while (results.size() > before) results.pop_back();
        throw;
      }
    });
  attempt([&] { quiescence(a); });
  for (const auto& s : sections) attempt([&] { destroy(s); });
  attempt([&] { destroy(a); });
  expect_ends(moves);
  expect_ends(results);
}
TEST(array_loss, of_a_node_ends_all_that_concerns_many_elements) {
  while_a_node_is_lost([](std::uint64_t seed) { attempt([&] { random_collectives(seed); }, false); });
}
TEST(array_loss, where_networks_are_cut_ends_all_that_concerns_many_elements) {
  while_the_network_is_cut([](std::uint64_t seed) { attempt([&] { random_collectives(seed); }, false); });
}
// The array was destroyed, and the word of that to who waited for a reduction was lost with the
// node.
TEST(array_loss, of_a_node_ends_waits_for_an_array_that_has_ended) {
  const testing::leaks_expected of_the_lost_node;
  ::testing::internal::CaptureStderr();
  testing::in_simulation("machines=4,jitter=3us,lose=3@649us,detect=30us,seed=1110346407",
                         [] { attempt([] { random_collectives(1110346407); }, false); });
  (void)::testing::internal::GetCapturedStderr();
}

}  // namespace loss_chaos_tests
}  // namespace orrery
