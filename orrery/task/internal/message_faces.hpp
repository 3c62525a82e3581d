// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/task/internal/mail.hpp>

#include <cstddef>
#include <cstdint>

// The common part of the two faces of messages, C (task.h) and C++ (task.hpp). Called by a process.
namespace orrery::task_detail {

/// Sends a copy of a structure and of what belongs to it; its buffers are passed on if this returns
/// `yes`. Throws what send_mail throws.
sent send_message(const orrery_task& to, std::uint64_t tag, const orrery_message_type& type, const void* value,
                  bool may_wait);
sent send_plain(const orrery_task& to, std::uint64_t tag, const void* data, std::size_t size, bool may_wait);

/// Waits for a message, by the strategy of the task that calls or (`sleeps`) asleep, and describes
/// it; with `take` it is the caller's. ORRERY_OK, ORRERY_EMPTY, ORRERY_TIMEOUT. May park. Throws
/// stopped, usage_error.
orrery_status receive_until(const std::uint64_t* tag, orrery_message* message, std::int64_t timeout_ns, bool take,
                            bool sleeps = false);
/// A message as C sees it; `taken`: it is the receiver's, who gives it to orrery_release.
void describe(scheduler::message& m, bool taken, orrery_message& to) noexcept;
/// Makes the bytes of a message of that type the structure. Throws bad_message.
void open_message(orrery_message& message, const orrery_message_type& type);

}  // namespace orrery::task_detail
