// SPDX-License-Identifier: Apache-2.0
// Random calls, migrations, insertions and ends while a node is lost: everybody is answered, and nobody is told of a circle that is none.
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

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
    const auto next = array()[way.back()];
    const std::uint32_t how = way.back() % 3;
    way.pop_back();
    if (how == 0) return next->walk(way) + 1;
    if (how == 1) return next->kept_walk(way) + 1;
    return start(next)->early_walk(way).get() + 1;
  }
};

// What a call ends with while a node is lost: its result, or an error that says that something is gone.
template <class R>
void expect_end(future<R>& f) {
  try {
    (void)f.get();
  } catch (const node_lost&) {
  } catch (const process_gone&) {
  }
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
  const auto attempt = [](auto f) {
    try {
      f();
    } catch (const node_lost&) {
    } catch (const process_gone&) {
    } catch (const usage_error&) {  // there is an element already
    }
  };
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
    for (std::uint32_t i = 0; i < elements; ++i) a.post_insert(i);  // else calls would wait for those that are gone
    for (auto& f : calls) expect_end(f);
    for (auto& f : ends) expect_end(f);
    calls.clear();
    ends.clear();
  }
  attempt([&] { destroy(a); });
}

TEST(array_loss, of_a_node_leaves_nobody_without_an_answer) {
  const testing::leaks_expected of_the_lost_nodes;
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 20 : 600);
  const std::uint64_t first = testing::test_seed();
  ::testing::internal::CaptureStderr();  // lines on what was lost, of each
  for (std::uint64_t seed = first; seed < first + runs && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    const std::string world = "machines=4,jitter=3us,lose=3@" + std::to_string(100 + seed * 7 % 900) +
                              "us,detect=" + std::to_string(seed % 4 * 10) + "us,seed=" + std::to_string(seed);
    testing::in_simulation(world, [&] { random_calls(seed); });
  }
  (void)::testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace orrery
