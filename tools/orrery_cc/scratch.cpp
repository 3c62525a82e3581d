// SPDX-License-Identifier: Apache-2.0
#include <tools/orrery_cc/failure.hpp>
#include <tools/orrery_cc/scratch.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>

namespace orrery_cc {

scratch::scratch() {
  const char* const named = std::getenv("TMPDIR");
  const std::string in = named != nullptr && *named != 0 ? named : "/tmp";
  std::string pattern = in + "/orrery-cc-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr)
    give_up(
        fmt::format("no folder for the files in between can be made in '{}'{}: {}; set TMPDIR to a folder that can be "
                    "written",
                    in, in == "/tmp" ? "" : ", which TMPDIR names", std::strerror(errno)));
  path_ = pattern;
}

std::filesystem::path scratch::write(const std::string& name, const std::string& text) const {
  errno = 0;
  std::ofstream out(file(name), std::ios::binary);
  if (!(out << text).flush())
    give_up(fmt::format("{} cannot be written: {}; set TMPDIR to a folder with room", file(name).string(),
                        errno != 0 ? std::strerror(errno) : "the system does not say why"));
  return file(name);
}

}  // namespace orrery_cc
