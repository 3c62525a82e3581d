// SPDX-License-Identifier: Apache-2.0
// The part of a PE that talks to other PEs: rings in and out, flow control, sleeping.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/trace.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/serialize.hpp>

#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace orrery::scheduler {
namespace {

constexpr std::int32_t ticks_per_poll = 64;  // entries of the run queue between two looks at the rings
constexpr int records_per_drain = 64;        // of one ring, before the next one has its turn

}  // namespace

// --- receiving ---------------------------------------------------------------------------------------------------

bool pe::poll() {
  ticks_ = ticks_per_poll;
  sent_when_heard_ = count_.sent_bytes;
  publisher_.poll(count_);
  if (resting_) [[unlikely]] {
    if (!anything_inbound()) return !runnable_.empty();
    end_rest();  // before anything is received
  }
  bool any = false;
  if (bell_.announce.load(std::memory_order_relaxed) != announced_) [[unlikely]]
    adopt_inbound();
  // By index: a handler may park here, and others poll meanwhile.
  for (std::size_t i = 0; i < inbound_.size(); ++i) any |= drain(*inbound_[i]);
  if (!busy_channels_.empty()) [[unlikely]]
    any |= serve_channels();
  if (io_active_ != nullptr) [[unlikely]]
    any |= io_active_->poll();
  any |= fire_timers();
  if (!suspects_.empty() && (!any || (++polls_ & 255) == 0)) [[unlikely]]
    any |= chase_suspects();
  if (runnable_.size() > count_.queue_high) count_.queue_high = runnable_.size();
  return any || !runnable_.empty();
}

void pe::adopt_inbound() {
  // SYNC: acquire, with add_inbound and with the announcement of another node
  announced_ = bell_.announce.load(std::memory_order_acquire);
  decltype(errands_) errands;
  {
    const std::lock_guard lock(arrivals_mutex_);
    for (auto& in : arrivals_) inbound_.push_back(std::move(in));
    arrivals_.clear();
    errands.swap(errands_);
  }
  for (const auto& [f, argument] : errands) f(argument);
  node_.adopt_remote(*this, inbound_);
  lose_gone();
  if (node_.layer() != nullptr) node_.layer()->membership_changed(*this);
}

// Nodes that are gone: nothing can be sent there, and what was called there will not answer.
void pe::lose_gone() {
  tell_waits();  // before they end
  gone_nodes_ = node_.gone_nodes();  // before looking: those that go meanwhile are announced again
  for (const auto& c : channels_)
    if (c->remote && !c->lost && !node_.reachable(c->pe)) {
      refuse_peer(c->pe);
      lose_channel(*c);
    }
  for (const auto& in : inbound_) {
    if (!in->remote || in->refused || node_.reachable(in->pe)) continue;
    in->refused = true;
    refuse_peer(in->pe);
    if (in->lost) continue;
    queueing_ = true;     // a method that waits for what is lost here must not be run in the middle of it
    while (drain(*in)) {  // what it had published is good
    }
    queueing_ = false;
    if (in->lost) continue;
    in->lost = true;
    in->ring = {};
    node_.let_go(in->pe);
  }
  for (std::uint32_t i = 1; i < pending_.size(); ++i) {
    sink* s = pending_[i].waiting;
    if (s == nullptr || node_.reachable(s->target.pe)) continue;
    (void)take_pending(s->entry);
    s->error = std::make_exception_ptr(
        node_lost(fmt::format("{}::{} at {}", s->method->class_name, s->method->method, to_string(s->target))));
    s->state = sink::status::error;
    complete(*s);
  }
  std::erase_if(stopped_, [&](const auto& held) {
    if (node_.reachable(held.first.pe)) return false;
    wake_all(held.second.waiters);
    return true;
  });
  tell_of_lost_messages();
  for (std::size_t i = 0; i < watchers_.size(); ++i) watchers_[i]->pes_lost(*this);
}

// Tells a PE whose node is treated as lost, but lives: else its calls to this one would never end. If the ring is full, that
// node has stopped reading, and other PEs tell it.
void pe::refuse_peer(std::uint32_t peer) noexcept {
  if (!node_.is_refused(peer)) return;
  try {
    channel* known = channels_.find(peer);
    if (known == nullptr) {
      std::unique_ptr<channel> made = node_.connect_to_refused(*this, peer);
      if (made == nullptr) return;
      known = &channels_.put(peer, std::move(made));
    }
    channel& c = *known;
    wire::envelope* e = c.lost ? nullptr : c.ring.reserve(wire::granule);
    if (e == nullptr) return;
    e->kind = wire::record_kind::refusal;
    e->form = wire::payload_form::wire;
    e->padding = 0;
    commit(c, wire::granule);
    lose_channel(c);
  } catch (const std::exception&) {  // there is no memory to say it with
  }
}

