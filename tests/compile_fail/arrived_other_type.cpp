// expect: orrery: arrived<&T::m>\(number, rest...\): give the arguments of the method as they are
// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/when.hpp>

struct Waits : orrery::arrivals {
  void take(int step, double x) { arrived<&Waits::take>(step, static_cast<int>(x)); }
};
