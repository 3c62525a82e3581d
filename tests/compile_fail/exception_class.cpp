// expect: orrery: ORRERY_EXCEPTION\(Class\): give the class a constructor that takes the what\(\)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <stdexcept>

struct disk_error : std::runtime_error {
  explicit disk_error(int cylinder) : std::runtime_error("disk"), cylinder(cylinder) {}
  int cylinder;
};
ORRERY_EXCEPTION(disk_error);
