// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace orrery::transport {

/// A short text in a message of fixed size, such as the name of a host: what is longer is cut.
///
/// It may have come from another rank, which may have written into all of its bytes. So nobody
/// looks for its end behind them.
template <std::size_t Room>
struct fixed_text {
  char bytes[Room] = {};

  void set(std::string_view text) noexcept {
    const std::size_t n = std::min(text.size(), Room - 1);
    std::memcpy(bytes, text.data(), n);
    std::memset(bytes + n, 0, Room - n);
  }
  [[nodiscard]] std::string_view view() const noexcept { return {bytes, ::strnlen(bytes, Room)}; }
  [[nodiscard]] std::string str() const { return std::string(view()); }
};

}  // namespace orrery::transport
