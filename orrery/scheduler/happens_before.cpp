// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/happens_before.hpp>

namespace orrery::scheduler {

void happens_before::give_observed(const void* key) const {
  if (watch_->order != nullptr) watch_->order->give(key);
}
void happens_before::take_observed(const void* key) const {
  if (watch_->order != nullptr) watch_->order->take(key);
}
void happens_before::take_process_observed() const {
  if (watch_->order != nullptr) watch_->order->take_process();
}
void happens_before::forget_observed(const void* key) const noexcept {
  if (watch_->order != nullptr) watch_->order->forget(key);
}
void happens_before::take_result_observed(const sink& s) const noexcept {
  if (watch_->order == nullptr) return;
  watch_->order->take(&s);
  watch_->order->forget(&s);
}

}  // namespace orrery::scheduler
