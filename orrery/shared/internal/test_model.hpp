// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: shared data against a model.

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::testing {

/// Runs a team that writes a shared vector or matrix in rounds, each at random by one of the
/// behaviours, and compares what each member reads, by each of the ways to read, with a plain
/// vector. To be called in a process, in any world; returns what was wrong.
[[nodiscard]] std::vector<std::string> compare_with_model(std::uint64_t seed);

}  // namespace orrery::testing
