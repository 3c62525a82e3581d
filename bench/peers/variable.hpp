// SPDX-License-Identifier: Apache-2.0
// The experiment of Gingras 2018, section 4.5.1: threads that each update one variable many times, over some means of communication.
#pragma once

#include "common.hpp"

#include <thread>

namespace peers {

// <program> CLIENTS WRITES. `serve(clients, variable)` runs in a thread and returns when each client has sent a 0; connect(i), in that of client i, returns a
// function that adds a number. Reports <name>_variable_s, from the first update to the last.
template <class Serve, class Connect>
int measure_variable(int argc, char** argv, const char* name, Serve serve, Connect connect) {
  const int clients = argc > 1 ? std::atoi(argv[1]) : 4;
  const long writes = argc > 2 ? std::atol(argv[2]) : 10'000;
  long variable = 0;
  std::thread server([&] { serve(clients, variable); });
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> all;
  for (int i = 0; i < clients; ++i)
    all.emplace_back([&, i] {
      auto add = connect(i);
      ready.fetch_add(1);
      while (!go.load()) usleep(100);
      for (long n = 0; n < writes; ++n) add(1);
      add(0);
    });
  while (ready.load() < clients) usleep(100);
  const auto begin = now_ns();
  go.store(true);
  for (std::thread& each : all) each.join();
  server.join();
  const double s = double(now_ns() - begin) * 1e-9;
  if (variable != clients * writes) {
    std::fputs("updates were lost\n", stderr);
    return 1;
  }
  char metric[64];
  std::snprintf(metric, sizeof metric, "%s_variable_s", name);
  report(metric, s);
  return 0;
}

}  // namespace peers