void pe::add_inbound(std::unique_ptr<inbound> in) {
  {
    const std::lock_guard lock(arrivals_mutex_);
    arrivals_.push_back(std::move(in));
  }
  node_.announce(*this);
}

void pe::run_errand(void (*f)(void*), void* argument) {
  {
    const std::lock_guard lock(arrivals_mutex_);
    errands_.emplace_back(f, argument);
  }
  node_.announce(*this);
}

bool pe::drain(inbound& in) {
  int n = 0;
  for (; n < records_per_drain && !in.lost; ++n) {
    wire::envelope* e = in.ring.front();
    if (e == nullptr) {
      if (in.ring.corrupt()) [[unlikely]] {
        in.lost = true;
        in.ring = {};
        node_.peer_corrupt(in.pe, "a record of impossible size");
        if (in.remote) node_.let_go(in.pe);
      }
      break;
    }
    receive_record(in, *e, in.ring.front_bytes());
  }
  return n != 0;
}

void pe::receive_record(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  ++count_.received;
  count_.received_bytes += bytes;
  switch (e.kind) {
    case wire::record_kind::message:
      receive_message(in, e, bytes);
      return;
    case wire::record_kind::reply:
    case wire::record_kind::failure:
      receive_reply(in, e, bytes);
      break;
    case wire::record_kind::small_reply:
      if (!in.remote) {
        auto& s = *reinterpret_cast<sink*>(e.reply);
        std::memcpy(s.storage, e.result(), s.small);
        s.state = sink::status::value;
        complete(s);
      } else {
        node_.peer_corrupt(in.pe, "a result in an envelope, which no other node may send");
      }
      break;
    case wire::record_kind::stop:
      if (channel* c = channels_.find(in.pe); c != nullptr) c->stops_heard += e.handler != 0 ? 1 : 0;
      stopped_.insert_or_assign(address{in.pe, e.slot, e.generation},
                                held_back{static_cast<std::uint32_t>(e.reply), nullptr});
      break;
    case wire::record_kind::go:
      if (const auto it = stopped_.find(address{in.pe, e.slot, e.generation}); it != stopped_.end()) {
        fiber* waiters = it->second.waiters;
        stopped_.erase(it);
        wake_all(waiters);
      }
      break;
    case wire::record_kind::release:
      if (in.remote) {
        node_.block_released(in.pe, e.reply);
        if (channel* c = channels_.find(in.pe); c != nullptr && c->blocks_out != 0) --c->blocks_out;
      }
      break;
    case wire::record_kind::probe:
      receive_probe(in, e, bytes);
      break;
    case wire::record_kind::refusal:
      if (in.remote) node_.refused_by(in.pe);
      break;
    default:
      node_.peer_corrupt(in.pe, "a record of unknown kind in its ring");
      break;
  }
  if (!in.lost && in.ring.pop()) node_.wake(in.pe);
}

