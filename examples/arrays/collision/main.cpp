// SPDX-License-Identifier: Apache-2.0
// Moving triangles in voxels that come into being when they are entered: which triangles meet?
// run: ./collision --triangles 3000 --size 65536 --voxel-bits 16 --swarms 7 --steps 4 --check --orrery-pes=3
// run: ./collision --triangles 3000 --size 65536 --voxel-bits 15 --swarms 7 --steps 4 --check --wander --orrery-nodes=2
// run: ./collision --triangles 3000 --size 65536 --voxel-bits 18 --swarms 7 --steps 3 --check --wander --balance --orrery-nodes=3
// run: ./collision --triangles 30000 --size 16384 --steps 2 --picture collision_test.png --orrery-pes=2
#include "../picture.hpp"
#include "voxel.hpp"

#include <orrery/array/balance.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace {

using namespace collision;

struct options {
  settings set;
  std::uint32_t steps = 5;
  bool balance = false;
  bool wander = false;
  bool check = false;
  std::string picture;
};

// Every pair, one after the other.
std::vector<id_pair> all_pairs(const std::vector<moving_triangle>& triangles) {
  std::vector<box> boxes;
  for (const auto& t : triangles) boxes.push_back(box_of(t.shape));
  std::vector<id_pair> found;
  for (std::uint32_t i = 0; i < triangles.size(); ++i)
    for (std::uint32_t j = i + 1; j < triangles.size(); ++j)
      if (overlap(boxes[i], boxes[j]) && meet(triangles[i].shape, triangles[j].shape)) found.emplace_back(i, j);
  return found;
}

// Collisions on the left, seen along the third axis; on the right the PE of the fullest voxel that
// one looks through.
void paint(space voxels, const options& o) {
  auto [target, result] = orrery::expect_result<std::vector<voxel_state>>();
  post(voxels)->show(target);
  const auto wide = static_cast<std::size_t>(extent >> o.set.voxel_bits);
  std::vector<std::uint64_t> pairs(wide * wide);
  std::vector<voxel_state> fullest(wide * wide);
  for (const voxel_state& v : result.get()) {
    const std::size_t at = static_cast<std::size_t>(v.at[1]) * wide + static_cast<std::size_t>(v.at[0]);
    pairs[at] += v.pairs;
    if (v.visits > fullest[at].visits) fullest[at] = v;
  }
  const auto most = static_cast<double>(std::max<std::uint64_t>(1, *std::ranges::max_element(pairs)));
  const auto pixels = static_cast<std::ptrdiff_t>(std::max<std::size_t>(1, 384 / wide));
  const auto side = static_cast<std::ptrdiff_t>(wide) * pixels;
  examples::picture p(static_cast<std::size_t>(2 * side + 8), static_cast<std::size_t>(side));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto x = static_cast<std::ptrdiff_t>(i % wide) * pixels;
    const auto y = static_cast<std::ptrdiff_t>(i / wide) * pixels;
    p.fill(x, y, pixels, pixels, examples::heat(std::sqrt(static_cast<double>(pairs[i]) / most)));
    if (fullest[i].visits != 0) p.fill(side + 8 + x, y, pixels, pixels, examples::of_pe(fullest[i].pe));
  }
  p.write(o.picture);
}

int run(const options& o) {
  auto voxels = orrery::create_array<Voxel, orrery::index<3>>({.name = "space"});
  auto swarms = orrery::create_array<Swarm>(orrery::range<int>{o.set.swarms}, {.name = "swarms"}, {}, o.set, voxels);
  std::vector<moving_triangle> reference;
  for (std::uint32_t id = 0; o.check && id < o.set.triangles; ++id) reference.push_back(make_triangle(id, o.set));
  if (o.balance) orrery::measure_load(voxels, true);
  bool good = true;
  std::size_t found = 0;
  for (std::uint32_t step = 1; step <= o.steps; ++step) {
    const auto begin = std::chrono::steady_clock::now();
    if (o.wander) post(voxels)->wander(step);  // while triangles enter them
    post(swarms)->advance();
    orrery::quiescence();  // all have arrived, and all voxels that they need are there
    if (o.check) {
      for (auto& t : reference) move(t);
      auto [target, result] = orrery::expect_result<std::vector<id_pair>>();
      post(voxels)->list(target);
      std::vector<id_pair> pairs = result.get();
      std::ranges::sort(pairs);
      const bool same = pairs == all_pairs(reference);
      fmt::print("step {}: {} pairs, {}\n", step, pairs.size(), same ? "as by trying all" : "NOT as by trying all");
      good &= same;
      found += pairs.size();
    } else {
      auto [target, result] = orrery::expect_result<findings>();
      post(voxels)->count(target);
      const findings f = result.get();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      fmt::print("step {}: {} pairs of {} triangles in {} voxels, each in {:.2f} of them; {:.2f} s\n", step, f.pairs,
                 o.set.triangles, f.voxels, static_cast<double>(f.visits) / o.set.triangles, time.count());
    }
    if (o.balance) fmt::print("  {}\n", orrery::balance(voxels, *orrery::balance_refine()).text());
  }
  if (!o.picture.empty()) paint(voxels, o);
  orrery::destroy(swarms);
  orrery::destroy(voxels);
  if (o.check && found == 0) {
    fmt::print("no triangles met: that checks nothing; take more of them (--triangles), or a smaller space (--size)\n");
    return 1;
  }
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args words) {
    CLI::App app{"Collisions of moving triangles"};
    options o;
    app.add_option("--triangles", o.set.triangles, "how many")->check(CLI::Range(1, 100'000'000));
    app.add_option("--size", o.set.size, "of a triangle, at most; space is 1048576 wide")
        ->check(CLI::Range(2, 1 << 18));
    app.add_option("--voxel-bits", o.set.voxel_bits, "a voxel is 2^N wide")->check(CLI::Range(10, 19));
    app.add_option("--swarms", o.set.swarms, "elements that move the triangles")->check(CLI::Range(1, 1'000'000));
    app.add_option("--steps", o.steps, "steps of time")->check(CLI::PositiveNumber);
    app.add_flag("--balance", o.balance, "spreads the voxels anew after each step");
    app.add_flag("--wander", o.wander, "voxels migrate at random, once in each step, while triangles enter them");
    app.add_flag("--check", o.check, "compares with trying all pairs: for some thousands of triangles");
    app.add_option("--picture", o.picture, "a PNG: where triangles meet, and the voxels' PEs");
    try {
      app.parse(std::vector<std::string>(words.rbegin(), words.rend() - 1));
    } catch (const CLI::ParseError& e) {
      return app.exit(e);
    }
    return run(o);
  });
}
