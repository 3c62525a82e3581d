// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/thread_limits.hpp>

#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::transport {
namespace thread_limits_tests {

TEST(thread_limits, are_what_advice_is_about_where_addresses_are_left) {
  EXPECT_NE(more_threads_advice().find("ulimit -u"), std::string::npos) << more_threads_advice();
}

TEST(thread_limits, are_told_from_a_limit_of_address_space) {
  if (ORRERY_TEST_SANITIZED) GTEST_SKIP() << "sanitizers need the address space";
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    const bool good = ::setrlimit(RLIMIT_AS, &limit) == 0 && address_space_limit() == 1U << 20;
    const std::string advice = more_threads_advice();
    const bool said = advice.find("ulimit -v), which is 1024 KiB") != std::string::npos &&
                      advice.find("--orrery-memory") != std::string::npos &&
                      advice.find("ulimit -u") == std::string::npos;
    ::_exit(good && said ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace thread_limits_tests
}  // namespace orrery::transport
