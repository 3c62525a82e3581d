// SPDX-License-Identifier: Apache-2.0
// POSIX message queues: one request queue for everybody, one reply queue for each client.
#include "../common.hpp"

#include <fcntl.h>
#include <mqueue.h>
#include <string>

using namespace peers;

// A queue without a name: it lives as long as somebody has it open.
static mqd_t make_queue() {
  static int count = 0;
  auto name = "/orrery-peer-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  mq_attr attributes{};
  attributes.mq_maxmsg = 10;  // what an ordinary user may ask for
  attributes.mq_msgsize = sizeof(block64);
  mqd_t q = mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
  if (q == mqd_t(-1)) fail("mq_open");
  mq_unlink(name.c_str());
  return q;
}

static void send(mqd_t q, const block64& m) {
  if (mq_send(q, reinterpret_cast<const char*>(&m), sizeof m, 0) != 0) fail("mq_send");
}

static void receive(mqd_t q, block64& m) {
  if (mq_receive(q, reinterpret_cast<char*>(&m), sizeof m, nullptr) < 0) fail("mq_receive");
}

int main() {
  mqd_t request = make_queue();
  std::vector<mqd_t> reply;
  for (int i = 0; i < clients; ++i) reply.push_back(make_queue());
  auto serve = [&] {
    for (block64 m;;) {
      receive(request, m);  // word 0 says who asks
      ++m.word[1];
      send(reply[m.word[0]], m);
    }
  };
  auto connect = [&](int i) {
    return [&, i, m = block64{}]() mutable {
      m.word[0] = std::uint64_t(i);
      send(request, m);
      receive(reply[std::size_t(i)], m);
    };
  };
  report("mq_calls_7_rate_k", seven_clients_rate_k(serve, connect));

  auto cpu = two_cpus();
  pid_t server = fork_child([&] { pin(cpu.last), serve(); });
  pin(cpu.first);
  report("mq_rtt_us", rtt_ns(connect(0)) / 1e3);
  end_child(server);
}
