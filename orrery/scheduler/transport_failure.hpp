// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::transport {
struct transport_error;
}

namespace orrery::scheduler {

/// A report of the transport, as the exception that a program sees: node_lost or world_error.
[[noreturn]] void throw_transport(const transport::transport_error& e);

}  // namespace orrery::scheduler
