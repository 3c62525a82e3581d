// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/wait_until.hpp>

#include <orrery/process/future.hpp>

namespace orrery::detail {

void wait_for_condition(bool (*holds)(void*), void* what, std::size_t bytes) {
  (void)here_pe().conditions().wait({holds, what, bytes});
}

bool wait_for_condition(bool (*holds)(void*), void* what, std::size_t bytes, time_limit d) {
  return here_pe().conditions().wait({holds, what, bytes}, deadline_after(d));
}

}  // namespace orrery::detail
