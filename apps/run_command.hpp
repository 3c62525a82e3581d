// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/orrery.hpp>
#include <tools/orrery/command_line.hpp>

#include <cerrno>
#include <cstdio>
#include <exception>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

/// Reads the command line `words` and runs work(): the body of an application's `main`. Returns the
/// exit code: that of `work`, or 1 if `work` throws, or stdout does not take what it has printed,
/// after a line with the application's name; 2 if the command line is wrong.
template <class Work>
int run_command(CLI::App& app, const orrery::args& words, Work work) {
  // CLI11 takes them from the end
  std::vector<std::string> reversed(words.rbegin(), std::prev(words.rend()));
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return orrery::tool::refuse(app, {words.begin() + 1, words.end()}, e);
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
