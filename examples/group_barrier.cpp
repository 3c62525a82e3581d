// SPDX-License-Identifier: Apache-2.0
// A group of processes that compute in step: each waits in a barrier inside its method (Givelberg
// 2014, section 3.2).
// run: ./group_barrier
// run: ./group_barrier --orrery-nodes=2
#include <orrery/orrery.hpp>

#include <cstdio>
#include <functional>

struct Walker;
ORRERY_PROCESS(Walker, run, take, heard);

struct Walker : orrery::member<Walker> {
  void run(int rounds) {
    for (int r = 0; r < rounds; ++r) {
      const auto right = this_group()[(rank() + 1) % size()];
      post(right)->take(rank());  // taken when the neighbour's run has ended: one method at a time
      barrier();
      ++steps_;
    }
  }
  void take(std::size_t from) { heard_ += from + 1; }
  std::size_t heard() const { return heard_; }

 private:
  int steps_ = 0;
  std::size_t heard_ = 0;
};

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    constexpr std::size_t n = 16;
    auto walkers = orrery::spawn_group<Walker>(orrery::everywhere(), n);
    walkers->run(10);  // a broadcast: returns when all have finished
    const auto sum = walkers.reduce<&Walker::heard>(std::plus{});
    std::printf("%zu members heard %zu\n", n, sum);
    orrery::destroy(walkers);
    return sum == 10 * n * (n + 1) / 2 ? 0 : 1;
  });
}
