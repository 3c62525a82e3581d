// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/status_server.hpp>

#include <orrery/transport/mpi/internal/status_socket.hpp>
#include <orrery/transport/shm/internal/fail.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <span>
#include <system_error>
#include <utility>

#include <pthread.h>
#include <sys/socket.h>

namespace orrery::transport {

namespace {

constexpr std::chrono::milliseconds patience_with_tools{1000};

}  // namespace

result<wire::unique_ptr<status_server>> status_server::start(std::uint64_t nonce, source ask) {
  unique_fd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const auto [address, length] = internal::status_address(nonce);
  constexpr int waiting_tools = 16;
  if (!socket || ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(socket.get(), waiting_tools) != 0)
    return internal::fail_os(errno, "no socket at which tools ask for the machines of this world can be made");
  try {
    return wire::unique_ptr<status_server>(new status_server(std::move(socket), std::move(ask)));
  } catch (const std::system_error& e) {
    return internal::fail_os(e.code().value(),
                             "no thread that tells tools of the machines of this world can be started");
  }
}

status_server::status_server(unique_fd socket, source ask) : socket_(std::move(socket)), ask_(std::move(ask)) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // the program's signals are for the program's threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { serve(); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

status_server::~status_server() {
  ::shutdown(socket_.get(), SHUT_RDWR);  // accept() returns
  thread_.join();
}

void status_server::serve() {
  for (;;) {
    const unique_fd tool{::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!tool && errno == EINVAL) return;  // it was shut down
    if (!tool) {
      constexpr timespec pause{.tv_sec = 0, .tv_nsec = 10'000'000};
      ::nanosleep(&pause, nullptr);  // no descriptor is free, or the tool has gone away
      continue;
    }
    if (!internal::is_of_this_user(tool.get()) || !internal::set_patience(tool.get(), patience_with_tools)) continue;
    std::byte wish{};
    if (!internal::receive_all(tool.get(), std::span(&wish, 1))) continue;
    answer(tool.get(), wish != std::byte{0});
  }
}

// A status that cannot be made, for want of memory, does not end the program: the tool gets none.
void status_server::answer(int tool, bool names) noexcept {
  try {
    const auto text = ask_(names).encode();
    const std::uint64_t bytes = text.size();
    if (internal::send_all(tool, std::as_bytes(std::span(&bytes, 1)))) (void)internal::send_all(tool, text);
  } catch (const std::exception& e) {
    if (std::exchange(has_complained_, true)) return;
    std::fprintf(stderr, "orrery: a tool that asks for the machines of this world is not told: %s\n", e.what());
  }
}

}  // namespace orrery::transport
