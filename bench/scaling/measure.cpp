// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include "../../examples/arrays/jacobi/block.hpp"

#include <orrery/array/array.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>

#include <fmt/format.h>

using namespace orrery;

namespace {

constexpr std::uint32_t pes_of_machine = 8;

void in_simulation(std::uint32_t pes, const std::string& net, const std::function<void()>& body) {
  const std::uint32_t each = pes % pes_of_machine == 0 ? pes_of_machine : pes % 4 == 0 ? 4 : 1;
  std::vector<std::string> words{
      "bench_scaling", fmt::format("--orrery-sim=machines={},pes={},net={}", pes / each, each, net), "--orrery-quiet"};
  std::vector<char*> argv;
  for (auto& w : words) argv.push_back(w.data());
  if (run(static_cast<int>(argv.size()), argv.data(), [&](const args&) {
        body();
        return 0;
      }) != 0)
    throw std::runtime_error("a simulation has failed");
}

struct Sum {
  static Sum of(const pe_counters& c) { return {c.routed, c.hops, c.sent}; }
  std::uint64_t routed = 0;
  std::uint64_t hops = 0;
  std::uint64_t sent = 0;
};
Sum counted() {
  Sum all;
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const Sum one = Sum::of(stats(p));
    all.routed += one.routed;
    all.hops += one.hops;
    all.sent += one.sent;
  }
  return all;
}

struct Cell;
ORRERY_PROCESS(Cell, step, wander, talk, hear, where);
struct Cell : element<Cell> {
  explicit Cell(std::uint32_t n = 0) : size(n) {}
  void step(const result_target& done) { contribute(1, sum, done); }
  void wander(std::uint32_t wave) {
    std::minstd_rand random(static_cast<std::uint32_t>(this_index()) * 2'654'435'761U + wave * 40'503U + 1);
    random.discard(3);
    migrate_to(static_cast<std::uint32_t>(random()) % world_pes());
  }
  void talk() {
    post(this_array()[static_cast<std::int32_t>((static_cast<std::uint32_t>(this_index()) * 7919ULL + 13) % size)])
        ->hear();
  }
  void hear() {}
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & size;
  }
  std::uint32_t size;
};

// A sender that stays where it is: one on each PE, which talks to the same elements again and again.
class Talker {
 public:
  explicit Talker(const array<Cell>& to, std::vector<std::int32_t> whom) : to_(to), whom_(std::move(whom)) {}
  void talk() {
    for (const std::int32_t i : whom_) post(to_[i])->hear();
  }
  // Mean time of a call, in nanoseconds.
  double ask() {
    const auto begin = now();
    for (const std::int32_t i : whom_) (void)to_[i]->where();
    return static_cast<double>((now() - begin).count()) / static_cast<double>(whom_.size());
  }
  ORRERY_PROCESS_MEMBERS(Talker, talk, ask)

 private:
  array<Cell> to_;
  std::vector<std::int32_t> whom_;
};

array<Cell> make(int each, placement_map<std::int32_t> home, std::uint32_t homes = 1) {
  const auto size = static_cast<std::int32_t>(world_pes()) * each;
  return create_array<Cell>(range<int>{size}, {.home = std::move(home), .homes = homes}, {},
                            static_cast<std::uint32_t>(size));
}

struct extent {
  double mean = 0;
  double most = 0;
  double elsewhere = 0;
};
int root_of(std::uint32_t n) { return static_cast<int>(std::lround(std::sqrt(n))); }

array_footprint footprint_here(array<Cell> a) { return a.footprint(); }
extent footprint_of(array<Cell> a) {
  extent e;
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const array_footprint f = call<&footprint_here>(pe(p), a);
    e.mean += static_cast<double>(f.bytes) / world_pes();
    e.elsewhere += static_cast<double>(f.elsewhere) / world_pes();
    e.most = std::max(e.most, static_cast<double>(f.bytes));
  }
  return e;
}

}  // namespace

