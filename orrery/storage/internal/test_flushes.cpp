// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/test_flushes.hpp>

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery::storage::testing {
namespace {

std::mutex one_at_a_time;
std::function<void(const std::string&)> told;

void tell(int fd) {
  const std::lock_guard lock(one_at_a_time);
  if (!told) return;
  std::error_code no_file;
  const auto file = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), no_file);
  if (!no_file) told(file.string());
}
void tell_to(std::function<void(const std::string&)> f) {
  const std::lock_guard lock(one_at_a_time);
  told = std::move(f);
}

}  // namespace

flush_watch::flush_watch(std::function<void(const std::string& file)> f) {
  if (const char* value = std::getenv("ORRERY_IO")) before_ = value;
  ::setenv("ORRERY_IO", "threads", 1);
  tell_to(std::move(f));
}
flush_watch::~flush_watch() {
  tell_to({});
  if (before_)
    ::setenv("ORRERY_IO", before_->c_str(), 1);
  else
    ::unsetenv("ORRERY_IO");
}

}  // namespace orrery::storage::testing

// Stands before that of the C library.
extern "C" int fdatasync(int fd) {
  orrery::storage::testing::tell(fd);
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
