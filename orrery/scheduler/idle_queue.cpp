// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/idle_queue.hpp>

#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/prefetch.hpp>

#include <algorithm>

namespace orrery::scheduler {

idle_task::~idle_task() {
  if (counted_by != nullptr) counted_by->end_work(counted_as);
}

void idle_queue::fetch() noexcept {
  const idle_task& t = *fetching_;
  // The process first: its slot, and when that has come, what of its object follows from it.
  if (step_ < 2) {
    if (t.by != nullptr) {
      if (step_ == 0) {
        fetch_lines(t.by, 1);
      } else if (t.by->has_object && t.by->apart) {
        fetch_lines(t.by->where_apart(), 4);
      }
    }
    ++step_;
    return;
  }
  const std::size_t bytes = std::min(t.memory.size(), most_bytes);
  const std::size_t at = (step_++ - 2) * lines_at_once * line;
  if (at < bytes) fetch_lines(t.memory.data() + at, std::min(lines_at_once, (bytes - at + line - 1) / line));
  if (at + lines_at_once * line >= bytes) {
    ++fetched_;
    begin_to_fetch(fetching_->next.get());
  }
}

}  // namespace orrery::scheduler
