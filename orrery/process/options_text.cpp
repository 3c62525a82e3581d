// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/option_value.hpp>

#include <iterator>

#include <fmt/format.h>

namespace orrery {

using detail::is_flag;

std::string options_help(std::string_view program) {
  std::string text = fmt::format(
      "Usage: {} [options of the program and of the runtime]\n\n"
      "Options of the Orrery runtime. It takes them from the arguments before the program sees\n"
      "these, or from the environment; -- ends them.\n",
      program);
  for (const option_info& info : option_table()) {
    const std::string flag = is_flag(info) ? info.flag() + (info.command_line_only ? "" : "[=yes|no]")
                                           : fmt::format("{}={}", info.flag(), info.placeholder());
    fmt::format_to(std::back_inserter(text), "\n  {:<42}{}\n      {}\n", flag, info.variable(), info.meaning);
    if (!info.command_line_only) fmt::format_to(std::back_inserter(text), "      default: {}\n", info.default_text());
  }
  text += "\nA SIZE is 4096, 64K, 1M or 2G; a TIME is 50us, 1ms or 2s. Both are decimal.\n";
  return text;
}

std::string options_markdown() {
  std::string text =
      "| option | environment | default | meaning |\n"
      "| --- | --- | --- | --- |\n";
  for (const option_info& info : option_table()) {
    const std::string flag = is_flag(info) ? info.flag() : fmt::format("{}={}", info.flag(), info.placeholder());
    std::string shown;  // | would end the cell
    for (const char c : flag) shown += c == '|' ? std::string("\\|") : std::string(1, c);
    const std::string variable = info.variable();
    fmt::format_to(std::back_inserter(text), "| `{}` | {} | {} | {} |\n", shown,
                   variable.empty() ? "" : fmt::format("`{}`", variable),
                   info.command_line_only ? "" : info.default_text(), info.meaning);
  }
  return text;
}

}  // namespace orrery
