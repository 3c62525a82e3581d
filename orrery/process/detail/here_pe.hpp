// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/pe.hpp>

namespace orrery::detail {

using scheduler::pe;
using scheduler::slot;

[[noreturn]] void throw_not_running();

/// The PE of the caller. Throws usage_error outside of the runtime.
[[nodiscard]] inline pe& here_pe() {
  pe* p = scheduler::current_pe;
  if (p == nullptr) [[unlikely]]
    throw_not_running();
  return *p;
}

}  // namespace orrery::detail
