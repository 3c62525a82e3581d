// expect: a result that is returned by reference travels as a copy, and this class cannot be copied
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <memory>

struct Device {
  const std::unique_ptr<int>& page() { return page_; }
  std::unique_ptr<int> page_;
};
ORRERY_PROCESS(Device, page);

void f(orrery::remote<Device> device) { device->page(); }
