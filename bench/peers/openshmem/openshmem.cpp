// SPDX-License-Identifier: Apache-2.0
// OpenSHMEM beside shared data: a put of 8 bytes that is complete, and a collect of 8 MiB.
#include "../common.hpp"

#include <shmem.h>

#include <algorithm>

namespace {

void measure_put(long* v, int other) {
  constexpr int elements = 1024;
  int n = 0;
  const double ns = peers::rtt_ns([&] {
    ++n;
    shmem_long_p(v + n % elements, n, other);
    shmem_quiet();
  });
  peers::report("shmem_put_ns", ns);
}

double collect_gbps(std::uint64_t* all, const std::uint64_t* own, std::size_t each) {
  std::vector<double> ns;
  for (int i = 0; i < 30; ++i) {
    shmem_barrier_all();
    const auto begin = peers::now_ns();
    shmem_fcollect64(all, own, each, 0, 0, shmem_n_pes(), [] {
      static long sync[SHMEM_COLLECT_SYNC_SIZE];
      std::fill(std::begin(sync), std::end(sync), SHMEM_SYNC_VALUE);
      shmem_barrier_all();
      return sync;
    }());
    ns.push_back(double(peers::now_ns() - begin));
  }
  return double(8 * each) * shmem_n_pes() / peers::median(ns);
}

}  // namespace

int main() {
  shmem_init();
  const std::size_t each = (8 << 20) / 8 / std::size_t(shmem_n_pes());
  auto* v = static_cast<long*>(shmem_malloc(1024 * sizeof(long)));
  auto* all = static_cast<std::uint64_t*>(shmem_malloc(8 << 20));
  auto* own = static_cast<std::uint64_t*>(shmem_malloc(8 * each));
  shmem_barrier_all();
  if (shmem_my_pe() == 0) measure_put(v, shmem_n_pes() - 1);
  const double gbps = collect_gbps(all, own, each);
  if (shmem_my_pe() == 0) peers::report("shmem_collect_gbps", gbps);
  shmem_barrier_all();
  shmem_global_exit(0);  // Debian's shmem_finalize crashes
}
