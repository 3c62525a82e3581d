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
  char state = '?';
  std::uint64_t start_time = 0;
};

// The command name in field 2 may hold anything, also ") Z 1": fields are counted from the last ')'.
std::optional<stat_line> parse(std::string_view text) {
  const std::size_t close = text.rfind(')');
  if (close == std::string_view::npos || close + 2 >= text.size()) return std::nullopt;
  text.remove_prefix(close + 2);
  stat_line line;
  line.state = text.front();
  for (int field = 3; field < 22; ++field) {
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    text.remove_prefix(space + 1);
  }
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), line.start_time);
  if (error != std::errc{} || line.start_time == 0) return std::nullopt;
  return line;
}

// Nothing with errno set, where there is no such OS process.
std::optional<stat_line> read_stat(const char* path) {
  const unique_fd file{retry([&] { return ::open(path, O_RDONLY | O_CLOEXEC); })};
  if (!file) return std::nullopt;
  char text[1024];
  const ssize_t n = retry([&] { return ::read(file.get(), text, sizeof text); });
  if (n <= 0) return std::nullopt;  // ESRCH: it ended after the open
  return parse({text, static_cast<std::size_t>(n)});
}

std::optional<stat_line> read_stat(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  return read_stat(fmt::format("/proc/{}/stat", pid).c_str());
}

bool ended(const stat_line& line) noexcept { return line.state == 'Z' || line.state == 'X'; }

bool readable(int fd) noexcept {
  pollfd p{.fd = fd, .events = POLLIN, .revents = 0};
  return retry([&] { return ::poll(&p, 1, 0); }) > 0;
}

}  // namespace

std::optional<peer_id> find_peer(pid_t pid) {
  const auto line = read_stat(pid);
  if (!line || ended(*line)) return std::nullopt;
  return peer_id{pid, line->start_time};
}

result<peer_id> this_peer() {
  const auto line = read_stat("/proc/self/stat");
  if (!line) {
    return fail(transport_errc::refused, errno,
                "/proc/self/stat cannot be read; worlds of several nodes need /proc mounted");
  }
  return peer_id{::getpid(), line->start_time};
}

std::uint64_t pid_namespace() noexcept {
  struct stat s {};
  return ::stat("/proc/self/ns/pid", &s) == 0 ? s.st_ino : 0;
}

result<peer> peer::open(peer_id id) {
  const auto gone = [&] {
    return fail(transport_errc::gone, ESRCH, "the OS process with pid {} has ended", id.pid);
  };
  if (id.pid <= 0) return gone();
  unique_fd fd{static_cast<int>(::syscall(SYS_pidfd_open, id.pid, 0))};
  if (!fd && errno == ESRCH) return gone();
  // Looked at after the pidfd was opened: if the start time is the right one, so is the pidfd. That a main thread has
  // ended ('Z') means nothing while others run; the pidfd knows.
  const auto line = read_stat(id.pid);
  if (!line || line->start_time != id.start_time) return gone();
  if (fd ? readable(fd.get()) : ended(*line)) return gone();
  return peer{id, std::move(fd)};
}

bool peer::running() const noexcept {
  if (fd_) return !readable(fd_.get());
  const auto line = read_stat(id_.pid);
  return line && line->start_time == id_.start_time && !ended(*line);
}

result<unique_fd> peer::open_file(int fd, int flags) const {
  const std::string path = fmt::format("/proc/{}/fd/{}", id_.pid, fd);
  unique_fd file{retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC); })};
  const int error = errno;
  if (!running()) {
    return fail(transport_errc::gone, ESRCH, "the OS process with pid {} has ended", id_.pid);
  }
  if (file) return file;
  if (error == EACCES || error == EPERM) {
    return fail(transport_errc::refused, error,
                "the system does not let this node open {} ({}); nodes of one world must run as the same user, "
                "must not be set-user-ID or marked undumpable, and no security module may forbid it",
                path, internal::os_text(error));
  }
  if (error == ENOENT) {
    return fail(transport_errc::damaged, error,
                "{} does not exist: pid {} has closed it or never was a node of this world", path,
                id_.pid);
  }
  return fail_os(error, "{} cannot be opened", path);
}

}  // namespace orrery::transport
