// expect: (call to .*orrery_method_put.*const char|no known conversion from 'const char\[4\]' to 'int')
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <string>

struct Device {
  void put(int, const std::string&) {}
};
ORRERY_PROCESS(Device, put);

void f(orrery::remote<Device> device) { device->put("one", "two"); }