void pe::receive_message(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  delivery d;
  d.self = this;
  d.from = &in;
  d.source_pe = in.pe;
  d.form = e.form;
  d.reply = e.reply;
  d.remote = in.remote;
  d.payload = e.payload();
  d.payload_bytes = bytes - wire::granule;
  if (!in.remote) {
    d.method = reinterpret_cast<const handler*>(e.handler);
  } else {
    // Nothing that another OS process wrote is believed.
    const auto table = handler_table();
    const std::uint16_t padding = e.padding;
    const char* wrong = nullptr;
    if (d.form != wire::payload_form::wire && d.form != wire::payload_form::block) wrong = "a message of unknown form";
    const bool in_block = d.form == wire::payload_form::block;
    if (in_block ? d.payload_bytes < sizeof(wire::block_ref) : padding > d.payload_bytes || padding >= wire::granule)
      wrong = "a message with an impossible length";
    if (e.handler >= table.size()) wrong = "a message for an unknown handler";
    if (wrong == nullptr) {
      d.method = table[e.handler];
      if (d.form == wire::payload_form::block) {
        find_block(d);
        if (d.payload == nullptr) {
          wrong = "a message whose payload lies outside of its sender's memory";
        } else {
          node_.hold(in.pe);
        }
      } else {
        d.payload_bytes -= padding;
      }
    }
    if (wrong != nullptr) [[unlikely]] {
      d.form = wire::payload_form::wire;
      const std::uint32_t pe_number = in.pe;
      fail(d, std::make_exception_ptr(
                  bad_message(errc::message_corrupt,
                              fmt::format("PE {} received {} from PE {} and dropped it", id_, wrong, pe_number))));
      return;
    }
  }
  slot* s = nullptr;
  if (d.method->route != nullptr) {
    s = d.method->route(*this, d, e, bytes);
    if (s == nullptr) return;
  } else if (e.slot == wire::no_slot) {
    s = &allocate_slot();
    s->state = process_state::idle;
  } else {
    s = find(e.slot, e.generation);
    if (s == nullptr) [[unlikely]] {
      fail(d, gone_error(*d.method, {id_, e.slot, e.generation}));
      return;
    }
  }
  if (s->state == process_state::idle && !queueing_) [[likely]] {
    if (d.form == wire::payload_form::wire && d.method->views) {
      d.heap = to_message(d, e, bytes);
      d.payload = d.heap->payload();
    }
    execute(*s, d);
    return;
  }
  message* m = to_message(d, e, bytes);
  push(*s, m);
  const std::uint64_t high = std::uint64_t{s->charge} * charge_unit;
  if (high > count_.mailbox_high) count_.mailbox_high = high;
  if (over_limit(*s)) [[unlikely]]
    hold_back(*s, in.pe);
}

// Moves a message out of its ring, whose record is given back.
message* pe::to_message(delivery& d, const wire::envelope& e, std::uint32_t bytes) {
  std::uint32_t size = bytes;
  std::uint16_t padding = e.padding;
  if (d.form == wire::payload_form::block) {
    size = wire::record_bytes(sizeof(wire::block_ref));
    padding = wire::pages_beside(d.payload_bytes);
  } else if (d.form == wire::payload_form::owned) {
    size -= wire::ring_surcharge(padding, d.from->ring.capacity());
  }
  const std::size_t payload = size - wire::granule;
  message* m = pool_.allocate(payload);
  m->source_pe = d.source_pe;
  m->head.size.store(size, std::memory_order_relaxed);
  m->head.kind = wire::record_kind::message;
  m->head.form = d.form;
  m->head.padding = padding;
  m->head.slot = e.slot;
  m->head.generation = e.generation;
  m->head.handler = reinterpret_cast<std::uint64_t>(d.method);
  m->head.reply = d.reply;
  if (d.form == wire::payload_form::owned) {
    d.method->relocate(m->payload(), d.payload);
  } else if (d.form == wire::payload_form::block) {
    const wire::block_ref ref{d.block, d.payload_bytes};  // as it was checked
    std::memcpy(m->payload(), &ref, sizeof ref);
  } else {
    std::memcpy(m->payload(), d.payload, payload);
  }
  inbound* from = d.from;
  d.from = nullptr;
  if (from != nullptr && from->ring.pop()) node_.wake(from->pe);
  return m;
}

void pe::find_block(delivery& d) noexcept {
  wire::block_ref ref{};
  std::memcpy(&ref, d.payload, sizeof ref);
  d.payload = node_.block(d.source_pe, ref);
  d.payload_bytes = ref.bytes;
  d.block = ref.offset;
}

void pe::receive_reply(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  if (!in.remote) {
    auto* s = reinterpret_cast<sink*>(e.reply);
    s->state = e.kind == wire::record_kind::reply ? sink::status::value : sink::status::error;
    complete(*s);
    return;
  }
  sink* s = take_pending(static_cast<std::uint32_t>(e.reply));
  if (s == nullptr) {
    if (!stopping()) node_.peer_corrupt(in.pe, "a reply to a call that was never made");
    return;
  }
  delivery d;
  d.self = this;
  d.source_pe = in.pe;
  d.form = e.form;
  d.payload = e.payload();
  d.payload_bytes = bytes - wire::granule - std::min<std::uint32_t>(e.padding, bytes - wire::granule);
  try {
    if (d.form == wire::payload_form::block) {
      if (bytes - wire::granule < sizeof(wire::block_ref))
        throw bad_message(errc::message_corrupt, "the result of a call is too short");
      find_block(d);
      if (d.payload == nullptr)
        throw bad_message(errc::message_corrupt, "the result of a call lies outside of its sender's memory");
      node_.hold(in.pe);
    }
    if (e.kind == wire::record_kind::reply) {
      if (s->decode != nullptr) s->decode(*s, d.payload, d.payload_bytes);
      s->state = sink::status::value;
    } else {
      orrery::reader r({d.payload, d.payload_bytes});
      const auto what = orrery::read<wire_exception>(r);
      const auto error = decode_exception(what, where_is(s->method, in.pe));
      s->state = sink::status::error;
      if (stopping() || !node_.world_runs()) {
        s->error = error;
      } else {
        try {
          std::rethrow_exception(error);
        } catch (const stopped& ending) {  // only that node: it leaves
          throw node_lost(fmt::format("PE {} leaves the world ({})", in.pe, ending.what()));
        }
      }
    }
  } catch (...) {
    s->error = std::current_exception();
    s->state = sink::status::error;
  }
  d.release();
  complete(*s);
}

