// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace orrery::testing {

/// A folder on a drive, gone at the end of the scope.
struct scratch_folder {
  std::string path = "/var/tmp/orrery-test-XXXXXX";
  scratch_folder() {
    if (::mkdtemp(path.data()) == nullptr) std::abort();
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path + "/" + name; }
};

}  // namespace orrery::testing
