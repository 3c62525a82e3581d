// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// How much the simulator can take: an array of ten elements for each of many PEs.
namespace bench {

struct simulated {
  double gib = 0;  ///< resident, with everything in it
  double collective_m_s = 0;  ///< millions of events a second of broadcasts that end in a reduction
  double message_m_s = 0;  ///< the same of messages between elements of different PEs
};

/// What counts as an event is what the program would be without a simulator: a method that is executed, or a message of the runtime between two PEs (a
/// part of a reduction, an acknowledgement). A message to an element is one, not one for its arrival and another for its execution. All fields are
/// -1 if what came out is wrong. Not to be called in a world.
simulated simulate(std::uint32_t pes, bool smoke);

}  // namespace bench
