// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/shm/peer.hpp>

#include <cstdint>
#include <string>

namespace orrery::detail {

/// Whether an OS process of this machine is stopped: by a signal (SIGSTOP, Ctrl-Z) or a debugger.
[[nodiscard]] bool is_stopped(const transport::peer_id& id);

/// For people: "PE 3 (node 2, program 'tiny', pid 1234)", as far as the world knows.
[[nodiscard]] std::string pe_in_words(const scheduler::node& n, std::uint32_t pe);

/// For the error of a wait that took too long: that the PE has not answered, and which nodes of
/// this machine are stopped. It may wait for one of these, if it is not stopped itself.
[[nodiscard]] std::string why_silent(const scheduler::node& n, std::uint32_t pe);

}  // namespace orrery::detail
