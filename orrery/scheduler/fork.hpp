// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::scheduler {

/// True in an OS process that a method has made with fork(); set before fork() returns there.
extern constinit bool is_forked_child;

/// Keeps a child of fork() out of the world of its parent.
///
/// Problem: a method may call fork(). The child has the memory of its parent, also the memory that
/// nodes share, but only one of the threads: a call from there would write into the parent's rings,
/// and if the method returned, the child would go on as the parent's PE. So from the first call of
/// this on, a PE that finds itself in such a child is no PE any more: calls from there throw
/// usage_error, and a method that returns there ends the child (end_forked_child). exec and _exit
/// work as ever. posix_spawn, system and popen are not affected. Any thread may call it, any number
/// of times.
void watch_for_fork();

/// Says what has happened and ends the child.
[[noreturn]] void end_forked_child() noexcept;

}  // namespace orrery::scheduler
