// expect: orrery: spawn<T>: T is only declared here: include its definition before
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

struct Device;
ORRERY_PROCESS(Device, put);

void f() { (void)orrery::spawn<Device>(orrery::here()); }
