// SPDX-License-Identifier: Apache-2.0
// What constructors of elements do: contribute, broadcast, park, move, insert others.
#include <orrery/array/array.hpp>
#include <orrery/array/checkpoint.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace orrery {
namespace constructors_tests {

using testing::in_world;

struct Newborn;
ORRERY_PROCESS(Newborn, give);
struct Newborn : element<Newborn> {
  Newborn() = default;
  Newborn(const result_target& t, bool parks) {
    if (parks) yield();
    contribute(1, sum, t);
  }
  void give(const result_target& t) { contribute(this_index(), sum, t); }
  template <class A>
  void serialize(A&) {}
};

void contribute_at_birth(int n, bool parks) {
  auto [target, born] = expect_result<int>();
  const auto a = create_array<Newborn>(range<int>{n}, {.name = "newborn"}, {}, target, parks);
  EXPECT_EQ(born.get(), n);
  for (int k = 0; k < 3; ++k) {
    auto [next, all] = expect_result<int>();
    post(a)->give(next);
    EXPECT_EQ(all.get(), n * (n - 1) / 2);
  }
  destroy(a);
}

TEST(constructors, contribute_to_one_reduction_of_all_elements) {
  for (const std::uint32_t pes : {1U, 2U, 3U}) in_world(pes, [] { contribute_at_birth(40, false); });
}
TEST(constructors, that_park_contribute_to_one_reduction_of_all) {
  for (const std::uint32_t pes : {1U, 2U, 3U}) in_world(pes, [] { contribute_at_birth(40, true); });
}
TEST(constructors, contribute_where_other_pes_find_the_elements) {
  in_world(2, [] {});  // handlers are frozen
  for (int seed = 1; seed <= 3; ++seed)
    testing::in_simulation("machines=20,jitter=20us,seed=" + std::to_string(seed),
                           [&] { contribute_at_birth(60, seed % 2 == 0); });
}
TEST(constructors, contribute_to_one_reduction_where_few_elements_are) {
  in_world(3, [] { contribute_at_birth(1, true); });
  in_world(4, [] { contribute_at_birth(2, false); });
}

// Constructors send to neighbours, which may not be there yet.
struct Greeter;
ORRERY_PROCESS(Greeter, greet, greeted);
constexpr int greeters = 10;
struct Greeter : element<Greeter> {
  Greeter() {
    for (const int i : {this_index() - 1, this_index() + 1})
      if (i >= 0 && i < greeters) post(this_array()[i])->greet();
  }
  void greet() { ++greetings; }
  int greeted() const { return greetings; }
  template <class A>
  void serialize(A& a) {
    a & greetings;
  }
  int greetings = 0;
};
void expect_greetings(const array<Greeter>& a, int times) {
  quiescence(a);
  for (int i = 0; i < greeters; ++i)
    EXPECT_EQ(a[i]->greeted(), times * (i == 0 || i == greeters - 1 ? 1 : 2)) << "element " << i;
}
void greet_at_birth() {
  const auto a = create_array<Greeter>(range<int>{greeters});
  expect_greetings(a, 1);
  destroy(a);
}
TEST(constructors, send_to_elements_of_their_range_that_are_not_made_yet) {
  for (const std::uint32_t pes : {1U, 2U, 3U}) in_world(pes, greet_at_birth);
  for (int seed = 1; seed <= 5; ++seed)
    testing::in_simulation("machines=3,jitter=20us,seed=" + std::to_string(seed), greet_at_birth);
}
TEST(constructors, send_to_elements_that_are_not_restored_yet) {
  const std::string folder = ::testing::TempDir() + "orrery_greeters_" + std::to_string(::getpid());
  for (const std::uint32_t pes : {1U, 3U}) {
    std::filesystem::remove_all(folder);
    in_world(pes, [&] {
      const auto a = create_array<Greeter>(range<int>{greeters});
      quiescence(a);
      checkpoint(folder, a);
      const auto [again] = restore<array<Greeter>>(folder);
      expect_greetings(again, 2);  // those of the checkpoint, and new ones
    });
  }
  std::filesystem::remove_all(folder);
}

struct Unborn;
ORRERY_PROCESS(Unborn, nothing);
struct Unborn : element<Unborn> {
  Unborn(const result_target& t, int bad) {
    contribute(1, sum, t);
    post(this_array())->nothing();
    yield();
    if (this_index() == bad) throw std::out_of_range("element " + std::to_string(bad));
  }
  void nothing() {}
};
TEST(constructors, that_throw_leave_no_array_and_no_result) {
  for (const std::uint32_t pes : {1U, 2U, 3U})
    in_world(pes, [] {
      auto [target, born] = expect_result<int>();
      EXPECT_THROW((void)create_array<Unborn>(range<int>{9}, {.name = "unborn"}, {}, target, 4), std::out_of_range);
      EXPECT_THROW(born.get(), process_gone);
      contribute_at_birth(5, true);
    });
}

struct Crier;
ORRERY_PROCESS(Crier, hear, heard);
struct Crier : element<Crier> {
  Crier() = default;
  explicit Crier(int parks) {
    post(this_array())->hear(this_index());
    for (int k = 0; k < parks * (this_index() % 3); ++k) yield();
  }
  void hear(int from) { all.push_back(from); }
  std::vector<int> heard() const { return all; }
  template <class A>
  void serialize(A& a) {
    a & all;
  }
  std::vector<int> all;
};

void broadcast_at_birth(int n, int parks) {
  const auto a = create_array<Crier>(range<int>{n}, {}, {}, parks);
  quiescence(a);
  const std::vector<int> order = a[0]->heard();
  EXPECT_EQ(order.size(), static_cast<std::size_t>(n));
  for (int i = 1; i < n; ++i) EXPECT_EQ(a[i]->heard(), order) << "element " << i;
  post(a)->hear(-1);
  quiescence(a);
  for (int i = 0; i < n; ++i) EXPECT_EQ(a[i]->heard().size(), static_cast<std::size_t>(n) + 1) << "element " << i;
  destroy(a);
}

TEST(constructors, broadcast_to_all_elements_of_their_range) {
  for (const std::uint32_t pes : {1U, 2U, 3U})
    for (const int parks : {0, 2}) in_world(pes, [&] { broadcast_at_birth(40, parks); });
}
TEST(constructors, broadcast_on_many_machines) {
  in_world(2, [] {});
  for (int seed = 1; seed <= 3; ++seed)
    testing::in_simulation("machines=18,jitter=20us,seed=" + std::to_string(seed),
                           [&] { broadcast_at_birth(50, seed); });
}

// Everything at random, by index and seed; each element contributes `rounds` times in all, in its
// constructor, its methods, or where it has moved.
constexpr int rounds = 4;
struct Child;
ORRERY_PROCESS(Child, finish, hear, heard, move);
struct Child : element<Child> {
  Child() = default;
  Child(std::uint64_t seed, const result_target& t, bool grow) : given(t) {
    std::mt19937_64 random(seed * 1000 + static_cast<std::uint64_t>(this_index()));
    const auto below = [&](std::uint64_t n) { return random() % n; };
    for (std::uint64_t steps = below(8); steps > 0; --steps) {
      switch (below(6)) {
        case 0:
          yield();
          break;
        case 1:
          sleep_for(std::chrono::microseconds(below(30)));
          break;
        case 2:
          post(this_array())->hear(this_index());
          break;
        case 3:
          migrate_to(static_cast<std::uint32_t>(below(world_pes())));
          break;
        case 4:
          if (grow && grown++ == 0) this_array().post_insert(1000 + this_index(), seed, result_target{}, false);
          break;
        default:
          if (contributed() < rounds - 1 && this_index() < 1000) contribute(1, sum, given);
      }
    }
  }
  void finish(const result_target& t) {
    while (contributed() < rounds) contribute(1, sum, t);
  }
  void hear(int from) { all.push_back(from); }
  void move(std::uint32_t to) { migrate_to(to); }
  std::vector<int> heard() const { return all; }
  template <class A>
  void serialize(A& a) {
    a & all & given & grown;
  }
  result_target given;
  std::vector<int> all;
  int grown = 0;
};

struct Counter {
  void result(int n) { results.push_back(n); }
  std::vector<int> all() const { return results; }
  std::vector<int> results;
};
ORRERY_PROCESS(Counter, result, all);

void born_at_random(std::uint64_t seed, int n, bool grow, bool packed) {
  const auto counter = spawn<Counter>(here());
  const result_target t = result_to<&Counter::result>(counter);
  const auto a =
      create_array<Child>(range<int>{n}, {.name = "children", .always_serialize = packed}, {}, seed, t, grow);
  post(a[0])->move(static_cast<std::uint32_t>(seed) % world_pes());
  // an element that is inserted behind the broadcast would be asked for nothing, and waited for
  if (grow) quiescence(a);
  post(a)->finish(t);
  quiescence(a);
  quiescence();
  const std::vector<int> results = counter->all();
  if (!grow) {
    EXPECT_EQ(results, std::vector<int>(rounds, n));
  } else {  // elements that are inserted begin with the reduction that their PE works on
    EXPECT_EQ(results.size(), static_cast<std::size_t>(rounds));
    for (const int r : results) EXPECT_GE(r, n);
  }
  const std::vector<int> order = a[0]->heard();
  for (int i = 1; i < n; ++i) EXPECT_EQ(a[i]->heard(), order) << "element " << i;
  destroy(a);
}

TEST(constructors, at_random_are_exact_on_threads) {
  std::uint64_t seed = testing::test_seed();
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 3 : 30);
  for (std::uint64_t k = 0; k < runs && !HasFailure(); ++k, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    in_world(static_cast<std::uint32_t>(1 + seed % 3), [&] { born_at_random(seed, 25, seed % 2 == 0, seed % 4 < 2); });
  }
}
TEST(constructors, at_random_are_exact_on_machines_with_jitter) {
  in_world(2, [] {});
  std::uint64_t seed = testing::test_seed();
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 2 : 20);
  for (std::uint64_t k = 0; k < runs && !HasFailure(); ++k, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    const char* const worlds[] = {"machines=3", "machines=2,pes=2", "machines=17", "pes=3"};
    testing::in_simulation(std::string(worlds[seed % 4]) + ",jitter=20us,seed=" + std::to_string(seed),
                           [&] { born_at_random(seed, 25, seed % 3 == 0, false); });
  }
}

}  // namespace constructors_tests
}  // namespace orrery
