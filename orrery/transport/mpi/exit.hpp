// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::transport {

/// When this OS process ends by itself, it ends at once: streams are flushed, and what libraries have left to do at exit is
/// not done. After the loss of a rank MPI libraries do not return from that.
void exit_without_clean_up() noexcept;

}  // namespace orrery::transport
