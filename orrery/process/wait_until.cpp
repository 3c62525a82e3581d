// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/wait_until.hpp>

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/wire/error.hpp>

namespace orrery::detail {

void throw_no_method() {
  here_pe().require_process();
  throw usage_error(errc::bad_argument, verbatim,
                    "wait_until: it waits until another method has changed the object, so only a method of a process "
                    "can; a function waits in receive, for a future, or calls a process that waits");
}

}  // namespace orrery::detail
