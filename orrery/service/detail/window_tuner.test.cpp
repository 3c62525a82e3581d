// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/window_tuner.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

namespace window_tuner_tests {

using orrery::service::window_tuner;
using time_type = window_tuner::time;

// A service with a latency, a rate that it cannot exceed, and a cost of each batch, of which half a
// window makes one for each range. From some window on the batches leave the cache.
struct service_model {
  double latency_ns;
  double most;  // requests for each nanosecond
  double batch_ns = 0;
  double ranges = 1;
  double cached = 1e9;
  [[nodiscard]] double rate(std::uint32_t window) const {
    const double ns = 1 / most + batch_ns * std::min(1.0, 2 * ranges / window);
    return std::min(window > cached ? 0.7 / ns : 1 / ns, window / latency_ns);
  }
  [[nodiscard]] double best() const {
    double most_of_all = 0;
    for (auto w = window_tuner::least; w <= window_tuner::greatest; w *= 2)
      most_of_all = std::max(most_of_all, rate(w));
    return most_of_all;
  }
};

struct client_model {
  window_tuner tuner;
  double now = 1;
  double requests = 0;
  std::mt19937 random{1};
  double noise = 0;  // each half of a window takes up to so much longer

  /// So many halves of windows. Requests for each nanosecond, without the noise.
  double run(const service_model& s, int halves, bool limited = true) {
    double ns = 0;
    requests = 0;
    for (int i = 0; i < halves; ++i) {
      if (limited) tuner.limited();
      tuner.divided(static_cast<std::size_t>(s.ranges));
      const std::uint32_t window = tuner.window();
      const auto batch = std::max(1U, static_cast<std::uint32_t>(window / 2 / s.ranges));
      for (std::uint32_t left = window / 2; left != 0;) {
        const std::uint32_t n = std::min(left, batch);
        left -= n;
        requests += n;
        const double took = n / s.rate(window);
        ns += took;
        now += took * (1 + noise * std::uniform_real_distribution<double>()(random));
        (void)tuner.answered(n, time_type(static_cast<std::int64_t>(now)));
      }
    }
    return requests / ns;
  }
};

TEST(window_tuner, takes_what_is_on_its_way_at_the_greatest_rate) {
  for (const double latency : {1'000.0, 20'000.0, 200'000.0, 1'000'000.0}) {
    client_model c;
    const service_model s{latency, 0.01};
    c.run(s, 20'000);
    EXPECT_GE(c.run(s, 20'000), 0.95 * std::min(s.most, window_tuner::greatest / latency)) << latency;
  }
}
TEST(window_tuner, is_not_much_larger_than_needed) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000);  // 200 requests are enough
  EXPECT_LE(c.tuner.window(), 1024U);
  EXPECT_GE(c.tuner.window(), 128U);
}
TEST(window_tuner, follows_a_service_that_becomes_another_one) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000);
  const service_model far{500'000.0, 0.01};  // 5,000
  c.run(far, 200'000);
  EXPECT_GE(c.run(far, 20'000), 0.0095);
}
TEST(window_tuner, makes_batches_so_large_that_they_cost_little) {
  for (const double noise : {0.0, 1.0, 10.0}) {
    for (const double ranges : {1.0, 4.0, 23.0}) {
      for (const double batch_ns : {200.0, 1'500.0, 5'000.0}) {
        client_model c;
        c.noise = noise;
        const service_model s{20'000.0, 0.01, batch_ns, ranges};
        c.run(s, 1'000);
        EXPECT_GE(c.run(s, 4'000), 0.9 * s.best()) << noise << ' ' << ranges << ' ' << batch_ns;
      }
    }
  }
}
TEST(window_tuner, takes_no_batches_that_leave_the_cache) {
  client_model c;
  const service_model s{20'000.0, 0.02, 800, 1, 4096};
  c.run(s, 20'000);
  EXPECT_GE(c.run(s, 20'000), 0.9 * s.best());
}
TEST(window_tuner, gives_each_range_of_many_a_batch_worth_its_message) {
  client_model c;
  const service_model s{20'000.0, 0.01, 0, 24};  // 200 requests are enough for the latency
  c.run(s, 20'000);
  std::uint32_t most = 0;
  for (int i = 0; i < 1'000; ++i) {
    c.run(s, 1);
    most = std::max(most, c.tuner.window());
  }
  EXPECT_GE(most, 24 * 2 * 60U);
}
TEST(window_tuner, grows_at_once_when_requests_go_to_more_ranges) {
  client_model c;
  c.run({20'000.0, 0.01, 1'000, 1}, 20'000);
  const service_model more{20'000.0, 0.01, 1'000, 16};
  c.run(more, 200);
  EXPECT_GE(c.run(more, 2'000), 0.85 * more.best());
}
TEST(window_tuner, learns_nothing_from_a_client_that_does_not_wait) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000, false);
  EXPECT_EQ(c.tuner.window(), window_tuner::first);
}

}  // namespace window_tuner_tests
