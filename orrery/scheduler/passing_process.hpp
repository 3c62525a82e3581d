// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/run_state.hpp>

namespace orrery::scheduler {

/// A process without an object that lives while this does: what the loop runs in it may park.
/// `name` is what it is called in traces and reports.
class passing_process {
 public:
  /// Throws std::bad_alloc.
  passing_process(run_state& at, const handler& name)
      : at_(at), slot_(at.allocate_slot()), method_{&slot_, &name, nullptr} {
    at_.push_activation(method_);
    slot_.active = &method_;
    slot_.depth = 1;
  }
  passing_process(const passing_process&) = delete;
  passing_process& operator=(const passing_process&) = delete;
  ~passing_process() {
    at_.pop_activation(method_);
    at_.free_slot(slot_);
  }

 private:
  run_state& at_;
  slot& slot_;
  activation method_;
};

}  // namespace orrery::scheduler
