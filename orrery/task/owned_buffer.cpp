// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/owned_buffer.hpp>

#include <orrery/process/detail/here_pe.hpp>
#include <orrery/task/internal/buffer.hpp>
#include <orrery/task/internal/state.hpp>

namespace orrery::tasks {

using task_detail::task_state;

buffer::buffer(std::size_t size) {
  scheduler::pe& self = orrery::detail::here_pe();
  self.require_process();
  of_ = task_state::of(self).buffers.add(self, task_detail::buffer_memory::make(self, size), false);
}

buffer::buffer(orrery_buffer& received) {
  if (received.data == nullptr) return;
  scheduler::pe& self = orrery::detail::here_pe();
  task_state::of(self).buffers.at(self, received, "tasks::buffer").in_message = false;
  of_ = std::exchange(received, orrery_buffer{});
}

buffer::~buffer() {
  if (of_.data != nullptr) (void)orrery_buffer_free(&of_);
}

}  // namespace orrery::tasks
