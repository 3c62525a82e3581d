// SPDX-License-Identifier: Apache-2.0
// A shared library whose classes are processes, and which links the runtime.
#include <orrery/orrery.hpp>

int run_part(int argc, char** argv);

namespace {

struct tally {
  int add(int n) { return sum += n; }
  int sum = 0;
};
ORRERY_PROCESS(tally, add);

}  // namespace

int run_part(int argc, char** argv) {
  return orrery::run(argc, argv, [](orrery::args) {
    const auto far = orrery::spawn<tally>(orrery::pe(orrery::world_pes() - 1));
    return far->add(1) + far->add(2) == 4 ? 0 : 1;
  });
}
