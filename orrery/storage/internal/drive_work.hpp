// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>
#include <orrery/storage/sweeper.hpp>

#include <vector>

// The measurements of a sweep.
namespace orrery::storage::internal {

/// The work of the drives of an array so far.
struct drive_work {
  /// In which they had something to do, mean of all; of several nodes that have their own devices,
  /// that which had most.
  double seconds = 0;
  double pages_read = 0;
  double pages_written = 0;
};
/// Asks all its devices. Parks. Throws what calls throw.
[[nodiscard]] drive_work work_of(const array& a);

/// Makes times of the clocks of other machines those of the caller's, which it asks for: to some
/// tens of microseconds. Parks. Throws what calls throw.
void to_own_clock(std::vector<work_log>& logs);

}  // namespace orrery::storage::internal
