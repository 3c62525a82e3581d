// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/priority.hpp>

namespace orrery::detail {

namespace {
bool send_to_mailbox(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
                     const arguments_ref& arguments) {
  bool full = false;
  slot* const s = find_with_room(self, to, may_wait, full);
  if (s == nullptr) [[unlikely]] {
    if (!full) fail_gone(h, to, sink, self);
    return !full;
  }
  scheduler::message* m = self.messages().allocate(arguments.owned_bytes());
  try {
    arguments.move(m->payload());
  } catch (...) {
    self.messages().release(m);
    throw;
  }
  m->source_pe = to.pe;
  write_envelope(m->head, to, h, wire::payload_form::owned, sink, arguments.pages());
  self.push_at(arguments.level(), *s, m);
  return true;
}
}  // namespace

bool send_at_level(pe& self, address to, const scheduler::handler& h, scheduler::sink* sink, bool may_wait,
                   const arguments_ref& arguments) {
  if (to.pe == self.id()) return send_to_mailbox(self, to, h, sink, may_wait, arguments);
  return send_to_other_pe(h, self, to, sink, may_wait, arguments);
}

}  // namespace orrery::detail
