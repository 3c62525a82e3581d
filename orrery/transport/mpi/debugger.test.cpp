// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/debugger.hpp>

#include <csignal>

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::transport {
namespace debugger_tests {

// In a child: 1 if it is debugged, 2 if nobody may be.
int seen_by_child(bool debugged) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (debugged && ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(2);
    ::_exit(is_debugged() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_debugger, is_seen_by_who_is_held) {
  const int seen = seen_by_child(true);
  if (seen == 2) GTEST_SKIP() << "this system lets nobody be debugged";
  EXPECT_EQ(seen, 1);
  EXPECT_EQ(seen_by_child(false), is_debugged() ? 1 : 0);
}

}  // namespace debugger_tests
}  // namespace orrery::transport
