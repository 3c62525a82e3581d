// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/here_pe.hpp>

#include <orrery/scheduler/fork.hpp>
#include <orrery/wire/error.hpp>

namespace orrery::detail {

void throw_not_running() {
  if (scheduler::is_forked_child)
    throw usage_error(
        errc::not_running, verbatim,
        "this OS process was made with fork() in a method and is no part of the world: it can call no process; "
        "do that in the parent, or let the child exec a program that joins the world");
  throw usage_error(errc::not_running, "this call");
}

}  // namespace orrery::detail
