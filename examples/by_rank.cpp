// SPDX-License-Identifier: Apache-2.0
// Functions by rank: each node starts as many as --per-node says; --map chooses who does what.
// run: ./by_rank
// run: ./by_rank --map=star --per-node=7 --orrery-pes=3
// run: ./by_rank --map=ring --per-node=100 --orrery-nodes=3 --orrery-pes=1
// run: ./by_rank --map=star --orrery-nodes=2 --orrery-pes=2
// run: for s in 1 2 3 4 5; do ./by_rank --per-node=4 --orrery-sim=machines=3,jitter=5us,seed=$s || exit 1; done
// run: ! ./by_rank --map=tree
#include <orrery/orrery.hpp>
#include <orrery/process/function_map.hpp>

#include <cstdio>
#include <stdexcept>

void source(const orrery::ranked& me, const orrery::args&) {
  send(me[1 % me.size()], 0);
  if (orrery::receive<int>() + 1 != static_cast<int>(me.size())) throw std::runtime_error("lost on the way");
  std::printf("the token has been at %zu functions\n", me.size());
}
void relay(const orrery::ranked& me, const orrery::args&) {
  send(me[(me.rank + 1) % me.size()], orrery::receive<int>() + 1);
}
void centre(const orrery::ranked& me, const orrery::args&) {
  for (std::size_t rank = 1; rank < me.size(); ++rank) (void)orrery::receive<int>();
  std::printf("all %zu have answered\n", me.size() - 1);
}
void ray(const orrery::ranked& me, const orrery::args&) { send(me[0], 1); }

orrery::ranked_function* ring(std::size_t rank, std::size_t) { return rank == 0 ? &source : &relay; }
orrery::ranked_function* star(std::size_t rank, std::size_t) { return rank == 0 ? &centre : &ray; }

int main(int argc, char** argv) { return orrery::run(argc, argv, orrery::maps<&ring, &star>); }
