// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/own_files.hpp>

#include <orrery/storage/detail/page_file.hpp>
#include <orrery/storage/detail/page_sums.hpp>
#include <orrery/storage/internal/hosts.hpp>

#include <cerrno>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace orrery::storage::internal {
namespace {

namespace fs = std::filesystem;
using detail::throw_errno;

const char* kind_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a FIFO";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "a device";
  }
}

bool is_there(const std::string& file) { return fs::symlink_status(file).type() != fs::file_type::not_found; }

}  // namespace

bool is_device_name(const std::string& name, std::size_t device) {
  if (name.find('\0') != std::string::npos) return false;
  const fs::path path(name);
  if (!path.has_parent_path()) return name == fmt::format("device-{}.pages", device);
  return path.is_absolute() && path.lexically_normal() == path &&
         path.filename().string().ends_with(fmt::format("-{}.pages", device));
}

std::string sums_of(const std::string& file) { return fs::path(file).replace_extension(".sums").string(); }

void require_intact(const data_set_info& info) {
  if (!info.intact)
    throw_errno(EBADMSG, fmt::format("the header of the data set {} was changed or damaged: its checksum is not that "
                                     "of its contents: restore orrery.json from a copy",
                                     info.path));
}

void require_regular(const std::string& file) {
  std::error_code missing;
  const fs::file_type type = fs::status(file, missing).type();
  if (!missing && type != fs::file_type::not_found && type != fs::file_type::regular)
    throw_errno(EINVAL, fmt::format("{} is {}, no regular file as a data set makes: put the file that was there back",
                                    file_text(file), kind_of(type)));
}

void require_unlinkable(const std::string& file) {
  // unlink(2) takes the link, whatever it leads to.
  const fs::file_type type = fs::symlink_status(file).type();
  if (type != fs::file_type::not_found && type != fs::file_type::regular && type != fs::file_type::symlink)
    throw_errno(EPERM, fmt::format("{} is {}, which the data set has not made; nothing was removed: move it away, and "
                                   "remove the data set again",
                                   file_text(file), kind_of(type)));
  const std::string folder = fs::path(file).parent_path().string();
  if (type != fs::file_type::not_found && ::access(folder.c_str(), W_OK | X_OK) != 0)
    throw_errno(errno, fmt::format("{} cannot be removed, since its folder may only be read; nothing was removed: "
                                   "change the folder's permissions first",
                                   file_text(file)));
}

void require_own(const data_set_info& info, const std::string& file, const std::string& sums) {
  if (fs::path(file).parent_path() == fs::path(info.path)) return;
  std::error_code unknown;
  // killed when it was made
  if (!is_there(file) && (!is_there(sums) || fs::file_size(sums, unknown) == 0)) return;
  if (!info.checksums ? info.id == 0 : page_sums::owner_of(sums) != info.id)
    throw_errno(EPERM, fmt::format("{} is not a file of the data set {}, or its checksums {} are gone: remove it by "
                                   "hand if it is to go",
                                   file, info.path, sums));
}

void require_no_link(const std::string& folder) {
  if (fs::is_symlink(fs::symlink_status(folder)))
    throw_errno(ELOOP, fmt::format("{} is a symbolic link, which is not followed to remove what is there: name the "
                                   "folder itself",
                                   folder));
}

void unlink_file(const std::string& file) {
  if (::unlink(file.c_str()) != 0 && errno != ENOENT) throw_errno(errno, fmt::format("cannot remove {}", file));
}

}  // namespace orrery::storage::internal
