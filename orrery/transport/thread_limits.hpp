// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::transport {

/// The limit of this OS process's address space (`ulimit -v`) in bytes; nothing if there is none.
/// Any thread.
[[nodiscard]] std::optional<std::uint64_t> address_space_limit() noexcept;

/// How to let more threads start, for errors: "raise ...". Where a thread cannot be started, the
/// system says EAGAIN, be it that there are too many or that there are no addresses for its stack.
/// So this looks whether such a stack is to be had. Any thread; called after a failure.
[[nodiscard]] std::string more_threads_advice();

}  // namespace orrery::transport
