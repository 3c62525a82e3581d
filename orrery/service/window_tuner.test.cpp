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
  double requests = 0;
  /// Requests for each nanosecond.
  double run(const service_model& s, int batches, bool limited = true) {
    const double begin = now;
    requests = 0;
    for (int i = 0; i < batches; ++i) {
      if (limited) tuner.limited();
      const std::uint32_t batch = tuner.window() / 2;
      requests += batch;
      now += batch / s.rate(tuner.window());
      (void)tuner.answered(batch, time_type(static_cast<std::int64_t>(now)));
    }
    return requests / (now - begin);
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
TEST(window_tuner, gives_each_range_of_many_a_batch_worth_its_message) {
  client_model c;
  for (int i = 0; i < 50; ++i) c.tuner.divided(24);
  c.run({20'000.0, 0.01}, 20'000);  // 200 requests would be enough for the time of a message
  EXPECT_GE(c.tuner.window(), 24 * 2 * 60U);
}
TEST(window_tuner, learns_nothing_from_a_client_that_does_not_wait) {
  client_model c;
  c.run({20'000.0, 0.01}, 20'000, false);
  EXPECT_EQ(c.tuner.window(), window_tuner::first);
}

}  // namespace
