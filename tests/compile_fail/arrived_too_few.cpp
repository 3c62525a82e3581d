// expect: orrery: arrived<&T::m>\(number, rest...\): give all arguments
// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/when.hpp>

struct Waits : orrery::arrivals {
  void take(int step, int) { arrived<&Waits::take>(step); }
};
