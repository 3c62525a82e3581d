// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery::storage::internal {

/// A path as JSON can have it, and as no other path is written: as it is, if it is UTF-8; else with
/// all bytes above 127 as %XX, and a word before it that begins no absolute path. Any thread.
inline std::string path_text(const std::string& path) {
  try {
    (void)nlohmann::json(path).dump();
    return path;
  } catch (const nlohmann::json::type_error&) {
    std::string text = "percent-encoded:";
    for (const char c : path) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte > 127 || c == '%')
        text += fmt::format("%{:02X}", byte);
      else
        text += c;
    }
    return text;
  }
}

}  // namespace orrery::storage::internal
