// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/socket_watch.hpp>

#include <orrery/transport/wait.hpp>

#include <array>
#include <charconv>
#include <cstring>
#include <ctime>
#include <memory>

#include <dirent.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::transport {

namespace {

constexpr int patience = 4;  // so often a socket may stay readable after a sleep

bool is_tcp(int fd) noexcept {
  const auto option = [fd](int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
  };
  if (option(SO_TYPE) != SOCK_STREAM) return false;
  const int domain = option(SO_DOMAIN);
  return domain == AF_INET || domain == AF_INET6;
}

epoll_event event_of(int fd, std::uint32_t more) noexcept {
  epoll_event e{};
  e.events = EPOLLIN | more;
  e.data.fd = fd;
  return e;
}

}  // namespace

socket_watch::socket_watch()
    : events_(::epoll_create1(EPOLL_CLOEXEC)), call_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  epoll_event e = event_of(call_.get(), 0);
  (void)::epoll_ctl(events_.get(), EPOLL_CTL_ADD, call_.get(), &e);
}

void socket_watch::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(call_.get(), &one, sizeof one);
}

void socket_watch::take_call() noexcept {
  std::uint64_t ignored = 0;
  (void)!::read(call_.get(), &ignored, sizeof ignored);
}

socket_watch::cause socket_watch::nap(std::int64_t ns) noexcept {
  pollfd call{.fd = call_.get(), .events = POLLIN, .revents = 0};
  const timespec limit{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  if (::ppoll(&call, 1, &limit, nullptr) <= 0) return cause::time;
  take_call();
  return cause::call;
}

socket_watch::cause socket_watch::sleep(std::int64_t ns) noexcept {
  // without a descriptor the time alone ends it
  pollfd any{.fd = events_.get(), .events = POLLIN, .revents = 0};
  const timespec limit{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  std::array<epoll_event, 16> found;
  if (::ppoll(&any, 1, &limit, nullptr) <= 0) {
    for (auto& r : returns_) r.second = 0;
    return cause::time;
  }
  const int n = ::epoll_wait(events_.get(), found.data(), static_cast<int>(found.size()), 0);
  cause why = n == 0 ? cause::socket : cause::time;  // a thread of the library has read what came
  for (int i = 0; i < n; ++i) {
    const int fd = found[static_cast<std::size_t>(i)].data.fd;
    if (fd == call_.get()) {
      take_call();
      if (why == cause::time) why = cause::call;
    } else {
      note(fd);
      why = cause::socket;
    }
  }
  return why;
}

// A socket that stays readable counts again only when something more has come.
void socket_watch::note(int fd) noexcept {
  const auto it = returns_.find(fd);
  if (it == returns_.end() || ++it->second < patience) return;
  it->second = 0;
  epoll_event e = event_of(fd, EPOLLET);
  (void)::epoll_ctl(events_.get(), EPOLL_CTL_MOD, fd, &e);
}

void socket_watch::watch(int fd) noexcept {
  epoll_event e = event_of(fd, 0);
  // It is refused if it is watched already. A number that was closed and is a socket again is not.
  if (::epoll_ctl(events_.get(), EPOLL_CTL_ADD, fd, &e) == 0) returns_.insert_or_assign(fd, 0);
}

void socket_watch::look_for_sockets() noexcept {
  constexpr std::int64_t share = 5000;
  const std::int64_t begin = real_now_ns();
  if (begin < next_look_ns_) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> all{::opendir("/proc/self/fd"), &::closedir};
  if (all == nullptr) return;
  while (const dirent* const entry = ::readdir(all.get())) {
    int fd = -1;
    const char* const name = entry->d_name;
    if (std::from_chars(name, name + std::strlen(name), fd).ec == std::errc{} && is_tcp(fd)) watch(fd);
  }
  const std::int64_t end = real_now_ns();
  next_look_ns_ = end + share * (end - begin);
}

}  // namespace orrery::transport
