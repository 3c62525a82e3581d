// SPDX-License-Identifier: Apache-2.0
// The same patterns in MPI itself, between two ranks, with the library that the runtime uses: `calls` or `bulk`.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string_view>
#include <vector>

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

namespace {

using clock_type = std::chrono::steady_clock;

int rank = 0;

template <class Batch>
double median_us(int count, Batch&& batch) {
  std::vector<double> samples;
  batch(std::max(1, count / 10));
  for (int i = 0; i < 5; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = clock_type::now();
    batch(count);
    samples.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - begin).count() / count);
  }
  std::sort(samples.begin(), samples.end());
  return samples[2];
}

void report(const char* metric, double value) {
  if (rank == 0) std::printf("%s %.6g\n", metric, value);
}

// `window` messages on their way, and an empty one back.
void stream(std::vector<char>& data, int n, int window) {
  std::vector<MPI_Request> requests(static_cast<std::size_t>(window));
  const auto bytes = static_cast<int>(data.size());
  for (int i = 0; i < n; i += window) {
    for (auto& r : requests) {
      if (rank == 0) {
        MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &r);
      } else {
        MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &r);
      }
    }
    MPI_Waitall(window, requests.data(), MPI_STATUSES_IGNORE);
    if (rank == 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
}

void measure_calls() {
  std::vector<char> small(64);
  report("mpi_pingpong_us", median_us(2'000, [&](int n) {
           for (int i = 0; i < n; ++i) {
             if (rank == 0) MPI_Send(small.data(), 64, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
             MPI_Recv(small.data(), 64, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
             if (rank == 1) MPI_Send(small.data(), 64, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
           }
         }));
  report("mpi_rate_m", 1 / median_us(64 * 500, [&](int n) { stream(small, n, 64); }));
  report("mpi_barrier_us", median_us(2'000, [&](int n) {
           for (int i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_WORLD);
         }));
  double one = 1;
  double sum = 0;
  report("mpi_allreduce_us", median_us(2'000, [&](int n) {
           for (int i = 0; i < n; ++i) MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
         }));
}

void measure_bulk() {
  std::vector<char> large(1 << 20);
  report("mpi_bulk_gbps",
         static_cast<double>(large.size()) / 1e3 / median_us(200, [&](int n) { stream(large, n, 8); }));
  large.resize(64 << 20);
  report("mpi_bulk_64m_gbps",
         static_cast<double>(large.size()) / 1e3 / median_us(4, [&](int n) { stream(large, n, 1); }));
}

}  // namespace

int main(int argc, char** argv) {
  const auto begin = clock_type::now();
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  report("mpi_init_ms", std::chrono::duration<double, std::milli>(clock_type::now() - begin).count());
  const std::string_view part = argc > 1 ? argv[1] : "";
  if (part == "bulk") {
    measure_bulk();
  } else {
    measure_calls();
  }
  MPI_Finalize();
  return 0;
}
