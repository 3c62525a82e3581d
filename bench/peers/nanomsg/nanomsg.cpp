// SPDX-License-Identifier: Apache-2.0
// nanomsg over ipc:// - REQ clients and a raw REP server, PUSH to PULL for the one-way stream.
#include "../common.hpp"

#include <nanomsg/nn.h>
#include <nanomsg/pipeline.h>
#include <nanomsg/reqrep.h>
#include <string>

using namespace peers;

static int open_socket(int type, const std::string& address, bool bind) {
  int s = nn_socket(AF_SP, type);
  if (s < 0 || (bind ? nn_bind : nn_connect)(s, address.c_str()) < 0) fail("nn_bind or nn_connect");
  return s;
}

static void serve(const std::string& address) {
  int s = open_socket(NN_REP, address, true);
  for (;;) {
    block64* m;  // the library's own buffer: received and sent back without a copy
    if (nn_recv(s, &m, NN_MSG, 0) < 0) fail("nn_recv");
    ++m->word[0];
    if (nn_send(s, &m, NN_MSG, 0) < 0) fail("nn_send");
  }
}

static auto client(const std::string& address) {
  return [s = open_socket(NN_REQ, address, false), m = block64{}]() mutable {
    if (nn_send(s, &m, sizeof m, 0) < 0 || nn_recv(s, &m, sizeof m, 0) < 0) fail("nn call");
  };
}

int main() {
  char folder[] = "/tmp/orrery-peer-XXXXXX";
  if (!mkdtemp(folder)) fail("mkdtemp");
  auto address = [&](const char* name) { return "ipc://" + (folder + std::string(name)); };

  report("nanomsg_calls_7_rate_k",
         seven_clients_rate_k([&] { serve(address("/calls")); }, [&](int) { return client(address("/calls")); }));

  pid_t server = fork_child([&] { serve(address("/rtt")); });
  pid_t caller = fork_child([&] { report("nanomsg_rtt_us", rtt_ns(client(address("/rtt")), 100) / 1e3); });
  waitpid(caller, nullptr, 0);
  end_child(server);

  pid_t sender = fork_child([&] {
    int s = open_socket(NN_PUSH, address("/stream"), false);
    for (block64 m{{1}};;) nn_send(s, &m, sizeof m, 0);
  });
  int s = open_socket(NN_PULL, address("/stream"), true);
  block64 m;
  nn_recv(s, &m, sizeof m, 0);
  std::uint64_t sum = 0, count = 0;
  auto start = now_ns(), now = start, end = start + std::uint64_t(seconds() * 5e8);
  for (; now < end; now = now_ns())
    for (int i = 0; i < 100; ++i, ++count) nn_recv(s, &m, sizeof m, 0), sum += m.word[0];
  if (sum != count) std::fputs("stream: wrong data\n", stderr);
  report("nanomsg_rate_m", double(count) / double(now - start) * 1e3);
  end_child(sender);

  for (auto name : {"/calls", "/rtt", "/stream"}) unlink((folder + std::string(name)).c_str());
  rmdir(folder);
}