// --- flow control ------------------------------------------------------------------------------------------------

void pe::hold_back(slot& s, std::uint32_t source_pe) {
  slot_extra& x = make_extra(s);
  for (const stop_sign& p : x.stopped_pes)
    if (p.pe == source_pe) return;
  x.stopped_pes.push_back({source_pe, ++stops_});
  bool counted = false;  // not if all that came from there had been passed on by others
  for (const auto& in : inbound_) {
    if (in->pe != source_pe || in->lost) continue;
    in->ring.count_stop();
    counted = true;
  }
  try {
    send_control(channel_to(source_pe), wire::record_kind::stop, static_cast<std::uint32_t>(&s - slots_), s.generation,
                 stops_, nullptr, 0, counted ? 1 : 0);
  } catch (const error&) {  // its node is gone: nothing more comes from there
  }
}

void pe::listen() {
  ticks_ = 0;  // the loop polls before it runs anything
  yield();
}

bool pe::is_stopped_slow(address to) const {
  if (!stopped_.empty() && stopped_.contains(to)) return true;
  if (unheard() <= settings_.ring_bytes) return false;
  if (to.slot == wire::no_slot) return true;  // on its way to somebody who is not known, and holds back others
  const channel* c = channels_.find(to.pe);
  return c != nullptr && !c->lost && c->ring.stops() != c->stops_heard;
}

bool pe::wait_while_stopped_slow(address to) {
  bool waited = false;
  if (unheard() > settings_.ring_bytes && active_ != nullptr && !refusing_) {
    listen();
    waited = true;
  }
  for (auto it = stopped_.find(to); it != stopped_.end(); it = stopped_.find(to)) {
    require_process();
    if (refusing_) refuse("a message to a full mailbox");
    current_->next = it->second.waiters;
    it->second.waiters = current_;
    park_for_room(to, it->second.stop);
    waited = true;
  }
  return waited;
}

void pe::park_for_room(address at, std::uint32_t stop) {
  room_wait w{at, stop, ++room_waits_, current_, false, {}};
  for (activation* a = active_; a != nullptr; a = a->below)
    if (!a->process->suspected) suspect(*a->process);
  current_->room = &w;
  park();
  current_->room = nullptr;
  if (!w.cycle.empty()) throw deadlock_error(w.cycle);
}

// --- sending -----------------------------------------------------------------------------------------------------

channel& pe::open_channel(std::uint32_t pe) {
  if (channels_.find(pe) != nullptr) throw_not_sent(pe);
  return channels_.put(pe, node_.connect(*this, pe));
}

void pe::mark_busy(channel& c) {
  c.slow = true;
  for (channel* b : busy_channels_)
    if (b == &c) return;
  busy_channels_.push_back(&c);
}

wire::envelope* pe::reserve_slow(channel& c, std::uint32_t bytes) {
  for (;;) {
    if (c.lost) throw_not_sent(c.pe);
    if (c.deferred.empty())
      if (wire::envelope* e = c.ring.reserve(bytes)) return e;
    if (c.ring.corrupt()) node_.peer_corrupt(c.pe, "an impossible position in a ring to it");
    require_process();
    if (refusing_) refuse("a message into a full ring");
    current_->next = nullptr;
    if (c.last_waiter != nullptr) {
      c.last_waiter->next = current_;
    } else {
      c.waiters = current_;
    }
    c.last_waiter = current_;
    mark_busy(c);
    park();
  }
}

void pe::wake_waiters(channel& c) {
  fiber* first = c.waiters;
  c.waiters = c.last_waiter = nullptr;
  wake_all(first);
}

