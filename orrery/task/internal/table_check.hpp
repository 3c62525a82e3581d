// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>

namespace orrery::task_detail {

/// Looks whether the table of a message type makes sense, and those that it leads to.
///
/// Problem: a table that was written by hand may say that a pointer lies outside of the structure,
/// or count elements of no size; whatever follows it touches memory that is not the message's.
///
/// A table is looked at when a call uses it first. Each thread remembers some of those it has
/// found to be right, by their address and what they say, so that a call costs a comparison.
///
/// Throws usage_error, which names the message, the entry and what is wrong with it.
void check_table(const orrery_message_type& type);

}  // namespace orrery::task_detail
