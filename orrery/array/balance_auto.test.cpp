// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/balance_auto.hpp>
#include <orrery/orrery.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace balance_auto_tests {

using testing::in_world;

struct Plot;
ORRERY_PROCESS(Plot, begin, resume, steps, dig, total, where);
struct Plot : element<Plot> {
  // A phase of work after another, with a balancing between them.
  void begin(const result_target& at, const result_target& end, int phases) {
    point = at;
    done = end;
    left = phases;
    step();
  }
  void step() {
    for (int i = 0; i < 100 * this_index(); ++i) sink = sink + 1;
    ++n;
    at_sync(point);
  }
  void resume(const balance_report& r) {
    reports += r.strategy == "rotate" ? 1 : 100;
    if (--left > 0) {
      step();
    } else {
      contribute(reports, sum, done);
    }
  }
  int steps() const { return n; }
  void dig(std::uint64_t x) { sum_of += x; }
  std::uint64_t total() const { return sum_of; }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & point & done & left & reports & n & sum_of;
  }
  result_target point, done;
  int left = 0;
  int reports = 0;
  int n = 0;
  std::uint64_t sum_of = 0;
  volatile int sink = 0;
};

TEST(balance_at_sync, runs_when_all_have_come_and_lets_all_go_on) {
  for (const bool packed : {false, true})
    in_world(3, [&] {
      constexpr int n = 20;
      constexpr int phases = 6;
      auto a = create_array<Plot>(range<int>{n}, {.name = "plots", .always_serialize = packed});
      std::vector<std::uint32_t> before;
      for (int i = 0; i < n; ++i) before.push_back(a[i]->where());
      measure_load(a, true);
      const auto point = balance_at_sync<&Plot::resume>(a, [] { return balance_rotate(); });
      auto [target, reports] = expect_result<int>();
      post(a)->begin(point, target, phases);
      EXPECT_EQ(reports.get(), n * phases);
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(a[i]->steps(), phases);
        EXPECT_EQ(a[i]->where(), (before[static_cast<std::size_t>(i)] + phases) % 3);
      }
      destroy(a);
    });
}

TEST(balance_at_sync, is_work_of_the_array) {
  in_world(3, [&] {
    constexpr int n = 20;
    constexpr int phases = 6;
    auto a = create_array<Plot>(range<int>{n});
    measure_load(a, true);
    const auto point = balance_at_sync<&Plot::resume>(a, [] { return balance_rotate(); });
    for (int round = 1; round <= 5; ++round) {
      post(a)->begin(point, result_target{}, phases);
      quiescence(a);  // after the last phase, not between two
      for (int i = 0; i < n; ++i) EXPECT_EQ(a[i]->steps(), round * phases);
    }
    destroy(a);
  });
}

TEST(balance_every, moves_elements_while_they_work_until_it_is_stopped) {
  in_world(2, [] {
    auto a = create_array<Plot>(range<int>{10});
    measure_load(a, true);
    const auto balancing = balance_every(a, std::chrono::microseconds(50), [] { return balance_rotate(); });
    std::uint64_t sent = 0;
    while (balancing.last().moved == 0)
      for (int i = 0; i < 10; ++i) {
        post(a[i])->dig(++sent);
        yield();
      }
    EXPECT_GT(balancing.stop(), 0U);
    quiescence(a);
    std::uint64_t got = 0;
    for (int i = 0; i < 10; ++i) got += a[i]->total();
    EXPECT_EQ(got, sent * (sent + 1) / 2);
    quiescence();  // nothing balances any more
    destroy(a);
  });
}

struct moody final : balance_strategy {
  static inline std::atomic<bool> bad{true};
  [[nodiscard]] std::string_view name() const noexcept override { return "moody"; }
  [[nodiscard]] std::vector<std::uint32_t> assign(const load_database& loads) override {
    if (bad) throw std::domain_error("not today");
    return balance_rotate()->assign(loads);
  }
};

TEST(balance_every, goes_on_after_a_round_that_throws_and_says_what_it_threw) {
  moody::bad = true;
  const auto counts = in_world(2, [] {
    auto a = create_array<Plot>(range<int>{10});
    measure_load(a, true);
    const auto balancing =
        balance_every(a, std::chrono::microseconds(50), [] { return std::unique_ptr<balance_strategy>(new moody); });
    for (bool moved = false; !moved;) {
      try {
        moved = balancing.last().moved != 0;
      } catch (const std::domain_error& e) {
        EXPECT_NE(std::string(e.what()).find("not today"), std::string::npos) << e.what();
        moody::bad = false;
      }
      yield();
    }
    EXPECT_GT(balancing.stop(), 1U);
    quiescence();
    destroy(a);
  });
  EXPECT_EQ(counts[0].failed_posts, 1U);
}

TEST(balance_every, ends_at_once_however_long_its_interval_is) {
  in_world(2, [] {
    auto a = create_array<Plot>(range<int>{10});
    const auto balancing = balance_every(a, std::chrono::hours(24), [] { return balance_rotate(); });
    EXPECT_EQ(balancing.stop(), 0U);
    EXPECT_THROW((void)balancing.last(), process_gone);
    quiescence();
    destroy(a);
  });
}

void pretend(array<Plot> a, std::uint64_t ns) {
  for (auto* c : detail::part_of<Plot, int>(detail::here_pe(), a.id()).cells()) c->load_ns = ns;
}

TEST(balance_diffusion, spreads_what_is_crowded_without_a_central_place) {
  for (const std::uint32_t pes : {1U, 2U, 3U, 4U, 7U})
    in_world(pes, [&] {
      constexpr int n = 280;
      auto a =
          create_array<Plot>(range<int>{n}, {.home = placement_map<int>([](const int&, std::uint32_t) { return 0U; })});
      measure_load(a, true);
      call<&pretend>(pe(0), a, std::uint64_t{1000});
      const auto r = balance_diffusion(a, 4);
      EXPECT_EQ(r.elements, static_cast<std::size_t>(n));
      EXPECT_DOUBLE_EQ(r.before.max_over_average, pes);
      EXPECT_LT(r.after.max_over_average, 1.2);
      EXPECT_EQ(balance_diffusion(a).moved, 0U);  // what was measured is forgotten
      std::vector<int> on(pes);
      for (int i = 0; i < n; ++i) ++on[a[i]->where()];
      for (const int k : on) EXPECT_GT(k, n / static_cast<int>(pes) * 3 / 4);
      destroy(a);
    });
}

}  // namespace balance_auto_tests
}  // namespace orrery
