// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::transport {

/// A barrier of all ranks through MPICH's launcher, in which no rank is in the MPI library.
///
/// Problem: in MPI_Finalize, MPICH 4 over UCX asks each rank that this one has sent something for
/// an answer, and then waits for the launcher without answering others. A rank that still makes
/// progress answers those that are in MPI_Finalize already. They go on, and nobody answers when
/// that rank asks. So MPI_Finalize does not return. This barrier makes all ranks enter MPI_Finalize
/// after all of them have made their last progress. Each then asks before it answers. The barrier
/// is the one of PMI, version 1, which the library uses itself, on the connection of the library.
///
/// `fd`: the number that PMI_FD had; the library does not use it meanwhile. Blocks until all ranks
/// have called it. False if the launcher does not answer as that protocol has it.
[[nodiscard]] bool wait_for_all_at_launcher(int fd) noexcept;

/// Asks MPICH's launcher to end all ranks, with exit code 1. Same protocol, same `fd`; if
/// it is no socket, nothing happens.
void end_all_at_launcher(int fd) noexcept;

}  // namespace orrery::transport
