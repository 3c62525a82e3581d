// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/interruption.hpp>

#include <cerrno>
#include <csignal>
#include <initializer_list>

#include <sys/wait.h>

namespace orrery_cc {

namespace {

volatile std::sig_atomic_t caught = 0;
volatile std::sig_atomic_t running = 0;  // the leader of the group

void interrupt(int signal) {
  const int before = errno;
  caught = signal;
  if (running != 0) ::kill(-static_cast<pid_t>(running), signal);
  errno = before;
}

}  // namespace

void take_interruptions() {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction before{};
    ::sigaction(signal, nullptr, &before);
    if (before.sa_handler == SIG_IGN) continue;
    struct sigaction now{};
    now.sa_handler = &interrupt;
    ::sigaction(signal, &now, nullptr);
  }
}

int wait_for_group(pid_t leader) {
  running = leader;
  if (caught != 0) ::kill(-leader, caught);  // it came before this one was known
  int status = 0;
  while (::waitpid(leader, &status, 0) < 0 && errno == EINTR) {
  }
  running = 0;
  check_interruption();
  return status;
}

void check_interruption() {
  if (caught != 0) throw interrupted{caught};
}

}  // namespace orrery_cc
