// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Measurements of arrays, each in a simulated world of its own. Worlds have machines of 8 PEs (or one smaller one).
namespace scaling {

/// Virtual time from the post of a broadcast until the result of the reduction in which it ends, with so many elements on each PE.
double collective_us(std::uint32_t pes, int each, const std::string& net);

/// Bytes that a PE keeps of an array besides the objects.
struct footprints {
  double created = 0;  ///< after the creation, on average
  double moved = 0;  ///< after each element has moved at random and sent a message to another one
  double moved_most = 0;  ///< the same, of the PE that keeps most
  double elsewhere = 0;  ///< entries of elements on other PEs, then
};
footprints storage(std::uint32_t pes, int each);

/// Hops of a message, on average, of the first that each sender sends after so many waves of migration, of the second, and so on. In a wave every
/// element goes to a PE chosen at random; senders stay.
std::vector<double> hops_after(std::uint32_t pes, int each, int waves);

/// With so many homes of each index (array_options::homes), when all elements have moved: what the first call of a sender takes, which does not know
/// where the element is, and what a move costs.
struct first_contacts {
  double hops = 0;  ///< of the message of the call
  double call_us = 0;  ///< virtual time, until the result is there
  double messages_of_move = 0;  ///< all that is sent for a migration, the element included
};
first_contacts with_homes(std::uint32_t pes, int each, std::uint32_t homes);

/// Virtual time of a step of the Jacobi program: each PE has a square of cells_of_pe x cells_of_pe, in so many blocks. Both numbers, of PEs and of
/// blocks, are squares.
double jacobi_step_us(std::uint32_t pes, int blocks_of_pe, int cells_of_pe);

}  // namespace scaling
