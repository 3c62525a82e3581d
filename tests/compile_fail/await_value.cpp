// expect: (awaitable type .int. is not a structure|member reference base type .*int.* is not a structure)
// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>

#include <coroutine>

struct task {
  struct promise_type {
    task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() {}
  };
};
struct Device {
  int get() { return 1; }
};
ORRERY_PROCESS(Device, get);

task f(orrery::remote<Device> device) {
  int n = co_await device->get();
  (void)n;
}
