// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tools/orrery_cc/failure.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <fmt/format.h>

namespace orrery_cc {

/// A folder for the files in between; gone at the end of its scope.
class scratch {
 public:
  scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "orrery-cc-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) give_up(fmt::format("no folder can be made in {}", pattern));
    path_ = pattern;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { remove(); }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace orrery_cc
