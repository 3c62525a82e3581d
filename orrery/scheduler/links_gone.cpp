// SPDX-License-Identifier: Apache-2.0
// The part of links that closes the rings to nodes which have left, are lost, or are treated so.
#include <orrery/scheduler/links.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <exception>
#include <utility>

namespace orrery::scheduler {

// Nothing can be sent there, and what was called there will not answer.
void links::lose_gone() {
  of_.quiescence().tell_waits();  // before they end
  // before looking: those that go meanwhile are announced again
  gone_nodes_ = of_.owner().gone_nodes();
  for (const auto& c : outbound_)
    if (c->remote && c->ring.refused()) of_.owner().refused_by(c->pe);
  for (const auto& c : outbound_) {
    if (!c->remote || of_.owner().reachable(c->pe)) continue;
    if (c->lost) {
      of_.owner().give_back(*c, of_.id());  // it was not trusted, and may have ended now
    } else {
      refuse_peer(c->pe);
      lose_outbound(*c);
    }
  }
  for (const auto& in : inbound_) {
    if (!in->remote || in->refused || of_.owner().reachable(in->pe)) continue;
    in->refused = true;
    refuse_peer(in->pe);
    if (!in->lost) lose_inbound(*in);
  }
  of_.replies().fail_unreachable();
  of_.flow().forget_unreachable();
  forget_ended();
  of_.failures().tell_of_lost();
  of_.layers().watchers().for_each([&](wait_watcher& w) { w.pes_lost(of_); });
  if (transport::world* world = of_.owner().world(); world != nullptr) world->acknowledge(of_.id(), gone_nodes_);
}

void links::lose_inbound(inbound& in) {
  of_.drain_lost(in);
  if (in.lost) return;
  in.lost = true;
  in.ring = {};
  of_.owner().let_go(in.pe);
}

void links::lose_outbound(outbound& c) {
  c.lost = true;
  c.set_slow(true);
  of_.failures().note_lost(c);
  c.deferred.clear();
  c.ring = {};
  of_.owner().give_back(c, of_.id());
  wake_waiters(c);
}

// Drops records for PEs of nodes that have ended, so that they do not pile up where nodes come and
// go. A fiber that is parked in the middle of a send or of a method keeps it until a later look.
void links::forget_ended() {
  // nobody joins there, and the links of the simulator point to both ends
  if (of_.simulated() != nullptr) return;
  const auto is_over = [&](const outbound& c) {
    return c.returned && c.lost && c.users == 0 && c.waiters == nullptr && std::ranges::find(busy_, &c) == busy_.end();
  };
  outbound_.erase_if(is_over);
  std::erase_if(inbound_, [&](const auto& in) { return in->lost && in->drains == 0 && of_.owner().has_ended(in->pe); });
}

// Tells a PE whose node is treated as lost, but lives: else its calls to this one would never end.
// If the ring is full, that node has stopped reading, and other PEs tell it.
void links::refuse_peer(std::uint32_t peer) noexcept {
  if (!of_.owner().is_refused(peer)) return;
  for (const auto& in : inbound_)
    if (in->remote && in->pe == peer) in->ring.refuse();
  of_.owner().announce_elsewhere(peer);
  try {
    outbound* known = outbound_.find(peer);
    if (known == nullptr) {
      wire::unique_ptr<outbound> made = of_.owner().connect_to_refused(of_, peer);
      if (made == nullptr) return;
      known = &outbound_.put(peer, std::move(made));
    }
    outbound& c = *known;
    wire::envelope* e = c.lost ? nullptr : c.ring.reserve(wire::granule);
    if (e == nullptr) return;
    e->kind = wire::record_kind::refusal;
    e->form = wire::payload_form::wire;
    e->padding = 0;
    of_.commit(c, wire::granule);
    lose_outbound(c);
  } catch (const std::exception&) {  // there is no memory to say it with
  }
}

}  // namespace orrery::scheduler
