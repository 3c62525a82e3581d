// SPDX-License-Identifier: Apache-2.0
#pragma once

// What command lines say of themselves where CLI11 would not.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace orrery::tool {

/// A transformation of an option that is a size, to be given behind CLI::AsSizeValue, as CLI11
/// begins with the last one: it would take -1B for the largest size, and 0100 and 0x40 for 64.
inline std::string decimal_size(std::string text) {
  if (text.starts_with('-')) throw CLI::ValidationError(text + " is negative");
  if (!text.empty() && !std::string_view("0123456789").contains(text[0]))
    throw CLI::ValidationError(text + " is no size: 256M");
  if (text.size() > 1 && text[0] == '0' && std::string_view("0123456789xX").contains(text[1]))
    throw CLI::ValidationError(text + ": sizes are decimal and do not begin with 0");
  return text;
}

/// The exit code after a command line that could not be read: 0 if it asked for help, else 2. Says
/// why; CLI11 itself would not name a command that there is not.
inline int refuse(CLI::App& app, const std::vector<std::string>& words, const CLI::ParseError& why) {
  CLI::App* at = &app;
  for (const std::string& word : words) {
    const auto commands = at->get_subcommands(std::function<bool(CLI::App*)>([](CLI::App*) { return true; }));
    if (word.starts_with('-') || commands.empty()) break;
    CLI::App* next = nullptr;
    std::vector<std::string> names;
    for (CLI::App* c : commands) {
      if (c->get_name().empty()) continue;  // a group of options
      names.push_back(c->get_name());
      if (names.back() == word) next = c;
    }
    if (names.empty()) break;
    if (next == nullptr) {
      fmt::print(stderr, "{}: there is no command '{}': {}\n", app.get_name(), word, fmt::join(names, ", "));
      return 2;
    }
    at = next;
  }
  return app.exit(why) == 0 ? 0 : 2;
}

}  // namespace orrery::tool
