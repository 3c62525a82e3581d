// SPDX-License-Identifier: Apache-2.0
// A supervisor: whoever fails is started again, until it returns.
// run: ./restart
// run: ./restart --orrery-nodes=3 --orrery-failed-exit=0
#include <orrery/orrery.hpp>
#include <orrery/process/on_end.hpp>

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

void work(int attempt) {
  if (attempt == 0) throw std::runtime_error("the first attempt fails");
  // and the second takes its node along
  if (attempt == 1 && orrery::this_node() != 0) std::raise(SIGKILL);
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    int attempt = 0;
    for (const auto& where : {orrery::here(), orrery::pe(orrery::world_pes() - 1), orrery::here()}) {
      const orrery::ending end = orrery::watched_spawn(where, work, attempt++).get();
      if (!end.failed()) break;
      std::printf("attempt %d: %s\n", attempt, end.what.c_str());
    }
    return attempt >= 2 ? 0 : 1;
  });
}
