// SPDX-License-Identifier: Apache-2.0
// MPI. With 2 ranks: point to point, written as the OSU benchmarks are. With more: barrier and ring.
#include "../common.hpp"

#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <algorithm>
#include <string>

using namespace peers;

static int rank, ranks;
static const MPI_Comm world = MPI_COMM_WORLD;

static void send(const void* data, std::size_t bytes, int to) { MPI_Send(data, int(bytes), MPI_CHAR, to, 0, world); }

static void receive(void* data, std::size_t bytes, int from) {
  MPI_Recv(data, int(bytes), MPI_CHAR, from, 0, world, MPI_STATUS_IGNORE);
}

// An empty message from rank 1 to rank 0.
static void acknowledge() { rank == 0 ? receive(nullptr, 0, 1) : send(nullptr, 0, 0); }

// The median, over a few batches, of the ns that `count` repetitions of one step take on rank 0.
template <class Batch>
double ns_per_step(int count, Batch batch) {
  count = std::max(1, int(count * seconds()));
  std::vector<double> samples;
  batch(std::max(1, count / 10));
  for (int i = 0; i < 5; ++i) {
    MPI_Barrier(world);
    auto t = now_ns();
    batch(count);
    samples.push_back(double(now_ns() - t) / count);
  }
  return median(samples);
}

static void print(const std::string& metric, double value) {
  if (rank == 0) report(metric.c_str(), value);
}

static void ping_pong(int count) {
  block64 m{};
  for (int i = 0; i < count; ++i) {
    if (rank == 0) send(&m, sizeof m, 1);
    receive(&m, sizeof m, 1 - rank);
    if (rank == 1) send(&m, sizeof m, 0);
  }
}

// Windows of 64 messages with requests for all of them, an empty message back after each window.
static void windows(int count, std::size_t bytes) {
  constexpr int window = 64;
  block64 m[window]{};
  MPI_Request request[window];
  for (int n = 0; n < count; ++n) {
    for (int i = 0; i < window; ++i)
      if (rank == 0)
        MPI_Isend(&m[i], int(bytes), MPI_CHAR, 1, 0, world, &request[i]);
      else
        MPI_Irecv(&m[i], int(bytes), MPI_CHAR, 0, 0, world, &request[i]);
    MPI_Waitall(window, request, MPI_STATUSES_IGNORE);
    acknowledge();
  }
}

// A sliding window of messages of 1 MiB; the receiver sums every word of each where MPI put it.
static void bulk(int count) {
  constexpr int window = 4;
  static std::vector<std::uint64_t> m[window];
  for (auto& b : m) b.assign(bulk_bytes / 8, rank == 0 ? 1 : 0);
  MPI_Request request[window];
  std::fill(request, request + window, MPI_REQUEST_NULL);
  std::uint64_t sum = 0;
  for (int i = 0; i < count + window; ++i) {
    auto& r = request[i % window];
    auto* data = m[i % window].data();
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    if (rank == 1 && i >= window) sum += sum_words(data, bulk_bytes);
    if (i >= count) continue;
    if (rank == 0)
      MPI_Isend(data, int(bulk_bytes), MPI_CHAR, 1, 0, world, &r);
    else
      MPI_Irecv(data, int(bulk_bytes), MPI_CHAR, 0, 0, world, &r);
  }
  if (rank == 1 && sum != std::uint64_t(count) * (bulk_bytes / 8)) MPI_Abort(world, 1);
  acknowledge();
}

static void ring(int laps) {
  std::uint64_t token = 0;
  for (int i = 0; i < laps; ++i) {
    if (rank == 0) send(&token, sizeof token, 1);
    receive(&token, sizeof token, (rank + ranks - 1) % ranks);
    if (rank != 0) send(&token, sizeof token, (rank + 1) % ranks);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  if (ranks == 2) {
    print("openmpi_pingpong_rtt_us", ns_per_step(100'000, ping_pong) / 1e3);
    print("openmpi_rate_m", 64e3 / ns_per_step(10'000, [](int n) { windows(n, 8); }));
    print("openmpi_rate_64b_m", 64e3 / ns_per_step(10'000, [](int n) { windows(n, 64); }));
    print("openmpi_bulk_gbps", double(bulk_bytes) / ns_per_step(500, bulk));
  } else {
    auto barriers = [](int n) {
      while (n-- > 0) MPI_Barrier(world);
    };
    auto suffix = std::to_string(ranks);
    print("openmpi_barrier_" + suffix + "_us", ns_per_step(100, barriers) / 1e3);
    print("openmpi_ring_" + suffix + "_hop_us", ns_per_step(10, ring) / 1e3 / ranks);
  }
  MPI_Finalize();
}
