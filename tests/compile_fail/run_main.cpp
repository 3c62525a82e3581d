// expect: (no matching function for call to .run|constraints not satisfied)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

int main(int argc, char** argv) {
  return orrery::run(argc, argv, [](int) { return 0; });
}
