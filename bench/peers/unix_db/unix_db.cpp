// SPDX-License-Identifier: Apache-2.0
// The database over Unix domain sockets: sequenced packets, and one epoll server.
#include "../database.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

using namespace peers;

static void measure(int count) {
  std::vector<int> servers, clients_;
  for (int i = 0; i < count; ++i) {
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) != 0) fail("socketpair");
    servers.push_back(fd[0]), clients_.push_back(fd[1]);
  }
  auto serve = [&] {
    int poll = epoll_create1(0);
    for (int fd : servers) {
      epoll_event e{};
      e.events = EPOLLIN;
      e.data.fd = fd;
      epoll_ctl(poll, EPOLL_CTL_ADD, fd, &e);
    }
    server_work work;
    for (epoll_event ready[16];;) {
      int n = epoll_wait(poll, ready, 16, -1);
      for (int i = 0; i < n; ++i) {
        request r;
        if (recv(ready[i].data.fd, &r, sizeof r, 0) != ssize_t(sizeof r)) _exit(0);
        const answer& a = work.serve(r);
        if (send(ready[i].data.fd, &a, a.bytes(), MSG_NOSIGNAL) < 0) _exit(0);
      }
    }
  };
  measure_database("unix", count, serve, [&](int i) {
    return [fd = clients_[std::size_t(i)]](const request& r, answer& a) {
      if (send(fd, &r, sizeof r, MSG_NOSIGNAL) < 0 || recv(fd, &a, sizeof a, 0) <= 0) _exit(1);
    };
  });
  for (int fd : servers) close(fd);
  for (int fd : clients_) close(fd);
}

int main(int argc, char** argv) {
  for (int count : client_counts(argc, argv)) measure(count);
}
