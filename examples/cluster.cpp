// SPDX-License-Identifier: Apache-2.0
// One program on threads, on nodes and on machines: each PE sums a part of a series, and a process
// on each machine collects the parts of its PEs.
// run: ./cluster
// run: ./cluster --orrery-nodes=2
// run: ! command -v mpirun.openmpi || mpirun.openmpi --oversubscribe -n 4 ./cluster --orrery-machine-ranks=2
#include <orrery/orrery.hpp>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

struct Collector {
  void add(double part) { sum_ += part; }
  double sum() const { return sum_; }
  std::uint32_t machine() const { return orrery::this_machine(); }

 private:
  double sum_ = 0;
};
ORRERY_PROCESS(Collector, add, sum, machine);

// pi/4 = 1 - 1/3 + 1/5 - ..., every `step`-th term from `first` on.
void sum_part(std::uint32_t first, std::uint32_t step, const std::vector<orrery::remote<Collector>>& collectors) {
  double part = 0;
  for (std::uint32_t i = first; i < 4'000'000; i += step) part += (i % 2 == 0 ? 1.0 : -1.0) / (2.0 * i + 1);
  collectors[orrery::this_machine()]->add(part);
}

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    std::vector<orrery::remote<Collector>> collectors;
    for (std::uint32_t m = 0; m < orrery::world_machines(); ++m)
      collectors.push_back(orrery::spawn<Collector>(orrery::machine(m)));
    const auto pes = orrery::reachable_pes();
    std::vector<orrery::future<void>> parts;
    for (std::uint32_t i = 0; i < pes.size(); ++i)
      parts.push_back(
          orrery::start_call<&sum_part>(orrery::pe(pes[i]), i, static_cast<std::uint32_t>(pes.size()), collectors));
    for (auto& p : parts) p.get();
    double sum = 0;
    for (const auto& c : collectors) {
      std::printf("machine %u: %.6f\n", c->machine(), c->sum());
      sum += c->sum();
    }
    std::printf("%zu PEs, %u nodes, %u machines: pi is about %.6f\n", pes.size(), orrery::world_nodes(),
                orrery::world_machines(), 4 * sum);
    return std::abs(4 * sum - std::numbers::pi) < 1e-5 ? 0 : 1;
  });
}
