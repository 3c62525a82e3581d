// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of `orrery-cc`: runs it as a user does, in a folder of its own.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery_cc_tests {

namespace fs = std::filesystem;
using std::string;

inline string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A folder for one test, gone at its end, in which commands of the shell run.
class orrery_cc : public ::testing::Test {
 protected:
  orrery_cc() {
    string pattern = (fs::temp_directory_path() / "orrery-cc-test-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    folder_ = pattern;
  }
  ~orrery_cc() override { fs::remove_all(folder_); }

  void write(const string& name, const string& text) const { std::ofstream(folder_ / name, std::ios::binary) << text; }
  [[nodiscard]] string file(const string& name) const { return read(folder_ / name); }
  [[nodiscard]] bool exists(const string& name) const { return fs::exists(folder_ / name); }
  // The exit code; what it says is in said().
  int run(const string& command) {
    const string all = "cd '" + folder_.string() +
                       "' && export ORRERY_CC='" TEST_C_COMPILER "' ORRERY_CC_FLAGS='" TEST_C_FLAGS
                       "' && PATH=" TEST_TOOLS ":$PATH && { " +
                       command + "; } > said 2>&1";
    const int status = std::system(all.c_str());  // NOLINT: a test
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] string said() const { return file("said"); }

 private:
  fs::path folder_;
};

}  // namespace orrery_cc_tests