void pe::wake_all(fiber* list) {
  while (list != nullptr) {
    fiber* next = list->next;
    list->next = nullptr;
    if (list->room != nullptr) list->room->over = true;
    ready(*list);
    list = next;
  }
}

void pe::send_control(channel& c, wire::record_kind kind, std::uint32_t slot, std::uint32_t generation,
                      std::uint64_t word, const void* payload, std::size_t payload_bytes,
                      std::uint64_t word2) noexcept {
  if (c.lost) return;
  const std::uint32_t bytes = wire::record_bytes(payload_bytes);
  std::vector<std::byte> kept;
  wire::envelope* e = try_reserve(c, bytes);
  if (e == nullptr) {
    kept.resize(bytes);
    e = reinterpret_cast<wire::envelope*>(kept.data());
    e->size.store(bytes, std::memory_order_relaxed);
  }
  e->kind = kind;
  e->form = wire::payload_form::wire;
  e->padding = static_cast<std::uint16_t>(bytes - wire::granule - payload_bytes);
  e->slot = slot;
  e->generation = generation;
  e->handler = word2;
  e->reply = word;
  if (payload_bytes != 0) std::memcpy(e->payload(), payload, payload_bytes);
  if (kept.empty()) {
    commit(c, bytes);
  } else {
    c.deferred.push_back(std::move(kept));
    mark_busy(c);
  }
}

bool pe::serve_channels() {
  bool any = false;
  for (std::size_t i = 0; i < busy_channels_.size();) {
    channel& c = *busy_channels_[i];
    while (!c.lost && !c.deferred.empty()) {
      auto& kept = c.deferred.front();
      const auto bytes = static_cast<std::uint32_t>(kept.size());
      wire::envelope* e = c.ring.reserve(bytes);
      if (e == nullptr) break;
      constexpr std::size_t flag = sizeof(std::uint32_t);  // the size word is the ring's to publish
      std::memcpy(reinterpret_cast<std::byte*>(e) + flag, kept.data() + flag, bytes - flag);
      commit(c, bytes);
      c.deferred.pop_front();
      any = true;
    }
    if (c.lost) c.deferred.clear();
    if (c.waiters != nullptr && (c.lost || (c.deferred.empty() && c.ring.has_moved()))) {
      wake_waiters(c);
      any = true;
    }
    if (c.waiters == nullptr && c.deferred.empty()) {
      c.slow = c.lost;
      busy_channels_[i] = busy_channels_.back();
      busy_channels_.pop_back();
    } else {
      ++i;
    }
  }
  return any;
}

// What had been sent to a node that is lost, and was not known to be taken from its ring.
void pe::report_lost_posts(const channel& c) noexcept {
  if (stopping() || !node_.world_runs()) return;
  std::uint64_t lost = 0;
  const auto look_at = [&](const wire::envelope& e) {
    if (e.kind != wire::record_kind::message || e.reply != 0) return;
    if (const handler* const h = c.remote ? handler_table()[e.handler] : nullptr; h != nullptr && h->lost != nullptr) {
      const auto* const payload = const_cast<wire::envelope&>(e).payload();
      try {
        lost_messages_.push_back(
            {h, c.pe, {payload, payload + e.size.load(std::memory_order_relaxed) - wire::granule - e.padding}});
        return;
      } catch (const std::bad_alloc&) {  // then it is counted
      }
    }
    ++lost;
  };
  c.ring.for_each_left(look_at);
  for (const auto& kept : c.deferred) look_at(*reinterpret_cast<const wire::envelope*>(kept.data()));
  if (lost != 0) report_lost_posts(c.pe, lost);
}
void pe::report_lost_posts(std::uint32_t to, std::uint64_t count) noexcept {
  count_.failed_posts += count;
  node_.lost_posts(*this, to, count);
}

void pe::tell_of_lost_messages() noexcept {
  const auto all = std::exchange(lost_messages_, {});
  std::map<std::uint32_t, std::uint64_t> lost;
  for (const lost_message& m : all)
    if (!m.method->lost(*this, *m.method, m.payload, m.to)) ++lost[m.to];
  for (const auto& [to, count] : lost) report_lost_posts(to, count);
}

void pe::lose_channel(channel& c) {
  c.lost = c.slow = true;
  report_lost_posts(c);
  c.deferred.clear();
  c.ring = {};
  node_.give_back(c);
  wake_waiters(c);
}

}  // namespace orrery::scheduler
