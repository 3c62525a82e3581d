// SPDX-License-Identifier: Apache-2.0
// What `compile_s` compiles: a user's file that includes the umbrella header and spawns one class.
// It has no main of its own, so that linking it into a benchmark does no harm.
#include <orrery/orrery.hpp>

struct compile_probe {
  explicit compile_probe(double first) : total(first) {}
  void add(double value) { total += value; }
  double sum() const { return total; }

 private:
  double total;
};
ORRERY_PROCESS(compile_probe, add, sum);

int run_compile_probe(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    auto probe = orrery::spawn<compile_probe>(orrery::anywhere(), 1.5);
    probe->add(2.0);
    auto sum = start(probe)->sum();
    post(probe)->add(sum.get());
    return probe->sum() == 7.0 ? 0 : 1;
  });
}
