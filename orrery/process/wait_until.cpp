// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/wait_until.hpp>

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/wire/error.hpp>

#include <fmt/format.h>

namespace orrery::detail {

void throw_no_method() {
  here_pe().require_process();
  throw usage_error(errc::bad_argument, verbatim,
                    "wait_until: it waits until another method has changed the object, so only a method of a process "
                    "can; a function waits in receive, for a future, or calls a process that waits");
}

void require_caller() {
  const scheduler::pe& self = here_pe();
  const scheduler::activation* const a = self.active();
  if (a == nullptr || a->serving == nullptr || !a->serving->remote || a->serving->reply == 0) return;
  const std::uint32_t caller = a->serving->source_pe;
  if (!self.owner().reachable(caller))
    throw node_lost(verbatim, fmt::format("PE {}, which has called and waited, is not there any more", caller));
}

}  // namespace orrery::detail
