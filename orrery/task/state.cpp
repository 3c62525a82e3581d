// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery::task_detail {

namespace {
wire::unique_ptr<scheduler::layer_state>& place(scheduler::pe& self) noexcept {
  return self.layers().of(scheduler::upper_layer::task);
}
}  // namespace

task_state* task_state::find(scheduler::pe& self) noexcept { return static_cast<task_state*>(place(self).get()); }

task_state& task_state::of(scheduler::pe& self) {
  if (place(self) == nullptr) place(self) = wire::make_unique<task_state>(self);
  return *find(self);
}

}  // namespace orrery::task_detail
