// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/job_data.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/machines.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/internal/data_set_header.hpp>
#include <orrery/storage/internal/file_agent.hpp>
#include <orrery/storage/internal/hosts.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

namespace orrery::storage::internal {
namespace {

namespace fs = std::filesystem;
using detail::bytes_text;
using detail::throw_errno;

// Takes a lock that an OS process which was killed may have for some moments more.
bool lock_soon(int fd, int how) {
  using clock = std::chrono::steady_clock;
  using namespace std::chrono_literals;
  const auto end = clock::now() + 500ms;
  while (::flock(fd, how | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return true;  // where there are no locks nobody sees it
    if (clock::now() > end) return false;
    sleep_for(10ms);
  }
  return true;
}

bool lies_in(const std::string& path, const std::string& folder) {
  const fs::path from_there = fs::weakly_canonical(path).lexically_relative(fs::weakly_canonical(folder));
  return !from_there.empty() && *from_there.begin() != "..";
}

}  // namespace

std::string folder_beside(const std::string& target, const std::string& name, const data_set_info& input,
                          const std::vector<std::string>& folders) {
  std::string folder = target + "." + name;
  const auto require_outside = [&](const std::string& path) {
    if (lies_in(path, folder))
      throw_errno(EINVAL, fmt::format("{} cannot be used here: {} is where the progress of this job is kept, and is "
                                      "removed at its end: move the data set, or choose another name for the output",
                                      path, folder));
  };
  require_outside(input.path);
  for (const std::string& f : folders) {
    const std::string there = parse_given_folder(f).folder;
    require_outside(there);
    require_text(there + "/" + fs::path(target).filename().string());
  }
  return folder;
}

void remove_remains(const std::string& path) {
  try {
    data_set::remove(path);
  } catch (const std::system_error& e) {  // without a good header nobody knows what is elsewhere
    const int why = e.code().value();
    if (why != ENOENT && why != ENOTDIR && why != EINVAL && why != EBADMSG) throw;
  }
  fs::remove_all(path);
}

void require_nothing_at(const std::string& path) {
  if (fs::exists(fs::symlink_status(path)))
    throw_errno(EEXIST,
                fmt::format("there is something at {} already: remove it first, or choose another place", path));
}

bool holds_nothing_yet(const std::string& path) {
  std::error_code not_readable;
  if (!fs::is_directory(fs::symlink_status(path, not_readable))) return false;
  for (fs::recursive_directory_iterator at(path, not_readable); at != fs::recursive_directory_iterator(); ++at)
    if (!at->is_directory() && !is_unfinished_header(at->path().filename().string())) return false;
  return !not_readable;
}

void read_again(data_set_info& input) {
  const data_set_info now = data_set::read_info(input.path);
  if (now.shape != input.shape || now.page_shape != input.page_shape || now.type != input.type)
    throw std::invalid_argument(
        fmt::format("the data set {} was replaced while this program waited: run the command "
                    "again",
                    input.path));
  input.id = now.id;
  input.edition = now.edition;
  input.finished = now.finished;
}

// Others may read the input while a job does, unless it is replaced: who had begun to would get
// some of each.
io::descriptor held_input(const std::string& path, bool replaced) {
  io::descriptor input(path, O_RDONLY | O_DIRECTORY);
  if (lock_soon(input.get(), replaced ? LOCK_EX : LOCK_SH)) return input;
  throw_errno(EBUSY, fmt::format("{} {}: wait until it has ended", path,
                                 replaced ? "is the input of another program, and would change under its hands"
                                          : "is being replaced by another program"));
}

void require_room(const std::string& target, const std::vector<std::string>& folders, std::uint64_t bytes) {
  const bool named = std::ranges::any_of(folders, [](const std::string& f) { return !parse_folder(f).host.empty(); });
  const auto names = named ? machine_names() : std::vector<std::string>{};
  for (const std::string& f : folders) {
    const auto [host, folder] = parse_given_folder(f);
    const auto agent = spawn<file_agent>(machine(machine_named(names, host, folder, target)), host);
    const auto available = agent->free_bytes(folder);
    destroy(agent);
    if (available && *available < bytes / folders.size())
      throw_errno(ENOSPC, fmt::format("{} are needed at {}, for the output and for what is between, and {} are free",
                                      bytes_text(bytes / folders.size()), f, bytes_text(*available)));
  }
}

}  // namespace orrery::storage::internal
