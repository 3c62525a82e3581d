// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: programs with mistakes that --orrery-check-sharing has to find, and the same
// without them.

#include <string>
#include <vector>

namespace orrery::testing {

/// Runs fifteen programs, each with one mistake, in a checked world of at least two PEs. Returns
/// what the checker did not say, or said wrongly.
[[nodiscard]] std::vector<std::string> planted_mistakes_missed();

/// Runs programs in which messages, calls, futures, collectives and groups order all accesses.
/// Returns what the checker says of them.
[[nodiscard]] std::vector<std::string> false_alarms();

}  // namespace orrery::testing
