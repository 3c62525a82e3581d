// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/layer_state.hpp>

#include <orrery/scheduler/idle_queue.hpp>

namespace orrery::scheduler {

void layer_states::count_work(idle_task& t) const noexcept {
  if (t.by == nullptr) return;
  for (const auto& s : all_) {
    if (s == nullptr || t.counted_as != 0) continue;
    if (const std::uint64_t n = s->begin_work(*t.by); n != 0) {
      t.counted_by = s.get();
      t.counted_as = n;
    }
  }
}

std::string layer_states::name_of(const slot& s) const {
  std::string name;
  for (const auto& a : all_)
    if (a != nullptr && name.empty()) name = a->name_of(s);
  return name;
}

}  // namespace orrery::scheduler
