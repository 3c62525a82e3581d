// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::transport {

/// When this OS process ends by itself, it ends at once: streams are flushed, and what libraries
/// have left to do at exit is not done. After the loss of a rank MPI libraries do not return from
/// that.
void exit_without_clean_up() noexcept;
/// Says the line, and ends this OS process with exit code 1, at once.
[[noreturn]] void end_at_once(const std::string& line) noexcept;

}  // namespace orrery::transport
