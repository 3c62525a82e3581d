// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace orrery::storage::testing {

/// For tests: tells a function each file that is brought to its drive, before that happens.
///
/// It stands before the C library's `fdatasync`, and makes programs that begin while it lives
/// transfer by helper threads (`ORRERY_IO`), which call it: one at a time, and the function with
/// them. One object at a time, made and destroyed outside programs.
class flush_watch {
 public:
  explicit flush_watch(std::function<void(const std::string& file)> f);
  flush_watch(const flush_watch&) = delete;
  flush_watch& operator=(const flush_watch&) = delete;
  ~flush_watch();

 private:
  std::optional<std::string> before_;  // the variable's value
};

}  // namespace orrery::storage::testing
