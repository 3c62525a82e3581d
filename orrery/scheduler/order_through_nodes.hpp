// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/sanitizers.hpp>

#if defined(ORRERY_TSAN)
#include <atomic>
#endif

namespace orrery::scheduler {

// Tells ThreadSanitizer about the order of messages between nodes.
//
// Problem: a PE writes memory and sends to another node; a process there sends to a second PE of
// the first node, which reads that memory. The two messages order the accesses. ThreadSanitizer
// watches one OS process, does not see the way through the other one, and reports a data race.
//
// So where it watches, each message that leaves the node is a release, and each that arrives from
// another node an acquire, of one variable. This orders more than the messages do: a race may be
// missed that is only hidden by them, and none is reported that is not there. Elsewhere both
// functions are empty.
#if defined(ORRERY_TSAN)
inline std::atomic<unsigned> sent_to_other_nodes{0};
// SYNC: each is the other's partner.
inline void order_before_other_nodes() noexcept { sent_to_other_nodes.fetch_add(1, std::memory_order_release); }
inline void order_after_other_nodes() noexcept { (void)sent_to_other_nodes.load(std::memory_order_acquire); }
#else
inline void order_before_other_nodes() noexcept {}
inline void order_after_other_nodes() noexcept {}
#endif

}  // namespace orrery::scheduler
