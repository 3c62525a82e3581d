// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of `orrery data`: runs it as a user does, and Python beside it.

#include <orrery/storage/internal/test_support.hpp>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::testing {

using storage::testing::scratch;

struct outcome {
  int code;  ///< below 0: minus the signal that ended it
  std::string text;
};
inline outcome shell(const std::string& command) {
  FILE* const out = ::popen(("{ " + command + "\n} 2>&1").c_str(), "r");
  if (out == nullptr) return {1000, "popen"};
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), out)) > 0;) text.append(buffer.data(), n);
  const int status = ::pclose(out);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), text};
}
inline std::string program_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "orrery").string();
}
inline outcome orrery_data(const std::string& arguments) {
  return shell("ORRERY_PES=2 " + program_path() + " data " + arguments);
}
inline void expect_good(const std::string& arguments) {
  const outcome o = orrery_data(arguments);
  EXPECT_EQ(o.code, 0) << arguments << "\n" << o.text;
}
/// It says why, once and in words of its own, and ends by itself.
inline void expect_bad(const outcome& o, const std::string& why) {
  EXPECT_GT(o.code, 0) << o.text;
  EXPECT_NE(o.text.find(why), std::string::npos) << "'" << why << "' is not in: " << o.text;
}
inline void expect_bad(const std::string& arguments, const std::string& why) {
  expect_bad(orrery_data(arguments), why);
}

inline std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}
inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// A Python that has NumPy and h5py; empty if there is none.
inline const std::string& python_with_h5py() {
  static const std::string found = [] {
    for (const std::string p : {"python3", "/usr/bin/python3"})
      if (shell(p + " -c 'import numpy, h5py'").code == 0) return p;
    return std::string();
  }();
  return found;
}
/// Runs a program in a folder; it must not fail.
inline void python(const std::string& folder, const std::string& source) {
  write_text(folder + "/program.py", "import numpy as np, h5py, gzip, os, struct, sys\n" + source);
  const outcome o = shell("cd " + folder + " && " + python_with_h5py() + " program.py");
  EXPECT_EQ(o.code, 0) << source << "\n" << o.text;
}

/// Runs a script with a file system of 8 MiB at its folder `small`; nothing where that is not allowed.
inline bool can_mount() { return shell("unshare -m -r true").code == 0 || shell("unshare -m true").code == 0; }
inline outcome with_small_disk(const std::string& folder, const std::string& script) {
  const std::string unshare = ::geteuid() == 0 ? "unshare -m" : "unshare -m -r";
  std::filesystem::create_directory(folder + "/small");
  write_text(folder + "/script", "set -u\nexport ORRERY_PES=2\nO='" + program_path() + " data'\ncd " + folder +
                                     "\nmount -t tmpfs -o size=8m none small || exit 99\n" + script);
  return shell(unshare + " bash " + folder + "/script");
}

}  // namespace orrery::testing

/// NumPy and h5py are the other opinion of these tests; ./run installs them.
#define ORRERY_NEEDS_H5PY() \
  if (orrery::testing::python_with_h5py().empty()) GTEST_SKIP() << "python3-h5py is not installed"
