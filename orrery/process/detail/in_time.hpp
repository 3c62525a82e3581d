// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/here_pe.hpp>

namespace orrery::detail {

/// Whether f() took something back in time. At the end of the program, when only destructors run,
/// nothing is left to be taken back, and this is false: destructors need no thought for that.
/// Throws what f throws.
template <class F>
bool in_time(F&& f) {
  return here_pe().shutdown().stage() != scheduler::shutdown_stage::destroying && f();
}

}  // namespace orrery::detail
