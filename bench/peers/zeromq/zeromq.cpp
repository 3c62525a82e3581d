// SPDX-License-Identifier: Apache-2.0
// ZeroMQ over ipc:// - DEALER clients and a ROUTER server, PUSH to PULL for the one-way streams.
#include "../common.hpp"

#include <zmq.h>
#include <string>

using namespace peers;

// An abstract Unix address: nothing to remove afterwards. A context is made after the fork.
static void* open_socket(int type, const std::string& name, bool bind, int high_water = 1000) {
  static void* context = zmq_ctx_new();
  void* s = zmq_socket(context, type);
  zmq_setsockopt(s, ZMQ_SNDHWM, &high_water, sizeof high_water);
  zmq_setsockopt(s, ZMQ_RCVHWM, &high_water, sizeof high_water);
  auto address = "ipc://@orrery-peer-" + name;
  if ((bind ? zmq_bind : zmq_connect)(s, address.c_str()) != 0) fail("zmq_bind or zmq_connect");
  return s;
}

static void serve(const std::string& name) {
  void* s = open_socket(ZMQ_ROUTER, name, true);
  for (;;) {
    char who[256];
    int n = zmq_recv(s, who, sizeof who, 0);
    block64 m;
    zmq_recv(s, &m, sizeof m, 0);
    ++m.word[0];
    zmq_send(s, who, std::size_t(n), ZMQ_SNDMORE);
    zmq_send(s, &m, sizeof m, 0);
  }
}

static auto client(const std::string& name) {
  return [s = open_socket(ZMQ_DEALER, name, false), m = block64{}]() mutable {
    zmq_send(s, &m, sizeof m, 0);
    zmq_recv(s, &m, sizeof m, 0);
  };
}

static double stream(const std::string& name, std::size_t bytes, int high_water) {
  pid_t sender = fork_child([=] {
    void* s = open_socket(ZMQ_PUSH, name, false, high_water);
    for (std::vector<std::uint64_t> data(bytes / 8, 1);;) {
      if (bytes < 4096) {
        zmq_send(s, data.data(), bytes, 0);
      } else {  // no copy on this side
        zmq_msg_t m;
        zmq_msg_init_data(&m, data.data(), bytes, [](void*, void*) {}, nullptr);
        zmq_msg_send(&m, s, 0);
      }
    }
  });
  void* s = open_socket(ZMQ_PULL, name, true, high_water);
  zmq_msg_t m;
  zmq_msg_init(&m);
  zmq_msg_recv(&m, s, 0);
  std::uint64_t sum = 0, count = 0;
  auto start = now_ns(), now = start, end = start + std::uint64_t(seconds() * 5e8);
  for (; now < end; now = now_ns())
    for (int i = 0; i < (bytes < 4096 ? 1000 : 1); ++i, ++count) {
      zmq_msg_recv(&m, s, 0);
      sum += sum_words(zmq_msg_data(&m), zmq_msg_size(&m));
    }
  if (sum != count * bytes / 8) std::fputs("stream: wrong data\n", stderr);
  end_child(sender);
  return double(count * bytes) / double(now - start);  // bytes per ns
}

int main() {
  auto id = std::to_string(getpid());
  report("zeromq_calls_7_rate_k",
         seven_clients_rate_k([&] { serve(id + "c"); }, [&](int) { return client(id + "c"); }));

  pid_t server = fork_child([&] { serve(id + "r"); });
  pid_t caller = fork_child([&] { report("zeromq_rtt_us", rtt_ns(client(id + "r"), 100) / 1e3); });
  waitpid(caller, nullptr, 0);
  end_child(server);

  pid_t small = fork_child([&] { report("zeromq_rate_m", stream(id + "s", 64, 1000) / 64 * 1e3); });
  waitpid(small, nullptr, 0);
  pid_t bulk = fork_child([&] { report("zeromq_bulk_gbps", stream(id + "b", bulk_bytes, 4)); });
  waitpid(bulk, nullptr, 0);
}
