// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/flow_control.hpp>

#include <orrery/scheduler/deadlock_detector.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <unordered_map>
#include <utility>

namespace orrery::scheduler {

namespace {

struct held_back {
  std::uint32_t stop;
  fiber* waiters;
};

}  // namespace

struct flow_control::tables {
  std::unordered_map<address, held_back> stopped;  // processes of other PEs that asked to hold back
  std::unordered_map<const slot*, slot_extra> extras;
};

flow_control::flow_control(pe& of, const pe_settings& settings)
    : ring_bytes_(settings.ring_bytes),
      of_(of),
      mailbox_limit_(settings.mailbox_bytes / charge_unit),
      tables_(wire::make_unique<tables>()),
      backlog_(of) {}

flow_control::~flow_control() = default;

// --- mailboxes of this PE ------------------------------------------------------------------------

bool flow_control::runs_for(const slot& s) const noexcept {
  for (const activation* a = of_.active(); a != nullptr; a = a->below)
    if (a->process == &s) return true;
  return false;
}

bool flow_control::is_full(const slot& s) const noexcept {
  return over_limit(s) && (!s.has_extra || s.charge > tables_->extras.find(&s)->second.limit);
}

bool flow_control::wait_for_room(slot& s) {
  if (s.state == process_state::receiving) backlog_.raise(s);  // it waits for another message
  if (runs_for(s) || !is_full(s)) {
    backlog_.took_more(s);
    return false;
  }
  of_.require_process();
  const std::uint32_t generation = s.generation;
  bool waited = false;
  while (s.generation == generation && is_full(s)) {
    if (of_.refusing()) of_.shutdown().refuse("a message to a full mailbox");
    backlog_.begin_to_hold(s);
    slot_extra& x = *extra_of(s);
    of_.running()->next = nullptr;
    if (x.senders == nullptr) {
      x.senders = x.last_sender = of_.running();
    } else if (waited) {  // its place is the first one
      of_.running()->next = x.senders;
      x.senders = of_.running();
    } else {
      x.last_sender->next = of_.running();
      x.last_sender = of_.running();
    }
    park_for_room(of_.address_of(s), 0);
    waited = true;
  }
  if (waited && s.generation == generation && s.has_extra) wake_sender(s);
  return waited;
}

slot_extra* flow_control::extra_of(const slot& s) noexcept {
  return s.has_extra ? &tables_->extras.find(&s)->second : nullptr;
}

slot_extra& flow_control::make_extra(slot& s) {
  slot_extra& x = tables_->extras[&s];
  s.has_extra = true;
  return x;
}

void flow_control::drop_extra(slot& s) noexcept {
  of_.ready_all(std::exchange(extra_of(s)->senders, nullptr));
  made_room(s);
  tables_->extras.erase(&s);
  s.has_extra = false;
}

void flow_control::wake_sender(slot& s) {
  slot_extra& x = *extra_of(s);
  fiber* f = x.senders;
  if (f == nullptr) return;
  x.senders = f->next;
  f->next = nullptr;
  f->room->over = true;
  of_.ready(*f);
}

void flow_control::made_room(slot& s) {
  if (!s.has_extra) return;
  slot_extra& x = *extra_of(s);
  x.limit = x.checked_above = 0;
  let_senders_go(s);
}

void flow_control::let_senders_go(slot& s) {
  if (!s.has_extra) return;
  wake_sender(s);
  const std::uint32_t index = of_.processes().index_of(s);
  slot_extra& x = *extra_of(s);
  for (const stop_sign& p : x.stopped_pes) try {
      of_.links().send_control(of_.links().control_outbound_to(p.pe), wire::record_kind::go, index, s.generation, 0);
    } catch (const error&) {  // that PE is gone: nobody is held back there any more
    }
  x.stopped_pes.clear();
}

// --- mailboxes of other PEs ----------------------------------------------------------------------

void flow_control::hold_back(slot& s, std::uint32_t source_pe) {
  if (!is_full(s)) {
    backlog_.took_more(s);
    return;
  }
  slot_extra& x = make_extra(s);
  for (const stop_sign& p : x.stopped_pes)
    if (p.pe == source_pe) return;
  backlog_.begin_to_hold(s);
  x.stopped_pes.push_back({source_pe, ++stops_});
  bool counted = false;  // not if all that came from there had been passed on by others
  for (const auto& in : of_.links().all_inbound()) {
    if (in->pe != source_pe || in->lost) continue;
    in->ring.count_stop();
    counted = true;
  }
  try {
    of_.links().send_control(of_.links().control_outbound_to(source_pe), wire::record_kind::stop,
                             of_.processes().index_of(s), s.generation, stops_, nullptr, 0, counted ? 1 : 0);
  } catch (const error&) {  // its node is gone: nothing more comes from there
  }
}

std::uint64_t flow_control::unheard() const noexcept { return of_.count().sent_bytes - sent_when_heard_; }

void flow_control::listen() {
  of_.poll_within(0);  // the loop polls before it runs anything
  of_.yield();
}

bool flow_control::is_stopped(address to) const {
  if (!nobody_stops_ && tables_->stopped.contains(to)) return true;
  if (unheard() <= ring_bytes_) return false;
  // on its way to somebody who is not known, and holds back others
  if (to.slot == wire::no_slot) return true;
  const outbound* c = of_.links().find(to.pe);
  return c != nullptr && !c->lost && c->ring.stops() != c->stops_heard;
}

bool flow_control::wait_while_stopped(address to) {
  bool waited = false;
  if (unheard() > ring_bytes_ && of_.active() != nullptr && !of_.refusing()) {
    listen();
    waited = true;
  }
  auto& stopped = tables_->stopped;
  for (auto it = stopped.find(to); it != stopped.end(); it = stopped.find(to)) {
    of_.require_process();
    if (of_.refusing()) of_.shutdown().refuse("a message to a full mailbox");
    of_.running()->next = it->second.waiters;
    it->second.waiters = of_.running();
    park_for_room(to, it->second.stop);
    waited = true;
  }
  return waited;
}

void flow_control::receive_stop(const inbound& in, const wire::envelope& e) {
  if (outbound* c = of_.links().find(in.pe); c != nullptr) c->stops_heard += e.handler != 0 ? 1 : 0;
  tables_->stopped[address{in.pe, e.slot, e.generation}].stop = static_cast<std::uint32_t>(e.reply);
  nobody_stops_ = false;
}

void flow_control::receive_go(const inbound& in, const wire::envelope& e) {
  auto& stopped = tables_->stopped;
  const auto it = stopped.find(address{in.pe, e.slot, e.generation});
  if (it == stopped.end()) return;
  fiber* waiters = it->second.waiters;
  stopped.erase(it);
  nobody_stops_ = stopped.empty();
  of_.ready_all(waiters);
}

void flow_control::forget_unreachable() {
  std::erase_if(tables_->stopped, [&](const auto& held) {
    if (of_.owner().reachable(held.first.pe)) return false;
    of_.ready_all(held.second.waiters);
    return true;
  });
  nobody_stops_ = tables_->stopped.empty();
}

void flow_control::cancel_waits() {
  for (slot& s : of_.processes().all()) {
    if (!s.has_extra) continue;
    of_.ready_all(std::exchange(extra_of(s)->senders, nullptr));
    made_room(s);
  }
  for (auto& held : tables_->stopped) of_.ready_all(std::exchange(held.second.waiters, nullptr));
  tables_->stopped.clear();
  nobody_stops_ = true;
}

void flow_control::park_for_room(address at, std::uint32_t stop) {
  room_wait w{at, stop, ++room_waits_, false};
  for (activation* a = of_.active(); a != nullptr; a = a->below)
    if (!a->process->suspected) of_.deadlocks().suspect(*a->process);
  of_.running()->room = &w;
  of_.park();
  of_.running()->room = nullptr;
}

}  // namespace orrery::scheduler
