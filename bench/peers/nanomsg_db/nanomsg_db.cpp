// SPDX-License-Identifier: Apache-2.0
// The database over nanomsg's ipc:// : REQ clients, and a REP server.
#include "../database.hpp"

#include <nanomsg/nn.h>
#include <nanomsg/reqrep.h>
#include <string>

using namespace peers;

static int open_socket(int type, const std::string& address) {
  int s = nn_socket(AF_SP, type);
  if (s < 0 || (type == NN_REP ? nn_bind : nn_connect)(s, address.c_str()) < 0) fail("nn_bind or nn_connect");
  return s;
}

static void serve(const std::string& address) {
  int s = open_socket(NN_REP, address);
  server_work work;
  for (request r;;) {
    if (nn_recv(s, &r, sizeof r, 0) != int(sizeof r)) fail("nn_recv");
    const answer& a = work.serve(r);
    if (nn_send(s, &a, a.bytes(), 0) < 0) fail("nn_send");
  }
}

int main(int argc, char** argv) {
  char folder[] = "/tmp/orrery-peer-XXXXXX";
  if (!mkdtemp(folder)) fail("mkdtemp");
  for (int count : client_counts(argc, argv)) {
    std::string file = folder;
    file += '/';
    file += std::to_string(count);
    const std::string address = "ipc://" + file;
    measure_database(
        "nanomsg", count, [&] { serve(address); },
        [&](int) {
          return [s = open_socket(NN_REQ, address)](const request& r, answer& a) {
            if (nn_send(s, &r, sizeof r, 0) < 0 || nn_recv(s, &a, sizeof a, 0) < 0) fail("nn call");
          };
        });
    unlink(file.c_str());
  }
  rmdir(folder);
}
