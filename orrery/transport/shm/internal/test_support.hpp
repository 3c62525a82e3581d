// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: other OS processes, faults of the system, directories that go away.

#include <orrery/transport/error.hpp>
#include <orrery/transport/internal/test_sanitized.hpp>
#include <orrery/transport/shm/unique_fd.hpp>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::transport::testing {

/// Lines of text between a test and an OS process that it made.
class link {
 public:
  link(unique_fd in, unique_fd out) noexcept : in_(std::move(in)), out_(std::move(out)) {}

  void say(const std::string& line) {
    const std::string text = line + '\n';
    (void)!::write(out_.get(), text.data(), text.size());
  }
  /// Blocks; empty when the other side has ended or hung up.
  [[nodiscard]] std::string hear() {
    std::string line;
    for (char c = 0; ::read(in_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void hang_up() noexcept { out_.reset(); }

 private:
  unique_fd in_;
  unique_fd out_;
};

/// Another OS process, forked from the test, that runs `body` and exits with what it returns. It is
/// killed with the test and at the end of its scope.
class other {
 public:
  explicit other(const std::function<int(link&)>& body) {
    int down[2];
    int up[2];
    if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) std::abort();
    std::fflush(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::close(down[1]);
      ::close(up[0]);
      ::alarm(100);
      link to_test{unique_fd{down[0]}, unique_fd{up[1]}};
      ::_exit(body(to_test));
    }
    ::close(down[0]);
    ::close(up[1]);
    link_.emplace_back(unique_fd{up[0]}, unique_fd{down[1]});
  }
  other(other&& o) noexcept : link_(std::move(o.link_)), pid_(std::exchange(o.pid_, 0)), status_(o.status_) {}
  ~other() {
    kill();
    wait();
  }

  void say(const std::string& line) { link_.front().say(line); }
  [[nodiscard]] std::string hear() { return link_.front().hear(); }
  void hang_up() { link_.front().hang_up(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void kill(int signal = SIGKILL) const noexcept {
    if (pid_ > 0) ::kill(pid_, signal);
  }
  /// Reaps it. The exit status; of one that was killed, minus the signal.
  int wait() {
    if (pid_ <= 0) return status_;
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return status_;
  }

 private:
  std::vector<link> link_;  // one, or none when moved from
  pid_t pid_ = 0;
  int status_ = 0;
};

/// From here on `call` fails with `error` in this OS process and its children: only in an `other`.
inline void fail_system_call(long call, int error) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(error)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{.len = 4, .filter = code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) ::_exit(77);
}

/// Holds the calls of the system that one thread makes, until the test lets them go on.
class held_system_call {
 public:
  /// On the thread whose calls `call` are held from now on. False if this system cannot do that.
  [[nodiscard]] bool hold(long call) {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(call), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    sock_fprog program{.len = 4, .filter = code};
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    listener_ = unique_fd{
        static_cast<int>(::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program))};
    return static_cast<bool>(listener_);
  }
  /// On another thread: returns when such a call has begun.
  void wait_for_call() {
    pollfd call{listener_.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&call, 1, 60'000), 1) << "there was no such call";
    seccomp_notif begun{};
    ASSERT_EQ(::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_RECV, &begun), 0);
    id_ = begun.id;
  }
  /// The call fails with that error; 0: the system does it.
  void go_on(int error = 0) {
    seccomp_notif_resp answer{};
    answer.id = id_;
    answer.error = -error;
    answer.flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
    ASSERT_EQ(::ioctl(listener_.get(), SECCOMP_IOCTL_NOTIF_SEND, &answer), 0);
  }
  /// The same of another call, if there is one soon.
  void let_one_go_on() {
    pollfd call{listener_.get(), POLLIN, 0};
    // its thread may have ended
    if (::poll(&call, 1, 10) != 1 || (call.revents & POLLIN) == 0) return;
    wait_for_call();
    go_on();
  }
  /// Calls are not held any more; one that is held fails.
  void let_go() { listener_ = {}; }

 private:
  unique_fd listener_;
  std::uint64_t id_ = 0;
};

/// Becomes a user without rights; false if this test does not run as root.
inline bool become_nobody() {
  if (::geteuid() != 0) return false;
  const bool done = ::setgid(65534) == 0 && ::setuid(65534) == 0;
  ::prctl(PR_SET_DUMPABLE, 1);  // a change of user takes it away
  return done;
}

/// A directory of this test, empty at its begin and gone at its end.
class scratch_directory {
 public:
  scratch_directory() {
    std::string pattern = "/dev/shm/orrery-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  scratch_directory(const scratch_directory&) = delete;
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::string file(const std::string& world) const {
    return path_ + "/orrery-" + std::to_string(::geteuid()) + "-" + world;
  }
  [[nodiscard]] bool empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

/// Ends a test that hangs.
class shm_test : public ::testing::Test {
 protected:
  void SetUp() override {
    ::alarm(100);
    ::signal(SIGPIPE, SIG_IGN);  // to an `other` that has ended
  }
  void TearDown() override { ::alarm(0); }
};

/// The value; without one the test cannot go on.
template <class T>
[[nodiscard]] T take(result<T> r) {
  if (!r) {
    ADD_FAILURE() << r.error().message;
    std::abort();
  }
  if constexpr (!std::is_void_v<T>) return std::move(*r);
}

template <class T>
void expect_error(const result<T>& r, transport_errc code, std::initializer_list<const char*> words) {
  ASSERT_FALSE(r.has_value()) << "no error";
  EXPECT_EQ(r.error().code, code) << r.error().message;
  for (const char* word : words)
    EXPECT_NE(r.error().message.find(word), std::string::npos) << "'" << word << "' is not in: " << r.error().message;
}

}  // namespace orrery::transport::testing
