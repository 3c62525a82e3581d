// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace orrery {

/// A drive of a simulated world, without data: how long transfers take on it.
///
/// Problem: files are real in a simulation, so a program cannot be watched with drives that are not
/// there. This is a drive's queue and nothing else. A transfer takes a seek and its bytes at the
/// drive's rate (`drive=RATE:SEEK` of --orrery-sim), and begins when the one before has ended.
/// Other processes of the PE go on meanwhile. In a world without such drives transfers take no
/// time.
///
/// Owned by one process, which is the drive's server; used by its methods only, of which several
/// may wait if the class is reentrant.
///
///     simulated_drive drive;
///     drive.transfer(32 << 20);
class simulated_drive {
 public:
  /// When a transfer that is asked for now will have ended. Does not park.
  std::chrono::nanoseconds reserve(std::uint64_t bytes);
  /// Returns when it has. Parks. Throws stopped.
  void transfer(std::uint64_t bytes);

 private:
  std::chrono::nanoseconds free_{0};  // when all have ended that were asked for
};

/// Parks the calling process until that time of orrery::now(). Throws stopped.
void sleep_until(std::chrono::nanoseconds time);

}  // namespace orrery
