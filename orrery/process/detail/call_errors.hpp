// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/here_pe.hpp>

#include <exception>
#include <string>

// The errors of calls and posts that cannot be executed, and the error that a caller gets for what
// its method threw.
namespace orrery::detail {

/// Class and method, for texts.
[[nodiscard]] std::string call_name(const scheduler::handler& h);
[[noreturn]] void throw_gone(const scheduler::handler& h, address to);
/// True if it is a process_gone.
[[nodiscard]] bool is_process_gone(const std::exception_ptr& why) noexcept;
/// In a handler of what a method threw that ran inline: throws what its caller gets.
[[noreturn, gnu::cold]] void rethrow_as_received(const scheduler::handler& h, pe& self);
[[noreturn]] void throw_wrong_class(const scheduler::handler& h, const scheduler::class_info* is);
/// Fails a message whose process is gone: completes `sink`, or reports a post if that is null.
void fail_gone(const scheduler::handler& h, address to, scheduler::sink* sink, pe& self);

}  // namespace orrery::detail
