// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace orrery::storage::internal {

/// Says once on stderr for what its owner waits, if that takes longer than it should.
class patience {
 public:
  /// `what()` gives what is waited for.
  template <class F>
  void say(F&& what) {
    constexpr auto silent = std::chrono::milliseconds(200);
    if (said_ || waited() < silent) return;
    said_ = true;
    const std::string line = fmt::format("orrery: waiting for {}\n", std::forward<F>(what)());
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
  [[nodiscard]] std::chrono::nanoseconds waited() const { return std::chrono::steady_clock::now() - since_; }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool said_ = false;
};

}  // namespace orrery::storage::internal