namespace scaling {

double collective_us(std::uint32_t pes, int each, const std::string& net) {
  constexpr int warm = 2;  // outbound rings are made by the first messages
  constexpr int rounds = 8;
  double us = 0;
  in_simulation(pes, net, [&] {
    const auto a = make(each, placement_map<std::int32_t>::blocks(static_cast<std::int32_t>(pes) * each));
    for (int i = -warm; i < rounds; ++i) {
      const auto begin = now();
      auto [target, result] = expect_result<int>();
      post(a)->step(target);
      if (result.get() != static_cast<int>(pes) * each) throw std::runtime_error("a reduction is wrong");
      if (i >= 0) us += static_cast<double>((now() - begin).count()) / 1e3 / rounds;
    }
  });
  return us;
}

footprints storage(std::uint32_t pes, int each) {
  footprints f;
  in_simulation(pes, "200g", [&] {
    const auto a = make(each, {});
    f.created = footprint_of(a).mean;
    post(a)->wander(1);
    quiescence();
    post(a)->talk();
    quiescence();
    const extent e = footprint_of(a);
    f.moved = e.mean;
    f.moved_most = e.most;
    f.elsewhere = e.elsewhere;
  });
  return f;
}

std::vector<double> hops_after(std::uint32_t pes, int each, int waves) {
  std::vector<double> hops;
  in_simulation(pes, "200g", [&] {
    const auto a = make(each, {});
    std::vector<remote<Talker>> talkers;
    std::minstd_rand random(7);
    for (std::uint32_t p = 0; p < pes; ++p) {
      std::vector<std::int32_t> whom;
      for (int k = 0; k < each; ++k)
        whom.push_back(static_cast<std::int32_t>(random() % (pes * static_cast<unsigned>(each))));
      talkers.push_back(spawn<Talker>(pe(p), a, whom));
    }
    const auto round = [&] {
      const Sum before = counted();
      for (const auto& t : talkers) post(t)->talk();
      quiescence();
      const Sum after = counted();
      return static_cast<double>(after.hops - before.hops) / static_cast<double>(after.routed - before.routed);
    };
    const auto wave = [&](int w) {
      post(a)->wander(static_cast<std::uint32_t>(w));
      quiescence();
    };
    wave(0);  // nobody is at home any more
    (void)round();  // and where they are is learned
    (void)round();
    for (int w = 1; w <= waves; ++w) wave(w);
    for (int i = 0; i < 4; ++i) hops.push_back(round());
  });
  return hops;
}

first_contacts with_homes(std::uint32_t pes, int each, std::uint32_t homes) {
  first_contacts f;
  in_simulation(pes, "200g", [&] {
    const auto a = make(each, {}, homes);
    post(a)->wander(0);
    quiescence();
    // The second wave is counted, less what the same broadcast and quiescence cost when nobody moves.
    const auto sent_by = [&](auto what) {
      const Sum before = counted();
      what();
      quiescence();
      return static_cast<double>(counted().sent - before.sent);
    };
    const double nothing = sent_by([&] { post(a)->hear(); });
    const double wave = sent_by([&] { post(a)->wander(1); });
    f.messages_of_move = (wave - nothing) / (static_cast<double>(pes) * each);
    std::minstd_rand random(7);
    const Sum before = counted();
    for (std::uint32_t p = 1; p < pes; p += 7) {  // not all at once: to see the way, not how busy it is
      std::vector<std::int32_t> whom;
      for (int k = 0; k < 4; ++k)
        whom.push_back(static_cast<std::int32_t>(random() % (pes * static_cast<unsigned>(each))));
      f.call_us += spawn<Talker>(pe(p), a, whom)->ask() / 1e3;
    }
    const Sum after = counted();
    f.hops = static_cast<double>(after.hops - before.hops) / static_cast<double>(after.routed - before.routed);
    f.call_us /= static_cast<double>((pes + 5) / 7);
  });
  return f;
}

double jacobi_step_us(std::uint32_t pes, int blocks_of_pe, int cells_of_pe) {
  constexpr std::uint32_t steps = 10;
  const int side = root_of(static_cast<std::uint32_t>(blocks_of_pe));  // of a PE's blocks
  const jacobi::settings set{.blocks = side * root_of(pes), .cells = cells_of_pe / side};
  double us = 0;
  in_simulation(pes, "200g", [&] {
    auto grid = jacobi::make_grid(set, jacobi::places::boxes({set.blocks, set.blocks}, pes));
    for (int i = 0; i < 2; ++i) {
      const auto begin = now();
      auto [target, error] = expect_result<double>();
      post(grid)->iterate(steps, target);
      (void)error.get();
      us = static_cast<double>((now() - begin).count()) / 1e3 / steps;
    }
  });
  return us;
}

}  // namespace scaling
