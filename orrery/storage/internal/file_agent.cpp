// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/file_agent.hpp>

#include <orrery/storage/detail/page_file.hpp>
#include <orrery/storage/internal/hosts.hpp>
#include <orrery/storage/internal/own_files.hpp>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::storage::internal {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

}  // namespace

file_agent::~file_agent() {
  std::error_code ignored;
  // a folder only if it is empty
  for (; !made_.empty(); made_.pop_back()) fs::remove(made_.back(), ignored);
}

void file_agent::make_folders(const std::vector<std::string>& folders) {
  for (const std::string& path : folders) {
    std::error_code error;
    if (fs::create_directory(path, error)) {
      made_.push_back(path);
    } else if (error) {
      const int code = error.value();
      const bool refused = code == EACCES || code == EPERM || code == EROFS;
      throw_errno(
          code,
          fmt::format("cannot make the folder {}{}", folder_text(named_, path),
                      refused ? "; the one around it may only be read: choose another place, or change its permissions"
                      : code == ENOENT ? "; make the one around it first"
                                       : ""));
    }
  }
}

void file_agent::require_absent(const std::string& data_set, const std::vector<std::string>& files) const {
  for (const std::string& file : files) {
    for (const std::string& f : {file, sums_of(file)})
      if (fs::exists(f))
        throw_errno(EEXIST, fmt::format("cannot create the data set {}: its file {} is there already: remove it first",
                                        data_set, folder_text(named_, f)));
  }
}

void file_agent::require_regular(const std::vector<std::string>& files) const {
  for (const std::string& file : files) internal::require_regular(file);
}

void file_agent::require_removable(const data_set_info& info, const std::vector<std::string>& files) const {
  for (const std::string& file : files) require_own(info, file, sums_of(file));
  for (const std::string& file : files) require_no_link(fs::path(file).parent_path().string());
  for (const std::string& file : files) {
    require_unlinkable(file);
    require_unlinkable(sums_of(file));
  }
  for (const std::string& file : files) {
    if (!fs::is_regular_file(fs::symlink_status(file))) continue;  // an interrupted removal
    // throws while somebody writes
    const page_file lock(file, 0, 1, open_mode::read_write, transfer_mode::buffered);
  }
}

void file_agent::remove_files(const std::vector<std::string>& files) const {
  for (const std::string& file : files) {
    unlink_file(file);
    unlink_file(sums_of(file));
  }
}

void file_agent::remove_folders(const std::vector<std::string>& folders) const {
  // refused where something else is in it
  for (const std::string& folder : folders) (void)::rmdir(folder.c_str());
}

std::optional<std::uint64_t> file_agent::free_bytes(const std::string& folder) const {
  std::error_code unknown;
  const fs::path there = fs::exists(folder) ? fs::path(folder) : fs::path(folder).parent_path();
  const auto space = fs::space(there, unknown);
  if (unknown || space.capacity == 0) return std::nullopt;
  return space.available;
}

}  // namespace orrery::storage::internal
