// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace orrery_cc {

/// The C compiler that the program calls, and where it finds the runtime.
///
/// ORRERY_CC names the compiler, `cc` if it is not set; ORRERY_CC_FLAGS is what is added to all its calls, for builds with a sanitizer. In the folder of a
/// build the library lies beside this program, else where it was installed.
class c_compiler {
 public:
  using words = std::vector<std::string>;
  c_compiler();

  /// From now on the compiler finds this file on its stdin, each time from the beginning. Throws failed.
  void give_stdin(const std::filesystem::path& file);
  /// Runs it and returns its exit code. `errors`: the file for what it says on stderr; empty: there. Throws failed,
  /// interrupted.
  [[nodiscard]] int call(const words& arguments, const std::filesystem::path& errors = {}) const;
  /// This program becomes the compiler. Throws failed if it cannot be run.
  [[noreturn]] void become(const words& arguments) const;

  /// Where <orrery/task.h> is found.
  [[nodiscard]] const std::filesystem::path& include() const noexcept { return include_; }
  /// What a program with tasks links.
  [[nodiscard]] words libraries() const;

 private:
  [[nodiscard]] words with(const words& arguments) const;

  words compiler_;
  words more_;
  std::filesystem::path library_;
  std::filesystem::path include_;
  bool rewinds_stdin_ = false;
};

}  // namespace orrery_cc
