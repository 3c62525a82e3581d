// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: the promises of an access by default, as litmus tests.

#include <string>
#include <vector>

namespace orrery::testing {

/// Processes on all PEs of the world, which are at least two, write and read elements that
/// different PEs own, with no barrier between a write and a read: store buffering, message passing,
/// independent reads of independent writes, and elements of 8 bytes whose halves are equal. To be
/// called in a process, in any world; returns what no order of the accesses explains.
[[nodiscard]] std::vector<std::string> impossible_outcomes(int rounds);

}  // namespace orrery::testing
