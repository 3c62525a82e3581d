// SPDX-License-Identifier: Apache-2.0
// Global Arrays beside shared data: a put of 8 bytes, and the diffusion on arrays with ghost cells.
#include "../common.hpp"

#include <utility>

#include <ga.h>
#include <macdecls.h>
#include <mpi.h>

namespace {

int me() { return GA_Nodeid(); }

void measure_put() {
  int elements = 2048;
  char name[] = "vector";
  const int v = NGA_Create(C_DBL, 1, &elements, name, nullptr);
  GA_Zero(v);
  GA_Sync();
  if (me() == 0) {
    double x = 1;
    int n = 0;
    peers::report("ga_put_ns", peers::rtt_ns([&] {
                    int at = elements - 1 - n++ % (elements / 4);  // of the last process
                    NGA_Put(v, &at, &at, &x, nullptr);
                  }));
  }
  GA_Sync();
  GA_Destroy(v);
}

struct ghosted {
  int handle;
  double* first;  // ghost cells included
  int rows, pitch;
};
ghosted make(int n) {
  int dims[] = {n, n}, width[] = {1, 1}, chunk[] = {-1, n};
  char name[] = "matrix";
  ghosted g{NGA_Create_ghosts(C_DBL, 2, dims, width, name, chunk), nullptr, 0, 0};
  double one = 1;
  GA_Fill(g.handle, &one);
  int with_ghosts[2], pitch = 0;
  NGA_Access_ghosts(g.handle, with_ghosts, &g.first, &pitch);
  g.rows = with_ghosts[0] - 2;
  g.pitch = pitch;
  return g;
}

void measure_diffusion() {
  const bool smoke = peers::seconds() < 1;
  const int n = smoke ? 256 : 2048, steps = smoke ? 4 : 60;
  ghosted a = make(n), b = make(n);
  GA_Sync();
  const auto begin = peers::now_ns();
  for (int step = 0; step < steps; ++step) {
    GA_Update_ghosts(a.handle);
    for (int i = 1; i <= a.rows; ++i) {
      const double *up = a.first + (i - 1) * a.pitch, *row = up + a.pitch, *down = row + a.pitch;
      double* const to = b.first + i * b.pitch;
      for (int j = 1; j <= n; ++j) to[j] = row[j] + 0.2 * (up[j] + down[j] + row[j - 1] + row[j + 1] - 4 * row[j]);
    }
    GA_Sync();
    std::swap(a, b);
  }
  if (me() == 0) peers::report("ga_diffusion_mcells", double(n) * n * steps / (double(peers::now_ns() - begin) * 1e-3));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  GA_Initialize();
  MA_init(C_DBL, 1'000'000, 1'000'000);
  measure_put();
  measure_diffusion();
  GA_Terminate();
  MPI_Finalize();
}
