// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: tasks that pass buffers on at random, and a model of what has to be in them.

#include <orrery/task/task.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace orrery::testing {

/// A message with a buffer, as orrery-cc would make it.
struct parcel {
  int number;
  int hops;
  orrery_buffer values;
};
extern const orrery_message_type parcel_type;

/// A buffer of the calling task, filled with what follows from the two numbers.
[[nodiscard]] orrery_buffer filled(int number, int hops, std::size_t size);
/// The fault in it; empty: nothing.
[[nodiscard]] std::string wrong_in(const orrery_buffer& b, int number, int hops);

/// Workers on all PEs pass on so many parcels at random: as they came, kept for a while, in another
/// buffer. Called by a task; returns what was wrong.
[[nodiscard]] std::vector<std::string> pass_parcels(std::uint64_t seed, int workers, int parcels);

}  // namespace orrery::testing
