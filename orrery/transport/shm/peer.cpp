// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/transport/shm/peer.hpp>

#include <charconv>
#include <cstddef>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>

namespace orrery::transport {

using internal::fail;
using internal::fail_os;
using internal::retry;

namespace {

struct stat_line {
  char state = '?';              // field 3
  std::uint64_t flags = 0;       // field 9
  std::uint64_t start_time = 0;  // field 22
};

// The command name in field 2 may hold anything, also ") Z 1": fields are counted from the last
// ')'.
std::optional<stat_line> parse(std::string_view text) {
  const std::size_t close = text.rfind(')');
  if (close == std::string_view::npos || close + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(close + 2);
  stat_line line;
  line.state = text.front();
  const auto number = [&text](std::uint64_t& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{};
  };
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    text.remove_prefix(space + 1);
    if (field + 1 == 9 && !number(line.flags)) return std::nullopt;
  }
  if (!number(line.start_time) || line.start_time == 0) return std::nullopt;
  return line;
}

enum class seen : std::uint8_t { there, nobody, unknown };

// `unknown`, with errno, where the system did not let us look: that is no proof that nobody is
// there.
seen read_stat(const char* path, stat_line& line) {
  const unique_fd file{retry([&] { return ::open(path, O_RDONLY | O_CLOEXEC); })};
  if (!file) return errno == ENOENT ? seen::nobody : seen::unknown;
  char text[1024];
  const ssize_t n = retry([&] { return ::read(file.get(), text, sizeof text); });
  if (n <= 0) return n == 0 || errno == ESRCH ? seen::nobody : seen::unknown;
  const auto parsed = parse({text, static_cast<std::size_t>(n)});
  if (!parsed) return seen::unknown;
  line = *parsed;
  return seen::there;
}

seen read_stat(pid_t pid, stat_line& line) {
  if (pid <= 0) return seen::nobody;
  return read_stat(fmt::format("/proc/{}/stat", pid).c_str(), line);
}

// PF_EXITING. It closes its files before it counts as ended.
bool ending(const stat_line& line) noexcept { return (line.flags & 4) != 0; }

bool ended(const stat_line& line) noexcept { return line.state == 'Z' || line.state == 'X'; }

bool readable(int fd) noexcept {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return retry([&] { return ::poll(&p, 1, 0); }) > 0;
}

}  // namespace

std::optional<peer_id> find_peer(pid_t pid) {
  stat_line line;
  if (read_stat(pid, line) != seen::there || ended(line)) return std::nullopt;
  return peer_id{pid, line.start_time};
}

result<peer_id> this_peer() {
  stat_line line;
  if (read_stat("/proc/self/stat", line) != seen::there) {
    return fail_os(errno, "/proc/self/stat cannot be read; worlds of several nodes need /proc mounted");
  }
  return peer_id{::getpid(), line.start_time};
}

std::uint64_t pid_namespace() noexcept {
  struct stat s{};
  return ::stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

result<peer> peer::open(peer_id id) {
  const auto gone = [&] { return fail(transport_errc::gone, ESRCH, "the OS process with pid {} has ended", id.pid); };
  if (id.pid <= 0) return gone();
  unique_fd fd{static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0))};
  if (!fd && errno == ESRCH) return gone();
  // Looked at after the pidfd was opened: if the start time is the right one, so is the pidfd. A
  // main thread that has ended ('Z') means nothing while others run; the pidfd knows.
  stat_line line;
  const seen there = read_stat(id.pid, line);
  if (there == seen::unknown) return fail_os(errno, "/proc/{}/stat cannot be read", id.pid);
  if (there == seen::nobody || line.start_time != id.start_time) return gone();
  if (fd ? readable(fd.get()) : ended(line)) return gone();
  return peer{id, std::move(fd)};
}

peer peer::open_ended(peer_id id) noexcept {
  unique_fd fd{static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0))};
  stat_line line;
  if (!fd || read_stat(id.pid, line) != seen::there || line.start_time != id.start_time) return {};
  return {id, std::move(fd)};
}

bool peer::running() const noexcept {
  if (fd_) return !readable(fd_.get());
  stat_line line;
  const seen there = read_stat(id_.pid, line);
  if (there == seen::unknown) return true;
  return there == seen::there && line.start_time == id_.start_time && !ended(line);
}

result<unique_fd> peer::open_file(int fd, int flags) const {
  const std::string path = fmt::format("/proc/{}/fd/{}", id_.pid, fd);
  unique_fd file{retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC); })};
  const int error = errno;
  stat_line line;
  const bool closing = !file && read_stat(id_.pid, line) == seen::there && ending(line);
  if (closing || !running()) {
    return fail(transport_errc::gone, ESRCH, "the OS process with pid {} has ended", id_.pid);
  }
  if (file) return file;
  if (error == EACCES || error == EPERM) {
    return fail(transport_errc::refused, error,
                "the system does not let this node open {} ({}); nodes of one world must run as the same "
                "user, must not be set-user-ID or marked undumpable, and no security module may forbid it",
                path, internal::os_text(error));
  }
  if (error == ENOENT) {
    return fail(transport_errc::damaged, error,
                "{} does not exist: pid {} has closed it or never was a node of this world", path, id_.pid);
  }
  return fail_os(error, "{} cannot be opened", path);
}

}  // namespace orrery::transport
