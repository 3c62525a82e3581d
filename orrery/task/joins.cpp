// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/task/internal/joins.hpp>
#include <orrery/wire/error.hpp>

#include <utility>

namespace orrery::task_detail {

task_joins::task_joins(scheduler::pe& of) : self_(of) { of.layers().watchers().add(*this); }
task_joins::~task_joins() { self_.layers().watchers().remove(*this); }

void task_joins::wait(const address& task) {
  if (self_.refusing()) self_.shutdown().refuse("orrery_join");
  self_.find(task.slot, task.generation)->watched = true;
  joiner j;
  joiner*& first = waiting_[task.slot];
  j.next = std::exchange(first, &j);
  j.waiter = self_.running();
  while (!j.done) {
    j.waiter->waits_in = "orrery_join";
    self_.park();
    self_.running()->waits_in = nullptr;
  }
  if (j.stopped) throw stopped("orrery_join");
}

void task_joins::wake(joiner* first, bool stopped) noexcept {
  while (first != nullptr) {
    joiner* next = first->next;  // it lies on the stack of one that may go on
    first->done = true;
    first->stopped = stopped;
    self_.ready(*first->waiter);
    first = next;
  }
}

void task_joins::ended(const address& task) noexcept {
  if (const auto node = waiting_.extract(task.slot)) wake(node.mapped(), false);
}

void task_joins::cancel_waits(scheduler::pe&) noexcept {
  for (auto& [slot, first] : std::exchange(waiting_, {})) wake(first, true);
}

}  // namespace orrery::task_detail
