// SPDX-License-Identifier: Apache-2.0
// Ends: a function that fails is started again; what is linked ends together.
// run: ./supervisor
// run: ./supervisor --orrery-nodes=3 --orrery-pes=1
#include <orrery/orrery.hpp>
#include <orrery/process/on_end.hpp>

#include <cstdio>
#include <stdexcept>

void fails(int attempt) {
  if (attempt < 3) throw std::runtime_error("not yet");
}
struct Server {};
ORRERY_PROCESS(Server);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    int attempt = 1;
    while (orrery::watched_spawn(orrery::anywhere(), fails, attempt).get().failed()) ++attempt;
    const auto front = orrery::spawn<Server>(orrery::anywhere());
    const auto back = orrery::spawn<Server>(orrery::anywhere());
    link(front, back);
    auto end = end_of(back);
    destroy(front);  // takes the other one along
    const bool destroyed = end.get().cause == orrery::end_cause::destroyed;
    std::printf("attempt %d did it; the other server was %s\n", attempt, destroyed ? "destroyed" : "lost");
    return attempt == 3 && destroyed ? 0 : 1;
  });
}
