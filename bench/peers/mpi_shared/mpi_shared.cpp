// SPDX-License-Identifier: Apache-2.0
// MPI beside shared data: MM2 with the same loops, as the paper's program (the rows of the second factor are gathered
// before each phase), and what a put of 8 bytes and an allgather take.
#include "../../../examples/shared/mm2/kernel.hpp"
#include "../common.hpp"

#define OMPI_SKIP_MPICXX 1  // the C interface only
#include <mpi.h>
#include <algorithm>
#include <random>
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

using keys = std::vector<std::uint32_t>;

// Merges runs that end before these numbers, two and two.
static void merge_runs(keys& all, std::vector<std::size_t> ends) {
  keys other(all.size());
  while (ends.size() > 1) {
    std::vector<std::size_t> next;
    std::size_t first = 0;
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      const std::size_t middle = ends[i], last = i + 1 < ends.size() ? ends[i + 1] : middle;
      std::merge(all.begin() + long(first), all.begin() + long(middle), all.begin() + long(middle),
                 all.begin() + long(last), other.begin() + long(first));
      next.push_back(last);
      first = last;
    }
    all.swap(other);
    ends = std::move(next);
  }
}

// Where partition p of what a rank has begins; and the counts of all-to-all.
static void exchange(const keys& from, const std::vector<int>& send, keys& to, const std::vector<int>& receive) {
  std::vector<int> send_at(send.size()), receive_at(receive.size());
  for (std::size_t i = 1; i < send.size(); ++i) {
    send_at[i] = send_at[i - 1] + send[i - 1];
    receive_at[i] = receive_at[i - 1] + receive[i - 1];
  }
  MPI_Alltoallv(from.data(), send.data(), send_at.data(), MPI_UINT32_T, to.data(), receive.data(), receive_at.data(),
                MPI_UINT32_T, world);
}

// Parallel sorting by regular sampling, as examples/shared/psrs; block-distributed again in the end.
static void sort_by_samples(keys& own) {
  const auto count = std::size_t(ranks);
  std::sort(own.begin(), own.end());
  keys mine(count), samples(count * count);
  for (std::size_t i = 0; i < count; ++i) mine[i] = own[i * own.size() / count];
  MPI_Allgather(mine.data(), ranks, MPI_UINT32_T, samples.data(), ranks, MPI_UINT32_T, world);
  std::sort(samples.begin(), samples.end());
  std::vector<int> send(count), receive(count);
  auto cut = own.begin();
  for (std::size_t i = 0; i < count; ++i) {
    const auto end = i + 1 < count ? std::upper_bound(cut, own.end(), samples[(i + 1) * count]) : own.end();
    send[i] = int(end - cut);
    cut = end;
  }
  MPI_Alltoall(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, world);
  std::vector<std::size_t> ends;
  std::size_t size = 0;
  for (const int n : receive) ends.push_back(size += std::size_t(n));
  keys merged(size);
  exchange(own, send, merged, receive);
  merge_runs(merged, ends);

  // Rank r has own.size() keys again: what of the merged ones belongs to whom follows from their numbers.
  long first = 0;
  const long got = long(size), block = long(own.size());
  MPI_Exscan(&got, &first, 1, MPI_LONG, MPI_SUM, world);
  if (rank == 0) first = 0;
  for (long r = 0; r < ranks; ++r)
    send[std::size_t(r)] = int(std::max(0L, std::min(first + got, (r + 1) * block) - std::max(first, r * block)));
  MPI_Alltoall(send.data(), 1, MPI_INT, receive.data(), 1, MPI_INT, world);
  exchange(merged, send, own, receive);
}

static double psrs_s(std::size_t all) {
  std::mt19937 random(unsigned(rank) + 1);
  keys own(all / std::size_t(ranks));
  for (auto& k : own) k = std::uint32_t(random());
  MPI_Barrier(world);
  const auto t = now_ns();
  sort_by_samples(own);
  MPI_Barrier(world);
  const double s = double(now_ns() - t) / 1e9;
  std::uint32_t edge = 0;
  if (rank > 0) MPI_Recv(&edge, 1, MPI_UINT32_T, rank - 1, 0, world, MPI_STATUS_IGNORE);
  if (rank + 1 < ranks) MPI_Send(&own.back(), 1, MPI_UINT32_T, rank + 1, 0, world);
  if (!std::is_sorted(own.begin(), own.end()) || own.front() < edge) {
    std::fputs("the keys are not sorted\n", stderr);
    MPI_Abort(world, 1);
  }
  return s;
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
    print("mpi_mm2_512_rows_s", mm2_s(512, false, 17 * runs));
    print("mpi_mm2_704_s", mm2_s(704, true, runs));
    print("mpi_mm2_704_rows_s", mm2_s(704, false, 8 * runs));
  }
  print("mpi_psrs_100m_s", psrs_s(smoke ? 100'000 : 100'000'000));
  print("mpi_put_ns", put_ns(smoke ? 1000 : 100'000));
  print("mpi_allgather_gbps", allgather_gbps(smoke ? 3 : 30));
  MPI_Finalize();
}
