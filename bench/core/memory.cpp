// SPDX-License-Identifier: Apache-2.0
#include "bench.hpp"

#include <orrery/orrery.hpp>

using namespace orrery;
using namespace bench;

namespace {

struct Small {
  explicit Small(int x) : value(x) {}
  int get() const { return value; }
  int value;
};
ORRERY_PROCESS(Small, get);

double spawn_time(effort e) {
  const int n = e.times(1'000'000);
  std::vector<remote<Small>> all(static_cast<std::size_t>(n));
  const auto begin = clock::now();
  for (int i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = spawn<Small>(here(), i);
  const double t = ns_since(begin);
  for (auto& p : all) destroy(p);
  return t / n;
}

// In worlds of their own: memory that was used once would be used again.
double idle_bytes(effort e) {
  const int n = e.times(1'000'000);
  std::vector<remote<Small>> all(static_cast<std::size_t>(n));
  for (auto& p : all) p = remote<Small>(address{1, 1, 1});
  const double before = resident_bytes();
  for (int i = 0; i < n; ++i) all[static_cast<std::size_t>(i)] = spawn<Small>(here(), i);
  return (resident_bytes() - before) / n - sizeof(Small);
}

double blocked_bytes(effort e) {
  const int n = e.times(1'000'000);
  const double before = resident_bytes();
  for (int i = 0; i < n; ++i) (void)spawn(here(), [] { (void)receive<int>(); });
  yield();
  return (resident_bytes() - before) / n;
}

}  // namespace

std::vector<metric> bench::memory() {
  const std::vector<std::string> world{"--orrery-pes=1"};
  // The figures of memory are exact at the first run only: later ones find what the first has freed.
  auto once = [](double (*f)(effort)) {
    return [f, value = -1.0](effort e) mutable { return value < 0 ? value = f(e) : value; };
  };
  return {
      {"spawn_ns", world, spawn_time},
      {"idle_bytes", world, once(idle_bytes)},
      {"blocked_bytes", world, once(blocked_bytes)},
  };
}
