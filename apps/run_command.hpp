// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/orrery.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

/// A check of an option that is a size: CLI11 would take -1 for the largest one.
inline std::string not_negative(const std::string& text) {
  return text.starts_with('-') ? text + " is negative" : std::string();
}

/// Reads the command line `words` and runs work(): the body of an application's `main`. Returns the
/// exit code: that of `work`, or 1 if `work` throws, or stdout does not take what it has printed,
/// after a line with the application's name.
template <class Work>
int run_command(CLI::App& app, const orrery::args& words, Work work) {
  // CLI11 takes them from the end
  std::vector<std::string> reversed(words.rbegin(), std::prev(words.rend()));
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  }
  try {
    const int code = work();
    if (code == 0 && (std::fflush(stdout) != 0 || std::ferror(stdout) != 0))
      throw std::system_error(errno, std::system_category(), "the output cannot be written");
    return code;
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}: {}\n", app.get_name(), e.what());
    return 1;
  }
}
