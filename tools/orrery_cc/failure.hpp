// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery_cc {

/// Thrown when the program ends with this code; why was told already.
struct failed {
  int code;
};
/// Says on stderr why nothing can be done. Throws failed.
[[noreturn]] void give_up(const std::string& why);

}  // namespace orrery_cc
