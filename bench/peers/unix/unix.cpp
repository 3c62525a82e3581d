// SPDX-License-Identifier: Apache-2.0
// Unix domain sockets: blocking I/O on socket pairs; one epoll server for seven clients.
#include "../common.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

using namespace peers;

struct pair {
  int a, b;
};

static pair make_pair(int type, int buffer = 0) {
  int fd[2];
  if (socketpair(AF_UNIX, type, 0, fd) != 0) fail("socketpair");
  for (int f : fd)
    if (buffer) setsockopt(f, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
  return {fd[0], fd[1]};
}

static void send_all(int fd, const void* data, std::size_t bytes) {
  for (auto p = static_cast<const char*>(data); bytes > 0;) {
    auto n = send(fd, p, bytes, MSG_NOSIGNAL);
    if (n <= 0) _exit(0);  // the reader has gone: the measurement is over
    p += n, bytes -= std::size_t(n);
  }
}

static void recv_all(int fd, void* data, std::size_t bytes) {
  if (recv(fd, data, bytes, MSG_WAITALL) != ssize_t(bytes)) _exit(0);
}

static void round_trip(cpu_pair cpu) {
  auto [a, b] = make_pair(SOCK_STREAM);
  pid_t echo = fork_child([b, cpu] {
    pin(cpu.last);
    for (block64 m;;) recv_all(b, &m, sizeof m), send_all(b, &m, sizeof m);
  });
  pin(cpu.first);
  block64 m{};
  report("unix_rtt_us", rtt_ns([&] { send_all(a, &m, sizeof m), recv_all(a, &m, sizeof m); }) / 1e3);
  end_child(echo);
}

// One write for each message of `bytes`; the reader takes as many as it gets and sums every word.
static double stream(cpu_pair cpu, std::size_t bytes) {
  constexpr std::size_t read_bytes = 256 << 10;
  auto [in, out] = make_pair(SOCK_STREAM, 4 << 20);
  pid_t sender = fork_child([=] {
    pin(cpu.last);
    close(in);
    for (std::vector<std::uint64_t> m(bytes / 8, 1);;) send_all(out, m.data(), bytes);
  });
  close(out);
  pin(cpu.first);
  std::vector<std::uint64_t> buffer(read_bytes / 8);
  std::uint64_t sum = 0, received = 0;
  auto start = now_ns(), now = start, end = start + std::uint64_t(seconds() * 5e8);
  for (; now < end; now = now_ns()) {
    auto n = recv(in, buffer.data(), read_bytes, 0);
    if (n <= 0) fail("recv");
    sum += sum_words(buffer.data(), std::size_t(n));
    received += std::uint64_t(n);
  }
  close(in);
  end_child(sender);
  if (sum < received / 8 - 1) std::fputs("stream: wrong data\n", stderr);
  return double(received) / double(now - start);  // bytes per ns
}

// Sequenced packets keep the messages apart, and were a little faster than streams here.
static void seven_clients() {
  std::vector<pair> link;
  for (int i = 0; i < clients; ++i) link.push_back(make_pair(SOCK_SEQPACKET));
  auto serve = [&] {
    int poll = epoll_create1(0);
    for (auto [a, b] : link) {
      epoll_event e{};
      e.events = EPOLLIN;
      e.data.fd = b;
      epoll_ctl(poll, EPOLL_CTL_ADD, b, &e);
    }
    for (epoll_event ready[clients];;) {
      int n = epoll_wait(poll, ready, clients, -1);
      for (int i = 0; i < n; ++i) {
        block64 m;
        recv_all(ready[i].data.fd, &m, sizeof m);
        ++m.word[0];
        send_all(ready[i].data.fd, &m, sizeof m);
      }
    }
  };
  auto connect = [&](int i) {
    return [fd = link[std::size_t(i)].a, m = block64{}]() mutable {
      send_all(fd, &m, sizeof m);
      recv_all(fd, &m, sizeof m);
    };
  };
  report("unix_calls_7_rate_k", seven_clients_rate_k(serve, connect));
}

int main() {
  seven_clients();
  auto cpu = two_cpus();
  round_trip(cpu);
  report("unix_rate_m", stream(cpu, 64) / 64 * 1e3);
  report("unix_bulk_gbps", stream(cpu, bulk_bytes));
}
