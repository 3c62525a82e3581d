// SPDX-License-Identifier: Apache-2.0
// Tasks in several OS processes.
#include "figures.hpp"

#include <algorithm>
#include <vector>

namespace bench_task {

static void server(void*, std::size_t) {
  for (;;) {
    orrery_task client;
    const request r = receive<request>(request_type, &client);
    if (r.bytes[0] == 'e') return;
    orrery_send(client, 0, &request_type, &r, ORRERY_WAIT);
  }
}

double round_trip(effort e) {
  const int n = e.times(500'000);
  orrery_task s;
  if (orrery_create(server, nullptr, 0, orrery_node(1), &s) != ORRERY_OK) return -1;
  request r{};
  const auto exchange = [&] {
    orrery_send(s, 0, &request_type, &r, ORRERY_WAIT);
    (void)receive<request>(request_type);
  };
  for (int i = 0; i < 1000; ++i) exchange();
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) exchange();
  const double t = ns_since(begin);
  r.bytes[0] = 'e';
  orrery_send(s, 0, &request_type, &r, ORRERY_WAIT);
  return orrery_join(s, ORRERY_FOREVER) == ORRERY_OK ? t / n : -1;
}

// --- buffers ---------------------------------------------------------------------------------------------------------

struct picture {
  orrery_buffer values;
};
constexpr orrery_field picture_fields[] = {{"values", ORRERY_BUFFER, offsetof(picture, values), 0, 0, 0, 0, nullptr}};
constexpr orrery_message_type picture_type = {"Picture", 1004, sizeof(picture), 1, picture_fields};

static std::uint64_t sum_of(const orrery_buffer& b) {
  const auto* words = static_cast<const std::uint64_t*>(b.data);
  std::uint64_t sums[8] = {};
  for (std::size_t i = 0; i < b.size / 64; ++i)
    for (std::size_t k = 0; k < 8; ++k) sums[k] += words[8 * i + k];
  std::uint64_t all = 0;
  for (const std::uint64_t each : sums) all += each;
  return all;
}

static void reader(void*, std::size_t) {
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    const std::uint64_t sum = sum_of(static_cast<picture*>(orrery_open(&m, &picture_type))->values);
    orrery_send_bytes(m.sender, 0, &sum, sizeof sum, ORRERY_WAIT);
    orrery_release(&m);
  }
}

static orrery_buffer written(std::size_t bytes) {
  orrery_buffer b;
  if (orrery_buffer_make(bytes, &b) != ORRERY_OK) std::exit(1);
  std::fill_n(static_cast<std::uint64_t*>(b.data), bytes / 8, 1);
  return b;
}

// GB/s: a buffer of 256 MiB is handed to another OS process, which reads it and says so. The first one maps the pages there.
double reference(effort e) {
  const std::size_t bytes = static_cast<std::size_t>(e.times(256)) << 20;
  orrery_task t;
  if (orrery_create(reader, nullptr, 0, orrery_node(1), &t) != ORRERY_OK) return -1;
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const picture p{written(bytes)};
    const auto begin = bench::clock::now();
    orrery_send(t, 0, &picture_type, &p, ORRERY_WAIT);
    orrery_message m;
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return -1;
    best = std::max(best, static_cast<double>(bytes) / ns_since(begin));
    std::uint64_t sum = 0;
    std::memcpy(&sum, m.data, sizeof sum);
    orrery_release(&m);
    if (sum != bytes / 8) return -1;
  }
  orrery_stop(t);
  return orrery_join(t, ORRERY_FOREVER) == ORRERY_OK ? best : -1;
}

// The same of its own memory.
double own_memory(effort e) {
  const std::size_t bytes = static_cast<std::size_t>(e.times(256)) << 20;
  orrery_buffer b = written(bytes);
  double best = 0;
  for (int i = 0; i < 4; ++i) {
    const auto begin = bench::clock::now();
    if (sum_of(b) != bytes / 8) return -1;
    best = std::max(best, static_cast<double>(bytes) / ns_since(begin));
  }
  orrery_buffer_free(&b);
  return best;
}

// --- a broadcast -----------------------------------------------------------------------------------------------------

struct reading {
  char* place;
  int count;
  double* celsius;
};
constexpr orrery_field reading_fields[] = {{"place", ORRERY_STRING, offsetof(reading, place), 0, 0, 0, 0, nullptr},
                                           {"celsius", ORRERY_ARRAY, offsetof(reading, celsius), sizeof(double),
                                            offsetof(reading, count), sizeof(int), 1, nullptr}};
constexpr orrery_message_type reading_type = {"Reading", 1005, sizeof(reading), 2, reading_fields};

// Reads until one is empty, and then says how many it has had.
static void subscriber(void*, std::size_t) {
  orrery_message m;
  for (std::uint64_t readings = 0; orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK; ++readings) {
    const auto* r = static_cast<const reading*>(orrery_open(&m, &reading_type));
    const bool ends = r->count == 0;
    if (ends) orrery_send_bytes(m.sender, 0, &readings, sizeof readings, ORRERY_WAIT);
    orrery_release(&m);
    if (ends) return;
  }
}

// Millions of readings a second that 1,000 subscribers in all OS processes have got.
double broadcast(effort e) {
  const int rounds = e.times(3'000);
  std::vector<orrery_task> all(1000);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (orrery_create(subscriber, nullptr, 0, orrery_pe(static_cast<std::uint32_t>(i) % orrery_pes()), &all[i]) !=
        ORRERY_OK)
      return -1;
  char place[] = "Oslo";
  double celsius[4] = {1, 2, 3, 4};
  reading r{place, 4, celsius};
  const auto publish = [&] {
    for (const auto& each : all) orrery_send(each, 0, &reading_type, &r, ORRERY_WAIT);
  };
  publish();
  const auto begin = bench::clock::now();
  for (int i = 1; i < rounds; ++i) publish();
  r.count = 0;
  publish();
  std::uint64_t readings = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    orrery_message m;
    if (orrery_receive(&m, ORRERY_FOREVER) != ORRERY_OK) return -1;
    std::uint64_t one = 0;
    std::memcpy(&one, m.data, sizeof one);
    readings += one;
    orrery_release(&m);
  }
  const double t = ns_since(begin);
  return readings == all.size() * static_cast<std::uint64_t>(rounds) ? static_cast<double>(readings) / t * 1e3 : -1;
}

}  // namespace bench_task
