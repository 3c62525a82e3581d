// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace orrery::scheduler {

/// Where the code of the program lies: not that of shared libraries, which this may be a part of.
struct program_code {
  const char* begin = nullptr;  ///< what offsets are counted from
  const char* end = nullptr;

  [[nodiscard]] bool contains(const void* p) const noexcept {
    return static_cast<const char*>(p) >= begin && static_cast<const char*>(p) < end;
  }
  [[nodiscard]] std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
};

/// Any thread; does not park.
[[nodiscard]] const program_code& code_of_program() noexcept;

}  // namespace orrery::scheduler
