// SPDX-License-Identifier: Apache-2.0
// What `./run demo` shows: the same program on threads and on four nodes, and what happened where.
// run: ./demo
// run: ./demo --orrery-nodes=4
#include <orrery/orrery.hpp>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include <unistd.h>

struct Worker {
  std::string where() const {
    return "node " + std::to_string(orrery::this_node()) + ", PE " + std::to_string(orrery::this_pe()) + ", pid " +
           std::to_string(getpid());
  }
  double integrate(std::size_t from, std::size_t to, std::size_t steps) const {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) {
      const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(steps);
      sum += 4 / (1 + x * x);
    }
    return sum / static_cast<double>(steps);
  }
};
ORRERY_PROCESS(Worker, where, integrate);

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    std::printf("a world of %u nodes and %u PEs\n", orrery::world_nodes(), orrery::world_pes());
    std::vector<orrery::remote<Worker>> workers;
    for (std::uint32_t i = 0; i < 4; ++i) workers.push_back(orrery::spawn<Worker>(orrery::pe(i % orrery::world_pes())));
    for (auto& w : workers) std::printf("  a process on %s\n", w->where().c_str());

    constexpr std::size_t steps = 20'000'000;
    std::vector<orrery::future<double>> parts;
    for (std::size_t i = 0; i < workers.size(); ++i)
      parts.push_back(start(workers[i])->integrate(steps * i / 4, steps * (i + 1) / 4, steps));
    double pi = 0;
    for (auto& p : parts) pi += p.get();
    std::printf("  together they find pi = %.10f\n", pi);

    orrery::destroy(workers[0]);
    try {
      (void)workers[0]->where();
    } catch (const orrery::process_gone& e) {
      std::printf("  a call to a process that was destroyed: %s\n", e.what());
    }
    return pi > 3.14159 && pi < 3.14160 ? 0 : 1;
  });
}
