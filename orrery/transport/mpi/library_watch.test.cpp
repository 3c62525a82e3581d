// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/library_watch.hpp>

#include <string>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace library_watch_tests {

using namespace std::chrono_literals;

/// A line that another thread says.
struct one_line {
  std::mutex mutex;
  std::condition_variable comes;
  std::string line;
  void say(const std::string& text) {
    const std::scoped_lock lock{mutex};
    line = text;
    comes.notify_all();
  }
  std::string await() {
    std::unique_lock lock{mutex};
    comes.wait(lock, [this] { return !line.empty(); });
    return line;
  }
};

TEST(a_library_watch, ends_the_node_when_a_call_does_not_return) {
  one_line said;
  library_watch watch(20ms, 1h, [](const std::string&) {}, [&](const std::string& line) { said.say(line); });
  const library_watch::visit v(watch, library_watch::kind::working, "MPI_Test");
  const std::string line = said.await();
  EXPECT_TRUE(line.starts_with("MPI_Test has not returned for ")) << line;
  EXPECT_NE(line.find("this node ends"), std::string::npos) << line;
}

TEST(a_library_watch, says_that_a_start_takes_long_and_ends_the_rank_in_the_end) {
  one_line warning;
  one_line last;
  library_watch watch(
      1h, 10ms, [&](const std::string& line) { warning.say(line); }, [&](const std::string& line) { last.say(line); });
  const library_watch::visit v(watch, library_watch::kind::starting, "MPI_Init_thread");
  EXPECT_NE(warning.await().find("it waits for other ranks"), std::string::npos) << warning.line;
  EXPECT_NE(last.await().find("this one ends"), std::string::npos) << last.line;
}

TEST(a_library_watch, says_nothing_between_calls_and_of_calls_that_return) {
  one_line said;
  {
    library_watch watch(24h, 24h, [](const std::string&) {}, [&](const std::string& line) { said.say(line); });
    for (int i = 0; i < 1000; ++i) const library_watch::visit v(watch, library_watch::kind::working, "MPI_Test");
  }
  EXPECT_EQ(said.line, "");
}

}  // namespace library_watch_tests
}  // namespace orrery::transport
