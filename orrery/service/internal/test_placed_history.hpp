// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: histories of any length, whose replies say when they took effect.

#include <orrery/service/internal/test_history.hpp>

#include <string>
#include <vector>

namespace orrery::testing {

/// Whether the level allows the history, as its replies say that it happened: point requests for
/// one key in the order of (version, moment), snapshots behind those that each part says.
///
/// The test replays that order for each key. Then these orders, the beginnings and ends, and the
/// order of requests that the level promises must not contradict each other: no circle of them may
/// exist. So there is one order of all events that explains all replies. It takes O(n log n), for
/// points and snapshots together. Empty, or what is wrong.
///
/// For `unordered`, `per_key` and `sequential`; for `total` see find_total_violation.
[[nodiscard]] std::string find_placed_violation(const std::vector<list_event>& history, consistency level);

}  // namespace orrery::testing
