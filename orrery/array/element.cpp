// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/element.hpp>

#include <utility>

namespace orrery::detail {

void throw_no_element() { throw usage_error(errc::bad_argument, "element: this object is not an element of an array"); }

// Before all that is in the mailbox: the element moves when its method has returned.
void post_leave(pe& self, slot& s, const scheduler::handler& h, std::uint32_t to) {
  scheduler::message* m = self.messages().allocate(sizeof(std::tuple<std::uint32_t>));
  new (m->payload()) std::tuple<std::uint32_t>(to);
  m->source_pe = self.id();
  write_envelope(m->head, self.address_of(s), h, wire::payload_form::owned, nullptr, 0);
  scheduler::message* earlier = nullptr;  // where the same method has sent it before
  s.search([&](const scheduler::message*, scheduler::message* x) {
    if (x->head.handler != m->head.handler) return true;
    earlier = x;
    return false;
  });
  if (earlier == nullptr) {
    s.push_front(m);
  } else if (earlier == s.last) {
    s.push_back(m);
  } else {
    m->next = std::exchange(earlier->next, m);
  }
  s.charge += m->charge();
}

}  // namespace orrery::detail
