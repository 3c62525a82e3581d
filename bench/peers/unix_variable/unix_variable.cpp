// SPDX-License-Identifier: Apache-2.0
// Unix domain sockets: each update is a request with an answer.
#include "../variable.hpp"

#include <poll.h>
#include <sys/socket.h>

using namespace peers;

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 4;
  std::vector<pollfd> servers;
  std::vector<int> ends;
  for (int i = 0; i < count; ++i) {
    int fd[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd) != 0) fail("socketpair");
    servers.push_back({fd[0], POLLIN, 0}), ends.push_back(fd[1]);
  }
  return measure_variable(
      argc, argv, "unix",
      [&](int clients, long& variable) {
        while (clients > 0) {
          if (poll(servers.data(), servers.size(), -1) < 0) fail("poll");
          for (const pollfd& p : servers) {
            int number = 0;
            if ((p.revents & POLLIN) == 0 || recv(p.fd, &number, sizeof number, 0) <= 0) continue;
            variable += number;
            clients -= number == 0;
            if (send(p.fd, &number, sizeof number, MSG_NOSIGNAL) < 0) fail("send");
          }
        }
      },
      [&](int i) {
        return [fd = ends[std::size_t(i)]](int number) {
          if (send(fd, &number, sizeof number, MSG_NOSIGNAL) < 0 || recv(fd, &number, sizeof number, 0) <= 0)
            fail("send or recv");
        };
      });
}
