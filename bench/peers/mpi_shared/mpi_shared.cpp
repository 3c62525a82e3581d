// SPDX-License-Identifier: Apache-2.0
// MPI beside shared data: MM2 with the same loops, as the paper's program (the rows of the second factor are gathered
// before each phase), and what a put of 8 bytes and an allgather take.
#include "../../../examples/shared/mm2/kernel.hpp"
#include "../common.hpp"

#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <string>

using namespace peers;

static int rank, ranks;
static const MPI_Comm world = MPI_COMM_WORLD;

static void print(const std::string& metric, double value) {
  if (rank == 0) report(metric.c_str(), value);
}

using matrix = std::vector<int>;

static void multiply(const matrix& a, const matrix& b, matrix& all, matrix& c, int n, bool paper) {
  MPI_Allgather(b.data(), int(b.size()), MPI_INT, all.data(), int(b.size()), MPI_INT, world);
  for (int i = 0; i < n / ranks; ++i) {
    if (paper) {
      for (int j = 0; j < n; ++j)
        c[std::size_t(i) * n + j] = mm2::dot_product(&a[std::size_t(i) * n], all.data(), j, n);
    } else {
      mm2::row_product(&a[std::size_t(i) * n], all.data(), &c[std::size_t(i) * n], n);
    }
  }
  MPI_Barrier(world);
}

static double mm2_s(int n, bool paper, int runs) {
  const std::size_t own = std::size_t(n / ranks) * n;
  matrix p(own), q(own), r(own), all(std::size_t(n) * n);
  std::vector<double> s;
  for (int run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < own; ++i) q[i] = int(i * 7 + rank) % 4, r[i] = int(i * 5 + rank) % 4;
    MPI_Barrier(world);
    const auto t = now_ns();
    multiply(q, r, all, p, n, paper);
    multiply(q, p, all, r, n, paper);
    s.push_back(double(now_ns() - t) / 1e9);
  }
  return *std::min_element(s.begin(), s.end());
}

static double put_ns(int count) {
  std::uint64_t* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate(4096, 8, MPI_INFO_NULL, world, &memory, &window);
  MPI_Win_lock_all(0, window);
  MPI_Barrier(world);
  const auto t = now_ns();
  if (rank == 0)
    for (int i = 0; i < count; ++i) {
      const std::uint64_t x = std::uint64_t(i);
      MPI_Put(&x, 1, MPI_UINT64_T, 1, i % 512, 1, MPI_UINT64_T, window);
      MPI_Win_flush(1, window);
    }
  const double ns = double(now_ns() - t) / count;
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  return ns;
}

static double allgather_gbps(int times) {
  constexpr std::size_t bytes = 8 << 20;
  std::vector<char> own(bytes / std::size_t(ranks), char(rank)), all(bytes);
  std::vector<double> s;
  for (int i = 0; i < times; ++i) {
    MPI_Barrier(world);
    const auto t = now_ns();
    MPI_Allgather(own.data(), int(own.size()), MPI_CHAR, all.data(), int(own.size()), MPI_CHAR, world);
    s.push_back(double(bytes) / double(now_ns() - t));
  }
  return median(s);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  const bool smoke = seconds() < 1;
  const int runs = smoke ? 1 : 3;
  if (smoke) {
    print("mpi_mm2_512_s", mm2_s(64, true, runs));
  } else {
    print("mpi_mm2_512_s", mm2_s(512, true, runs));
    print("mpi_mm2_512_rows_s", mm2_s(512, false, 5 * runs));
    print("mpi_mm2_704_s", mm2_s(704, true, runs));
    print("mpi_mm2_704_rows_s", mm2_s(704, false, 5 * runs));
  }
  print("mpi_put_ns", put_ns(smoke ? 1000 : 100'000));
  print("mpi_allgather_gbps", allgather_gbps(smoke ? 3 : 30));
  MPI_Finalize();
}
