// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/layer_state.hpp>
#include <orrery/task/internal/buffer.hpp>
#include <orrery/task/internal/watches.hpp>

namespace orrery::task_detail {

/// The state of the layer `task` on a PE: a part for each mechanism. Made by the first call that
/// needs one; used on the PE's thread.
class task_state final : public scheduler::layer_state {
 public:
  explicit task_state(scheduler::pe& of) : watches(of) {}
  /// Throws std::bad_alloc.
  [[nodiscard]] static task_state& of(scheduler::pe& self);
  /// Null: no call on this PE has needed it.
  [[nodiscard]] static task_state* find(scheduler::pe& self) noexcept;

  void process_ended(const address& gone) noexcept override {
    watches.ended(gone);
    buffers.ended(gone);
  }

  task_watches watches;
  buffer_table buffers;
};

}  // namespace orrery::task_detail
