// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../measure.hpp"

#include <orrery/task/task.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Figures of tasks of C. The tasks use task.h as generated C does.
namespace bench_task {

using bench::effort;
using bench::ns_since;
using bench::resident_bytes;

// --- the messages, as orrery-cc makes them ---------------------------------------------------------------------------

struct hop {
  int left;
};
constexpr orrery_message_type hop_type = {"Hop", 1001, sizeof(hop), 0, nullptr};
struct next {
  orrery_task task;
  orrery_task done;
};
constexpr orrery_message_type next_type = {"Next", 1002, sizeof(next), 0, nullptr};
struct request {
  char bytes[64];
};
constexpr orrery_message_type request_type = {"Request", 1003, sizeof(request), 0, nullptr};

// Waits for a message of that type; ends the program if it is another one.
template <class T>
T receive(const orrery_message_type& type, orrery_task* sender = nullptr) {
  orrery_message m;
  if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) orrery_exit();
  const auto* value = static_cast<T*>(orrery_open(&m, &type));
  if (value == nullptr) {
    std::fprintf(stderr, "%s\n", orrery_error());
    std::exit(1);
  }
  const T copy = *value;
  if (sender != nullptr) *sender = m.sender;
  orrery_release(&m);
  return copy;
}

// --- one PE ---
double ring_hop(effort e);
double function_ring_hop(effort e);
double spawn(effort e);
double spawn_begun(effort e);
double spawn_and_run(effort e);
double blocked_bytes(effort e);

// --- several nodes ---
double round_trip(effort e);
double reference(effort e);
double own_memory(effort e);
double broadcast(effort e);

}  // namespace bench_task
