// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/job_data.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/machines.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/storage/data_set.hpp>
#include <orrery/storage/internal/file_agent.hpp>
#include <orrery/storage/internal/hosts.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
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

}  // namespace

void remove_remains(const std::string& path) {
  try {
    data_set::remove(path);
  } catch (const std::system_error& e) {  // without a header there is nothing elsewhere either
    if (e.code().value() == EBUSY) throw;
  }
  fs::remove_all(path);
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
