// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/drive_work.hpp>

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/storage/internal/hosts.hpp>

#include <algorithm>
#include <map>
#include <utility>

namespace orrery::storage::internal {

drive_work work_of(const array& a) {
  drive_work all;
  std::vector<std::pair<remote<array_page_device>, device_statistics>>
      known;  // nodes of several machines share devices
  for (std::uint32_t n = 0; n < world_nodes(); ++n) {
    double sum = 0;
    for (const auto& d : a.devices_of(n)) {
      auto at = std::ranges::find(known, d, [](const auto& k) { return k.first; });
      if (at == known.end()) {
        at = known.insert(known.end(), {d, d->statistics()});
        all.pages_read += static_cast<double>(at->second.pages_read);
        all.pages_written += static_cast<double>(at->second.pages_written);
      }
      sum += static_cast<double>(at->second.busy_ns) / 1e9;
    }
    all.seconds = std::max(all.seconds, sum / static_cast<double>(a.devices().size()));
  }
  return all;
}

void to_own_clock(std::vector<work_log>& logs) {
  if (world_machines() == 1) return;
  std::map<std::uint32_t, double> ahead;
  for (work_log& l : logs) {
    const auto [at, is_new] = ahead.try_emplace(machine_of_node(l.node), 0);
    if (is_new && at->first != this_machine()) {
      const double asked = seconds_now();
      const double there = call<&seconds_now>(node(l.node));
      at->second = there - (asked + seconds_now()) / 2;
    }
    for (work_span& s : l.spans) {
      s.begin -= at->second;
      s.end -= at->second;
    }
  }
}

}  // namespace orrery::storage::internal
