// SPDX-License-Identifier: Apache-2.0
// Tasks of one PE: messages, creation, memory. `function_` figures are those of C++ functions, for the ratio.
#include "figures.hpp"

#include <orrery/orrery.hpp>

#include <vector>

namespace bench_task {

static void station(void*, std::size_t) {
  const next to = receive<next>(next_type);
  for (;;) {
    const int left = receive<hop>(hop_type).left;
    if (left < 0) return;
    const hop on{left - 1};
    orrery_send(left > 0 ? to.task : to.done, 0, &hop_type, &on, ORRERY_WAIT);
  }
}

double ring_hop(effort e) {
  constexpr int size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<orrery_task> ring(size);
  for (auto& t : ring) orrery_create(station, nullptr, 0, orrery_here(), &t);
  for (std::size_t i = 0; i < ring.size(); ++i) {
    const next n{ring[(i + 1) % ring.size()], orrery_self()};
    orrery_send(ring[i], 0, &next_type, &n, ORRERY_WAIT);
  }
  const auto round = [&](int n) {
    const hop first{n};
    orrery_send(ring[0], 0, &hop_type, &first, ORRERY_WAIT);
    (void)receive<hop>(hop_type);
  };
  round(size);
  const auto begin = bench::clock::now();
  round(hops);
  const double t = ns_since(begin);
  const hop end{-1};
  for (const auto& s : ring) orrery_send(s, 0, &hop_type, &end, ORRERY_WAIT);
  orrery_yield();
  return t / hops;
}

static void function_station(orrery::remote<orrery::function> done) {
  const auto to = orrery::receive<orrery::remote<orrery::function>>();
  for (;;) {
    const int left = orrery::receive<int>();
    if (left < 0) return;
    orrery::send(left > 0 ? to : done, left - 1);
  }
}

double function_ring_hop(effort e) {
  constexpr int size = 1000;
  const int hops = e.times(2'000'000);
  std::vector<orrery::remote<orrery::function>> ring;
  for (int i = 0; i < size; ++i)
    ring.push_back(orrery::spawn(orrery::here(), function_station, orrery::this_process<orrery::function>()));
  for (std::size_t i = 0; i < ring.size(); ++i) orrery::send(ring[i], ring[(i + 1) % ring.size()]);
  orrery::send(ring[0], size);
  (void)orrery::receive<int>();
  const auto begin = bench::clock::now();
  orrery::send(ring[0], hops);
  (void)orrery::receive<int>();
  const double t = ns_since(begin);
  for (const auto& s : ring) orrery::send(s, -1);
  orrery::yield();
  return t / hops;
}

static void blocked(void*, std::size_t) { (void)receive<hop>(hop_type); }

// A million tasks that wait: until they are created, and until all have begun, if `begun`.
static double spawn_and_wait(effort e, bool begun) {
  const int n = e.times(1'000'000);
  std::vector<orrery_task> all(static_cast<std::size_t>(n));
  const auto begin = bench::clock::now();
  for (auto& t : all) orrery_create(blocked, nullptr, 0, orrery_here(), &t);
  double t = ns_since(begin);
  orrery_yield();
  if (begun) t = ns_since(begin);
  const hop end{0};
  for (const auto& each : all) orrery_send(each, 0, &hop_type, &end, ORRERY_WAIT);
  orrery_yield();
  return t / n;
}

double spawn(effort e) { return spawn_and_wait(e, false); }
double spawn_begun(effort e) { return spawn_and_wait(e, true); }

// A million tasks that run to their end without waiting.
double spawn_and_run(effort e) {
  const int n = e.times(1'000'000);
  const auto begin = bench::clock::now();
  for (int i = 0; i < n; ++i) orrery_create([](void*, std::size_t) {}, nullptr, 0, orrery_here(), nullptr);
  orrery_yield();
  return ns_since(begin) / n;
}

double blocked_bytes(effort e) {
  const int n = e.times(1'000'000);
  const double before = resident_bytes();
  for (int i = 0; i < n; ++i) orrery_create(blocked, nullptr, 0, orrery_here(), nullptr);
  orrery_yield();
  return (resident_bytes() - before) / n;
}

}  // namespace bench_task
