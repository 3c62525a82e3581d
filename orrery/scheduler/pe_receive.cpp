// SPDX-License-Identifier: Apache-2.0
// The part of a PE's loop that takes records out of rings, and gives each to who deals with it.
#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/order_through_nodes.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/unknown_handler.hpp>
#include <orrery/transport/carrier.hpp>
#include <orrery/transport/shm/registry.hpp>

#include <cstring>

#include <fmt/format.h>

namespace orrery::scheduler {
namespace {

// entries of the run queue between two looks at the rings
constexpr std::int32_t ticks_per_poll = 64;
constexpr int records_per_drain = 64;        // of one ring, before the next one has its turn

}  // namespace

bool pe::poll() {
  if (is_forked_child) [[unlikely]]
    end_forked_child();  // before it takes anything from the rings of its parent
  ticks_ = ticks_per_poll;
  flow_.listens(count_.sent_bytes);
  if (publisher_.poll(count_)) [[unlikely]] {
    backlog& excess = flow_.excess();
    excess.measure_if_due();
    if (excess.may_hold()) excess.relieve(transport::now_ns());
  }
  if (quiescence_.resting()) [[unlikely]] {
    if (!anything_inbound()) return !runnable_.empty();
    quiescence_.end_rest();  // before anything is received
  }
  bool any = false;
  if (carrier_ != nullptr) [[unlikely]]
    carrier_->poll(!runnable_.empty());
  if (links_.has_news()) [[unlikely]]
    links_.take_news();
  // By index: a handler may park here, and others poll meanwhile.
  for (std::size_t i = 0; i < links_.all_inbound().size(); ++i) any |= drain(*links_.all_inbound()[i]);
  if (links_.has_busy()) [[unlikely]]
    any |= links_.serve_busy();
  if (io_active_ != nullptr) [[unlikely]]
    any |= io_active_->poll();
  any |= fire_timers();
  // else when nothing has come for a while (pe::idle)
  if (deadlocks_.has_suspects() && (++polls_ & 255) == 0) [[unlikely]]
    any |= deadlocks_.chase_suspects();
  if (runnable_.size() > count_.queue_high) count_.queue_high = runnable_.size();
  return any || !runnable_.empty();
}

bool pe::drain(inbound& in) {
  int n = 0;
  ++in.drains;
  for (; n < records_per_drain && !in.lost; ++n) {
    wire::envelope* e = in.ring.front();
    if (e == nullptr) {
      if (in.ring.corrupt()) [[unlikely]] {
        in.lost = true;
        in.ring.refuse();
        in.ring = {};
        node_.peer_corrupt(in.pe, "a record of impossible size");
        if (in.remote) node_.let_go(in.pe);
      }
      break;
    }
    const std::uint32_t bytes = in.ring.front_bytes();
    // The lines that its producer has written come at once, not one after another: the payload, and
    // where the next record would be. (Behind the first one only, as a busy producer writes there.)
    if (bytes > wire::granule) __builtin_prefetch(e->payload());
    if (n == 0) __builtin_prefetch(reinterpret_cast<const std::byte*>(e) + bytes);
    receive_record(in, *e, bytes);
    if ((n & 15) == 15 && took_long()) break;  // other rings and files have their turn
  }
  --in.drains;
  return n != 0;
}

// Records that it had published are good.
void pe::drain_lost(inbound& in) {
  // a method that waits for what is lost here must not be run in the middle of it
  queueing_ = true;
  while (drain(in)) {
  }
  queueing_ = false;
}

void pe::receive_record(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  ++count_.received;
  count_.received_bytes += bytes;
  if (in.remote) order_after_other_nodes();
  if (watch_ != nullptr && watch_->order != nullptr) [[unlikely]]
    return receive_followed(in, e, bytes);
  deal_with_record(in, e, bytes);
}

// The same where what happens before what is followed: records have annexes.
void pe::receive_followed(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  causality& order = *watch_->order;
  const wire::record_kind kind = e.kind;
  if (wire::is_message(kind) || kind == wire::record_kind::reply || kind == wire::record_kind::failure ||
      kind == wire::record_kind::small_reply)
    order.arrives(in);
  deal_with_record(in, e, bytes);
  order.arrived();
}

void pe::deal_with_record(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  switch (e.kind) {
    case wire::record_kind::message:
    case wire::record_kind::urgent:
    case wire::record_kind::background:
      receive_message(in, e, bytes);
      return;
    case wire::record_kind::annex:
      receive_annex(in, e, bytes);
      break;
    case wire::record_kind::reply:
    case wire::record_kind::failure:
      replies_.receive(in, e, bytes);
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
      flow_.receive_stop(in, e);
      break;
    case wire::record_kind::go:
      flow_.receive_go(in, e);
      break;
    case wire::record_kind::release:
      if (in.remote) {
        node_.block_released(in.pe, e.reply);
        if (outbound* c = links_.find(in.pe); c != nullptr && c->blocks_out != 0) --c->blocks_out;
      }
      break;
    case wire::record_kind::wait_probe:
      deadlocks_.receive(in, e, bytes);
      break;
    case wire::record_kind::refusal:
      if (in.remote) node_.refused_by(in.pe);
      break;
    case wire::record_kind::unknown:
      receive_unknown(*this, in, e, bytes);
      break;
    default:
      node_.peer_corrupt(in.pe, "a record of unknown kind in its ring");
      break;
  }
  if (!in.lost && in.ring.pop()) node_.wake(in.pe);
}

void pe::receive_annex(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  if (watch_ == nullptr || watch_->order == nullptr) return;  // only the sender is checked
  const std::uint32_t room = bytes - wire::granule;
  const std::uint32_t padding = wire::envelope::read_once(e.padding);
  watch_->order->receive_annex(in, e.payload(), padding < room ? room - padding : 0, e.generation != 0);
}

// Nothing that another OS process wrote is believed. False: the message was returned, or failed.
inline bool pe::read_from_node(const inbound& in, const wire::envelope& e, delivery& d) {
  const std::uint16_t padding = wire::envelope::read_once(e.padding);
  const std::uint64_t index = wire::envelope::read_once(e.handler);
  const char* wrong = nullptr;
  if (d.form != wire::payload_form::wire && d.form != wire::payload_form::block) wrong = "a message of unknown form";
  const bool in_block = d.form == wire::payload_form::block;
  if (in_block ? d.payload_bytes < sizeof(wire::block_ref) : padding > d.payload_bytes || padding >= wire::granule)
    wrong = "a message with an impossible length";
  if (wrong == nullptr) {
    d.method = find_handler(index);
    if (d.form == wire::payload_form::block) {
      d.find_block();
      if (d.payload == nullptr) {
        wrong = "a message whose payload lies outside of its sender's memory";
      } else {
        node_.hold(in.pe);
      }
    } else {
      d.payload_bytes -= padding;
    }
  }
  if (d.method == nullptr && wrong == nullptr) [[unlikely]] {
    if (index < transport::world_registry::max_words) {
      return_unknown(*this, in.pe, index, e.slot, e.reply, {d.payload, d.payload_bytes});
      d.release();
      return false;
    }
    wrong = "a message for an unknown handler";
    if (in_block) node_.let_go(in.pe);
  }
  if (wrong != nullptr) [[unlikely]] {
    d.form = wire::payload_form::wire;
    const std::uint32_t pe_number = in.pe;
    d.fail(std::make_exception_ptr(bad_message(
        errc::message_corrupt, fmt::format("PE {} received {} from PE {} and dropped it", id(), wrong, pe_number))));
    return false;
  }
  return true;
}

void pe::receive_message(inbound& in, wire::envelope& e, std::uint32_t bytes) {
  delivery d;
  const wire::record_kind kind = wire::envelope::read_once(e.kind);
  d.self = this;
  d.from = &in;
  d.source_pe = in.pe;
  d.form = wire::envelope::read_once(e.form);
  d.reply = e.reply;
  d.remote = in.remote;
  d.payload = e.payload();
  d.payload_bytes = bytes - wire::granule;
  if (!in.remote) {
    d.method = reinterpret_cast<const handler*>(e.handler);
  } else if (!read_from_node(in, e, d)) [[unlikely]] {
    return;
  }
  slot* s = nullptr;
  const std::uint32_t slot_number = wire::envelope::read_once(e.slot);
  if (d.method->route != nullptr) {
    s = d.method->route(*this, d, e, bytes);
    if (s == nullptr) return;
  } else if (slot_number == wire::no_slot) {
    s = &allocate_slot();
    s->state = process_state::idle;
  } else {
    s = find(slot_number, e.generation);
    if (s == nullptr) [[unlikely]] {
      d.fail(gone_error(*d.method, {id(), slot_number, e.generation}));
      return;
    }
  }
  if (s->state == process_state::idle && !queueing_ && kind != wire::record_kind::background) [[likely]] {
    if (d.form == wire::payload_form::wire && d.method->views) {
      d.heap = d.to_message(e, bytes);
      d.payload = d.heap->payload();
    }
    execute(*s, d);
    return;
  }
  message* m = d.to_message(e, bytes, s);
  if (kind == wire::record_kind::message) [[likely]] {
    push(*s, m);
  } else {
    push_at(kind, *s, m);
  }
  const std::uint64_t high = std::uint64_t{s->charge} * charge_unit;
  if (high > count_.mailbox_high) count_.mailbox_high = high;
  if (flow_.over_limit(*s)) [[unlikely]]
    flow_.hold_back(*s, in.pe);
}

}  // namespace orrery::scheduler
