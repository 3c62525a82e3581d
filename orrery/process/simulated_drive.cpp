// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/simulated_drive.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/simulator.hpp>

#include <algorithm>

namespace orrery {

std::chrono::nanoseconds simulated_drive::reserve(std::uint64_t bytes) {
  const scheduler::simulated_pe* const s = detail::here_pe().simulated();
  if (s == nullptr) return now();
  const transport::sim_settings& settings = s->by->universe().settings();
  if (settings.drive_byte == 0) return now();
  const auto takes =
      settings.drive_seek_ns + static_cast<std::int64_t>(static_cast<double>(bytes) * settings.drive_byte);
  free_ = std::max(free_, now()) + std::chrono::nanoseconds(takes);
  return free_;
}
void simulated_drive::transfer(std::uint64_t bytes) { sleep_until(reserve(bytes)); }

void sleep_until(std::chrono::nanoseconds time) {
  if (const auto left = time - now(); left.count() > 0) sleep_for(left);
}

}  // namespace orrery
