// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/future.hpp>

#include <utility>

namespace orrery::storage::internal {

/// Sends the running process a message to itself, whose result nobody wants, also if its mailbox is full: a mailbox over its limit holds other
/// processes back, and for the process itself, which alone can empty it, `start` would throw mailbox_full. Whoever calls this
/// bounds the number of such messages. `Method` is the tag that ORRERY_PROCESS made: description_of<X>::orrery_method_m.
template <class Method, class... P>
void send_to_self(P... args) {
  using handler = orrery::detail::typed_handler<orrery::detail::method_operation<Method, void>, P...>;
  auto& self = orrery::detail::here_pe();
  self.require_process();
  auto& s = *self.active()->process;
  const address to = self.address_of(s);
  auto state = orrery::detail::future_access<void>::make(self, to, handler::instance);
  auto* m = handler::make_message(self, std::move(args)...);
  m->source_pe = to.pe;
  orrery::detail::fill(m->head, to, handler::instance, orrery::wire::payload_form::owned, state.release(), 0);
  self.push(s, m);
}

}  // namespace orrery::storage::internal
