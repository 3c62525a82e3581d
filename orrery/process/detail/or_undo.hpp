// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace orrery::detail {

/// f(). If it throws, undo() first, whose own failure is not told, and then what f threw. Both may
/// park.
template <class F, class Undo>
void or_undo(F f, Undo undo) {
  try {
    f();
  } catch (...) {
    try {
      undo();
    } catch (const std::exception&) {  // the first failure is told
    }
    throw;
  }
}

}  // namespace orrery::detail
