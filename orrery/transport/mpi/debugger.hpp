// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::transport {

/// A debugger, or another tool that may stop this OS process, holds it. Reads a file of the system,
/// some 20 us. False if the system does not say.
[[nodiscard]] bool is_debugged() noexcept;

}  // namespace orrery::transport
