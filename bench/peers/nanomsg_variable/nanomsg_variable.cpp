// SPDX-License-Identifier: Apache-2.0
// nanomsg between threads (inproc://): each update is a request with an answer.
#include "../variable.hpp"

#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>

using namespace peers;

static int open_socket(int type) {
  const int s = nn_socket(AF_SP, type);
  if (s < 0 || (type == NN_REP ? nn_bind : nn_connect)(s, "inproc://variable") < 0) fail("nn_bind or nn_connect");
  return s;
}

int main(int argc, char** argv) {
  const int server = open_socket(NN_REP);
  return measure_variable(
      argc, argv, "nanomsg",
      [&](int clients, long& variable) {
        while (clients > 0) {
          int number = 0;
          if (nn_recv(server, &number, sizeof number, 0) != int(sizeof number)) fail("nn_recv");
          variable += number;
          clients -= number == 0;
          if (nn_send(server, &number, sizeof number, 0) < 0) fail("nn_send");
        }
      },
      [](int) {
        return [s = open_socket(NN_REQ)](int number) {
          if (nn_send(s, &number, sizeof number, 0) < 0 || nn_recv(s, &number, sizeof number, 0) < 0) fail("nn call");
        };
      });
}
