// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/window_tuner.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <gtest/gtest.h>

namespace {

using orrery::service::window_tuner;
using time_type = window_tuner::time;

// A service with a latency, and a rate that it cannot exceed: a client that is always limited by
// its window.
struct service_model {
  double latency_ns;
  double most;  // requests for each nanosecond
  [[nodiscard]] double rate(std::uint32_t window) const { return std::min(most, window / latency_ns); }
};

struct client_model {
  window_tuner tuner;
  double now = 1;
  void run(const service_model& s, int batches, bool limited = true) {
    for (int i = 0; i < batches; ++i) {
      if (limited) tuner.limited();
      const std::uint32_t batch = tuner.window() / 2;
      const double sent = now - s.latency_ns;
      now += batch / s.rate(tuner.window());
      (void)tuner.answered(batch, time_type(static_cast<std::int64_t>(sent)),
                           time_type(static_cast<std::int64_t>(now)));
    }
  }
};

TEST(window_tuner, takes_what_is_on_its_way_at_the_greatest_rate) {
  for (const double latency : {1'000.0, 20'000.0, 200'000.0, 1'000'000.0}) {
    client_model c;
    const service_model s{latency, 0.01};
    c.run(s, 20'000);
    EXPECT_GE(s.rate(c.tuner.window()), 0.95 * std::min(s.most, window_tuner::greatest / latency)) << latency;
  }
}
TEST(window_tuner, is_not_much_larger_than_needed) {
  client_model c;
  c.run({20'000.0, 0.01}, 200'000);  // 200 requests are enough
  EXPECT_LE(c.tuner.window(), 1024U);
  EXPECT_GE(c.tuner.window(), 128U);
}
TEST(window_tuner, follows_a_service_that_becomes_another_one) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000);
  const service_model far{500'000.0, 0.01};  // 5,000
  c.run(far, 200'000);
  EXPECT_GE(far.rate(c.tuner.window()), 0.0095);
}
TEST(window_tuner, learns_nothing_from_a_client_that_does_not_wait) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000, false);
  EXPECT_EQ(c.tuner.window(), window_tuner::first);
}

}  // namespace
