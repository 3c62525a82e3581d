// SPDX-License-Identifier: Apache-2.0
#include <orrery/files/new_file.hpp>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::detail {

namespace {

namespace fs = std::filesystem;

// The end of a chain of links; nothing if it goes through a name of an open file.
std::optional<fs::path> end_of_links(const fs::path& path) {
  constexpr int longest = 40;  // as the system has it
  std::error_code error;
  fs::path at = path;
  for (int i = 0; i < longest && fs::is_symlink(at, error); ++i) {
    const fs::path folder = fs::canonical(at.has_parent_path() ? at.parent_path() : ".", error);
    if (error || folder == "/dev" || folder.string().starts_with("/proc/")) return std::nullopt;
    at = folder / fs::read_symlink(at, error);
  }
  return at;
}

}  // namespace

new_file::new_file(std::string path) : path_(std::move(path)) {
  struct stat st{};
  if (::stat(path_.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) return;
  const std::optional<fs::path> target = end_of_links(path_);
  if (!target) return;
  const fs::path& p = *target;
  target_ = p.string();
  // The end of the name stays: libraries go by it.
  beside_ = (p.parent_path() / fmt::format(".part-{}-{}", ::getpid(), p.filename().string())).string();
  const int fd = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
                        0666);  // so that no library has to say why it cannot
  if (fd < 0) throw std::system_error(errno, std::system_category(), fmt::format("cannot write {}", path_));
  (void)::close(fd);
}
new_file::~new_file() {
  if (!beside_.empty()) (void)::unlink(beside_.c_str());
}
void new_file::complete() {
  if (beside_.empty()) return;
  if (std::rename(beside_.c_str(), target_.c_str()) != 0)
    throw std::system_error(errno, std::system_category(), fmt::format("cannot write {}", path_));
  beside_.clear();
}

}  // namespace orrery::detail
