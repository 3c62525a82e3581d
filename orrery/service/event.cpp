// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/event.hpp>

#include <utility>

namespace orrery::service {

using access = detail::future_access<void>;

event::~event() {
  if (waiting_ != nullptr) std::exchange(waiting_, nullptr)->drop();  // the wait ended with an exception
}

void event::wait() {
  if (set_) return;
  auto state = access::make_local(detail::here_pe());
  state->hold();
  waiting_ = state.get();
  access::wrap(std::move(state)).get();
}

void event::set() {
  set_ = true;
  if (waiting_ != nullptr) detail::resolve<void>(detail::here_pe(), std::exchange(waiting_, nullptr), [] {});
}

}  // namespace orrery::service
