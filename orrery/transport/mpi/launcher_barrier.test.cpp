// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/launcher_barrier.hpp>

#include <array>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::transport {
namespace launcher_barrier_tests {

/// Both ends of a connection to a launcher, which has answered already.
struct connection {
  explicit connection(std::string_view answer) {
    (void)::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data());
    (void)!::write(ends[1], answer.data(), answer.size());
    (void)::shutdown(ends[1], SHUT_WR);
  }
  ~connection() {
    for (const int end : ends) ::close(end);
  }
  static std::string next(int fd) {
    std::array<char, 100> text{};
    const ssize_t n = ::read(fd, text.data(), text.size());
    return {text.data(), n > 0 ? static_cast<std::size_t>(n) : 0};
  }
  std::array<int, 2> ends{};
};

TEST(a_barrier_at_the_launcher, asks_once_and_leaves_what_follows_the_answer) {
  const connection c("cmd=barrier_out\ncmd=finalize_ack\n");
  EXPECT_TRUE(wait_for_all_at_launcher(c.ends[0]));
  EXPECT_EQ(connection::next(c.ends[1]), "cmd=barrier_in\n");
  EXPECT_EQ(connection::next(c.ends[0]), "cmd=finalize_ack\n");
}
TEST(a_barrier_at_the_launcher, is_none_if_the_launcher_says_something_else_or_is_gone) {
  for (const std::string_view answer : {"cmd=abort\n", "", "cmd=barrier_o", "\n"}) {
    const connection c(answer);
    EXPECT_FALSE(wait_for_all_at_launcher(c.ends[0])) << answer;
  }
  const connection c(std::string(1000, 'x'));
  EXPECT_FALSE(wait_for_all_at_launcher(c.ends[0]));
  EXPECT_FALSE(wait_for_all_at_launcher(-1));
}

TEST(a_launcher, is_asked_to_end_all_ranks_where_it_listens) {
  const connection c("");
  end_all_at_launcher(c.ends[0]);
  EXPECT_EQ(connection::next(c.ends[1]), "cmd=abort exitcode=1\n");
  end_all_at_launcher(-1);
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  end_all_at_launcher(pipe[1]);
  ::close(pipe[1]);
  EXPECT_EQ(connection::next(pipe[0]), "");
  ::close(pipe[0]);
}

}  // namespace launcher_barrier_tests
}  // namespace orrery::transport
