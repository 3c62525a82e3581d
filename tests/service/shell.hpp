// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../support/scenario.hpp"

#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>

// The program orrery, used on a list of the test's own world.
namespace orrery::testing {

inline std::filesystem::path shell_program() {
  return std::filesystem::canonical("/proc/self/exe").parent_path().parent_path() / "orrery";
}
/// What `orrery COMMAND` with these arguments says of the test's world, and its exit code.
inline std::string shell(const char* command, const std::string& arguments) {
  const std::string line = fmt::format("{} {} {} {} 2>&1", shell_program().string(), command,
                                       own_world().substr(own_world().find('=') + 1), arguments);
  std::FILE* const out = ::popen(line.c_str(), "r");
  std::string said;
  for (int c = 0; (c = std::fgetc(out)) != EOF;) said += static_cast<char>(c);
  return said + fmt::format("{}", WEXITSTATUS(::pclose(out)));
}
/// What `orrery list` with these arguments says of /test/list, and its exit code.
inline std::string tool(const std::string& arguments) { return shell("list", "/test/list " + arguments); }

}  // namespace orrery::testing
