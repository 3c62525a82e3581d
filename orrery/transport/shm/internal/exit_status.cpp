// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/exit_status.hpp>
#include <orrery/transport/shm/internal/fail.hpp>

#include <cstring>

#include <sys/ioctl.h>

namespace orrery::transport::internal {

namespace {

// From <linux/pidfd.h> of 6.15, which C libraries do not have yet.
struct pidfd_info {
  std::uint64_t mask;
  std::uint64_t cgroupid;
  std::uint32_t pid, tgid, ppid;
  std::uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
  std::int32_t exit_code;
};
static_assert(sizeof(pidfd_info) == 64);
constexpr std::uint64_t pidfd_info_exit = 1U << 3;
constexpr unsigned long pidfd_get_info = _IOWR(0xFF, 11, pidfd_info);

std::string describe_signal(int signal, bool core) {
  const char* name = ::strsignal(signal);
  return fmt::format("was killed by signal {} ({}{})", signal, name != nullptr ? name : "unknown",
                     core ? ", core dumped" : "");
}

}  // namespace

std::string describe_exit(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return fmt::format("exited with status {}", info.si_status);
  return describe_signal(info.si_status, info.si_code == CLD_DUMPED);
}

std::string describe_end(const peer& ended) {
  siginfo_t info{};
  constexpr auto by_pidfd = static_cast<idtype_t>(3);  // P_PIDFD, which old C libraries do not have
  const bool child =
      ended.fd() >= 0 && ::waitid(by_pidfd, static_cast<id_t>(ended.fd()), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (child && info.si_pid != 0) return describe_exit(info) + " without leaving the world";
  pidfd_info more{};
  more.mask = pidfd_info_exit;
  if (ended.fd() >= 0 && ::ioctl(ended.fd(), pidfd_get_info, &more) == 0 && (more.mask & pidfd_info_exit) != 0) {
    const int status = more.exit_code;
    if (WIFSIGNALED(status)) return describe_signal(WTERMSIG(status), WCOREDUMP(status)) + " without leaving the world";
    return fmt::format("exited with status {} without leaving the world", WEXITSTATUS(status));
  }
  return "ended without leaving the world (killed or crashed)";
}

}  // namespace orrery::transport::internal
