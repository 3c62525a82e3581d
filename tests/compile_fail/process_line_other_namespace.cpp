// expect: orrery: ORRERY_PROCESS\(devices::Device, ...\) stands beside the class, in its namespace
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

namespace devices {
struct Device {
  void put(int) {}
};
}  // namespace devices
ORRERY_PROCESS(devices::Device, put);
