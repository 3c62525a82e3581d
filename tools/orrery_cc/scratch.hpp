// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace orrery_cc {

/// A folder for the files in between, in the one that TMPDIR names, or in /tmp; gone at the end of its scope.
class scratch {
 public:
  /// Throws failed.
  scratch();
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { remove(); }
  void remove() const {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return path_ / name; }
  /// The file with this text. Throws failed.
  [[nodiscard]] std::filesystem::path write(const std::string& name, const std::string& text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace orrery_cc
