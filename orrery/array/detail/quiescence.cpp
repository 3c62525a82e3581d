// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/index_part.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/runtime.hpp>

#include <algorithm>
#include <chrono>
#include <vector>

// When an array has nothing to do. Each PE counts what begins there and what ends there. A wave of
// calls adds that up, while things go on: so one wave proves nothing. But if two waves, one after
// the other, find the same, and as much ended as begun, then nothing was under way between them
// (Mattern 1987, "Algorithms for distributed termination detection", the four-counter method).
namespace orrery::detail {

namespace {

array_core& require_part(std::uint32_t array) {
  array_core* part = array_directory::of(here_pe()).find(array);
  if (part == nullptr) throw_no_array(array);
  return *part;
}

array_core::activity look(std::uint32_t array) { return require_part(array).active(); }

}  // namespace

array_core::activity activity_of(std::uint32_t array) {
  std::vector<future<array_core::activity>> all;
  const array_pes on = require_part(array).about().pes;
  for (std::uint32_t r = 0; r < on.count(); ++r) all.push_back(start_call<&look>(orrery::pe(on.at(r)), array));
  array_core::activity sum;
  for (auto& f : all) {
    const auto here = f.get();
    sum.begun += here.begun;
    sum.over += here.over;
  }
  return sum;
}

void wait_for_quiescence(std::uint32_t array) {
  pe& self = here_pe();
  self.require_process();
  if (array_directory::of(self).find(array) == nullptr && is_guest_of(self, array)) {
    call<&wait_for_quiescence>(orrery::pe(maker_of(here_pe(), array)), array);
    return;
  }
  if (require_part(array).inside_element())
    throw usage_error(errc::bad_argument,
                      "quiescence of an array, called by one of its elements: it would wait for itself");
  constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(1);
  std::chrono::nanoseconds pause = std::chrono::microseconds(2);
  array_core::activity last;
  for (bool first = true;; first = false) {
    require_part(array).require_whole("quiescence");
    const array_core::activity now = activity_of(array);
    const bool rests = now.begun == now.over;
    if (rests && !first && now == last) return;
    last = now;
    if (rests) continue;  // it may be the end: look again at once
    sleep_for(pause);
    pause = std::min(pause * 2, longest);
  }
}

}  // namespace orrery::detail
