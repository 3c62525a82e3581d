// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

// SIGHUP, SIGINT and SIGTERM: the compiler that runs ends with what it has started, the files in
// between go, and then the signal ends this program, as it would have.
namespace orrery_cc {

/// Why a call of the compiler has not come to its end.
struct interrupted {
  int signal = 0;
};

/// From now on such a signal interrupts the call that runs, or the next one. One that is ignored
/// stays so.
void take_interruptions();
/// Waits for a compiler, the leader of a process group, and returns its status as waitpid has it.
/// Throws interrupted.
[[nodiscard]] int wait_for_group(pid_t leader);
/// Throws interrupted if such a signal has come.
void check_interruption();

}  // namespace orrery_cc
