// SPDX-License-Identifier: Apache-2.0
// Heat that spreads over a torus: a five-point stencil on shared matrices with halo caches (Lu
// 2001, section 3.2).
// run: ./diffusion --size 30 --steps 20 --check --orrery-pes=2
// run: ./diffusion --size 31 --steps 20 --check --tiles --orrery-nodes=2 --orrery-pes=2
// run: ./diffusion --size 24 --steps 10 --check --tiles --orrery-sim=machines=6,net=10g,jitter=3us
// run: ./diffusion --size 25 --steps 10 --check --members 7 --orrery-sim=machines=3,jitter=3us,seed=5
// run: ./diffusion --size 12 --steps 3 --check --plain --orrery-sim=machines=4,net=10g --orrery-advise
// run: ./diffusion --size 12 --steps 3 --check --plain --orrery-pes=2 --orrery-advise
// run: ./diffusion --size 26 --steps 9 --check --copies --orrery-pes=2
// run: ./diffusion --size 20 --steps 6 --check --tiles --orrery-sim=machines=4,jitter=3us --orrery-check-sharing
#include "diffuse.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using diffusion::next_value;
using orrery::shared_matrix;

struct options {
  std::uint64_t size = 512;
  int steps = 100;
  std::size_t members = 0;
  double cell_ns = 0;
  std::string picture;
  bool tiles = false;
  bool plain = false;
  bool check = false;
  bool copies = false;
};

/// The same by one loop.
std::vector<double> diffuse_alone(std::vector<double> now, std::uint64_t n, int steps) {
  std::vector<double> next(now.size());
  for (int step = 0; step < steps; ++step) {
    for (std::uint64_t i = 0; i < n; ++i)
      for (std::uint64_t j = 0; j < n; ++j)
        next[i * n + j] = next_value(now[i * n + j], now[(i + n - 1) % n * n + j], now[(i + 1) % n * n + j],
                                     now[i * n + (j + n - 1) % n], now[i * n + (j + 1) % n]);
    now.swap(next);
  }
  return now;
}

/// As square as the number allows.
orrery::distribution tiles_for(std::uint32_t pes) {
  auto down = static_cast<std::uint32_t>(std::sqrt(pes));
  while (pes % down != 0) --down;
  return orrery::distribution::tiles(down, pes / down);
}

/// The hotter, the lighter.
void draw(const shared_matrix<double>& m, const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  out << "P5\n" << m.column_count() << ' ' << m.row_count() << "\n255\n";
  with(read_cache(m), [&](auto& all) {
    const double most = std::ranges::max(all.span());
    for (const double x : all.span()) out.put(static_cast<char>(static_cast<unsigned char>(255 * x / most)));
  });
}

int simulate(const options& o) {
  const std::uint64_t n = o.size;
  const auto how = o.tiles ? tiles_for(orrery::world_pes()) : orrery::distribution::block();
  const auto with_room = o.copies || o.plain ? how : how.with_halo(1);
  const shared_matrix<double> a(n, n, with_room);
  const shared_matrix<double> b(n, n, with_room);
  std::vector<double> first(n * n);
  if (o.picture.empty()) {
    for (std::uint64_t i = 0; i < first.size(); ++i) first[i] = i % 7 == 0 ? 100 : static_cast<double>(i % 13);
  } else {  // some hot places, one of which lies over a corner
    std::mt19937 random(7);
    for (int spot = 0; spot < 9; ++spot) {
      const std::uint64_t row = spot == 0 ? 0 : random() % n;
      const std::uint64_t column = spot == 0 ? 0 : random() % n;
      const std::uint64_t side = 1 + n / (6 + random() % 12);
      for (std::uint64_t i = 0; i < side * side; ++i) first[(row + i / side) % n * n + (column + i % side) % n] += 100;
    }
  }
  copy(std::span<const double>(first), a.rows(0, n));
  const orrery::team team = o.members == 0 ? orrery::team() : orrery::team(orrery::everywhere(), o.members);
  const auto begin = orrery::now();
  o.plain ? orrery::spmd<&diffusion::diffuse_plainly>(team, a, b, o.steps)
          : orrery::spmd<&diffusion::diffuse>(team, a, b, o.steps, o.cell_ns);
  const double seconds = std::chrono::duration<double>(orrery::now() - begin).count();
  if (!o.picture.empty()) draw(o.steps % 2 == 0 ? a : b, o.picture);
  if (o.check) {
    std::vector<double> last(n * n);
    copy((o.steps % 2 == 0 ? a : b).rows(0, n), std::span(last));
    if (last != diffuse_alone(first, n, o.steps)) return fmt::print(stderr, "not the same as one loop\n"), 1;
  }
  fmt::print("{} x {}, {} steps, {} PEs: {:.1f} million cells a second\n", n, n, o.steps, orrery::world_pes(),
             static_cast<double>(n * n) * o.steps / seconds / 1e6);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    options o;
    CLI::App app("Heat that spreads over a torus");
    app.add_option("--size", o.size, "rows and columns")->check(CLI::Range(1, 100'000));
    app.add_option("--steps", o.steps, "how many")->check(CLI::NonNegativeNumber);
    app.add_option("--members", o.members, "of the team; 0: one on each PE");
    app.add_option("--cell-ns", o.cell_ns, "in simulations: time of a cell");
    app.add_option("--picture", o.picture, "a file for the last state, as a portable graymap (.pgm)");
    app.add_flag("--tiles", o.tiles, "one tile for each PE, instead of rows");
    app.add_flag("--plain", o.plain, "without scopes: each access by default");
    app.add_flag("--copies", o.copies, "matrices without room for a halo, which are copied for each step");
    app.add_flag("--check", o.check, "compare with one loop, bit for bit");
    try {
      // CLI11 takes them from the end
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return simulate(o);
  });
}
