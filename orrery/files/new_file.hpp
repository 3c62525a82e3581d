// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::detail {

/// A file that gets its name when it is complete: until then it is beside it, and is removed if it
/// never is. Where the target is a link, that is the name that the link leads to. A target that is
/// no regular file, and one of an open file (/dev/stdout), is written as it is. Throws
/// std::system_error.
class new_file {
 public:
  explicit new_file(std::string path);
  new_file(const new_file&) = delete;
  new_file& operator=(const new_file&) = delete;
  ~new_file();
  /// Where to write.
  [[nodiscard]] const std::string& path() const { return beside_.empty() ? path_ : beside_; }
  void complete();

 private:
  std::string path_;
  std::string target_;  // where the links lead
  std::string beside_;
};

}  // namespace orrery::detail
