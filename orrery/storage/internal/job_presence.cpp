// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/job_presence.hpp>

#include <orrery/storage/detail/page_file.hpp>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

namespace orrery::storage::internal {
namespace {

struct seen {
  std::uint64_t start = 0;  // 0: there is none
  bool ending = true;
};

// An OS process that is being ended is there for as long as its memory takes to go, and a parent
// may not have waited for it yet.
seen look_at(pid_t pid) {
  constexpr std::uint64_t exiting = 4;  // the kernel's PF_EXITING
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name = text.rfind(')');
  if (name == std::string::npos) return {};
  std::istringstream rest(text.substr(name + 1));
  std::string state;
  rest >> state;
  seen s;
  std::uint64_t flags = 0;
  std::string skipped;
  for (int field = 4; field <= 22 && rest; ++field)
    field == 9 ? rest >> flags : field == 22 ? rest >> s.start : rest >> skipped;
  s.ending = state == "Z" || state == "X" || (flags & exiting) != 0;
  return s;
}

}  // namespace

io::descriptor job_presence::share(const std::string& file) {
  io::descriptor f(file, O_RDWR | O_APPEND | O_CREAT);
  // where there are no locks nobody sees it
  if (::flock(f.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    detail::throw_errno(EBUSY, fmt::format("another program has taken {}", file));
  const pid_t pid = ::getpid();
  // One write: lines of several nodes stay apart.
  const std::string line = fmt::format("{} {}\n", pid, look_at(pid).start);
  if (::write(f.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    detail::throw_errno(errno, fmt::format("cannot write {}", file));
  return f;
}

job_nodes look_at_nodes(const std::string& file) {
  job_nodes found;
  std::ifstream lines(file);
  std::size_t expected = 0;
  if (std::string word; !(lines >> word >> expected) || word != "nodes") return found;
  std::size_t count = 0;
  std::set<pid_t> alive;
  std::uint64_t start = 0;
  for (pid_t pid = 0; lines >> pid >> start; ++count) {
    const seen now = look_at(pid);
    if (now.ending || now.start != start)
      found.ending = true;
    else if (alive.insert(pid).second)
      found.text += fmt::format("{}process {}", found.text.empty() ? "" : ", ", pid);
  }
  found.own = alive.contains(::getpid());
  found.complete = count >= expected;
  return found;
}

void announce_nodes(int fd, std::uint32_t nodes) {
  if (::ftruncate(fd, 0) != 0) detail::throw_errno(errno, "truncate");
  const std::string line = fmt::format("nodes {}\n", nodes);
  io::write_all(fd, std::as_bytes(std::span(line)), 0);
}

}  // namespace orrery::storage::internal
