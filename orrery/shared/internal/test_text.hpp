// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace orrery::testing {

/// The text says that; else the test fails, and shows both.
inline bool holds(const std::string& text, std::string_view part) {
  if (text.find(part) != std::string::npos) return true;
  ADD_FAILURE() << "'" << text << "' does not say '" << part << "'";
  return false;
}

}  // namespace orrery::testing
