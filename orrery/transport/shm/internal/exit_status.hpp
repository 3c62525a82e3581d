// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/shm/peer.hpp>

#include <string>

#include <sys/wait.h>

namespace orrery::transport::internal {

/// How a child ended, as a clause: "exited with status 1", "was killed by signal 9 (Killed)".
[[nodiscard]] std::string describe_exit(const siginfo_t& info);

/// The same of any OS process that has ended, as far as the system tells: of children (which stay
/// to be reaped) always, of others from Linux 6.15 on.
[[nodiscard]] std::string describe_end(const peer& ended);

}  // namespace orrery::transport::internal
