// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/broadcast_answer.hpp>

#include <orrery/process/detail/broadcast_base.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <utility>

namespace orrery::detail {

namespace {

late_answer* answer_in(const void* payload) noexcept {
  late_answer* l = nullptr;
  std::memcpy(&l, payload, sizeof l);
  return l;
}

void run_answer(pe& self, slot&, scheduler::delivery& d) {
  if (d.remote) {
    d.fail(message_of_another_pe());
    return;
  }
  const wire::unique_ptr<late_answer> l(answer_in(d.payload));
  d.form = wire::payload_form::refs;  // nothing is left there to drop
  d.release();
  try {
    l->send(self);
  } catch (...) {
    scheduler::reply_error(self, l->reply, l->source_pe, !on_this_node(self, l->source_pe), l->method,
                           std::current_exception());
  }
}

const scheduler::handler answer_instance{"group",
                                         "answer",
                                         "void()",
                                         &run_answer,
                                         [](void* to, void* from) { std::memcpy(to, from, sizeof(late_answer*)); },
                                         [](void* payload) { delete answer_in(payload); },
                                         sizeof(late_answer*),
                                         false,
                                         nullptr,
                                         {},
                                         nullptr,
                                         &scheduler::nobody_misses};

}  // namespace

void answer_later(pe& self, wire::unique_ptr<late_answer> l) noexcept {
  late_answer* p = l.release();
  scheduler::message* m = self.messages().allocate(sizeof p);
  std::memcpy(m->payload(), &p, sizeof p);
  m->source_pe = self.id();
  slot& s = fresh_slot(self);
  write_envelope(m->head, self.address_of(s), answer_instance, wire::payload_form::owned, nullptr, 0);
  self.push(s, m);
}

}  // namespace orrery::detail
