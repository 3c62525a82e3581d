// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/links.hpp>

#include <orrery/scheduler/causality.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/order_through_nodes.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/transport/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <exception>

namespace orrery::scheduler {

links::links(pe& of, transport::doorbell& bell, std::uint32_t world_pes) noexcept
    : of_(of), bell_(bell), outbound_(world_pes) {}

// --- sending -------------------------------------------------------------------------------------

outbound& links::open(std::uint32_t to) {
  if (outbound_.find(to) != nullptr) throw_not_sent(to);
  outbound& c = outbound_.put(to, of_.owner().connect(of_, to));
  if (causality* const order = of_.order().recorder()) c.follow(*order);
  return c;
}

outbound& links::control_outbound_to(std::uint32_t to) {
  try {
    return of_.outbound_to(to);
  } catch (const world_error& e) {
    of_.owner().peer_without_ring(to, e.what());
    throw_not_sent(to);
  }
}

void links::mark_busy(outbound& c) {
  c.set_slow(true);
  for (outbound* b : busy_)
    if (b == &c) return;
  busy_.push_back(&c);
}

wire::envelope* links::await_space(outbound& c, std::uint32_t bytes) {
  for (;;) {
    if (c.lost) throw_not_sent(c.pe);
    if (c.deferred.empty())
      if (c.order == nullptr || c.order->precede(c))
        if (wire::envelope* e = c.ring.reserve(bytes)) return e;
    if (c.ring.corrupt()) of_.owner().peer_corrupt(c.pe, "an impossible position in a ring to it");
    of_.require_process();
    if (of_.refusing()) of_.shutdown().refuse("a message into a full ring");
    of_.running()->next = nullptr;
    if (c.last_waiter != nullptr) {
      c.last_waiter->next = of_.running();
    } else {
      c.waiters = of_.running();
    }
    c.last_waiter = of_.running();
    mark_busy(c);
    ++c.users;
    of_.park();
    --c.users;
  }
}

void links::wake_waiters(outbound& c) {
  fiber* first = c.waiters;
  c.waiters = c.last_waiter = nullptr;
  of_.ready_all(first);
}

void links::send_control(outbound& c, wire::record_kind kind, std::uint32_t slot, std::uint32_t generation,
                         std::uint64_t word, const void* payload, std::size_t payload_bytes,
                         std::uint64_t word2) noexcept {
  if (c.lost) return;
  const std::uint32_t bytes = wire::record_bytes(payload_bytes);
  std::vector<std::byte> kept;
  wire::envelope* e = c.try_reserve(bytes);
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
    if (c.remote) order_before_other_nodes();
    of_.commit(c, bytes);
  } else {
    if (c.order != nullptr)
      for (auto& r : c.order->annex_records(c)) c.deferred.push_back(std::move(r));
    c.deferred.push_back(std::move(kept));
    mark_busy(c);
  }
}

bool links::serve_busy() {
  bool any = false;
  for (std::size_t i = 0; i < busy_.size();) {
    outbound& c = *busy_[i];
    bool sent = false;  // then there may be room for more, though the receiver has not said so
    while (!c.lost && !c.deferred.empty()) {
      auto& kept = c.deferred.front();
      const auto bytes = static_cast<std::uint32_t>(kept.size());
      wire::envelope* e = c.ring.reserve(bytes);
      if (e == nullptr) {
        if (c.ring.corrupt()) of_.owner().peer_corrupt(c.pe, "an impossible position in a ring to it");
        break;
      }
      constexpr std::size_t flag = sizeof(std::uint32_t);  // the size word is the ring's to publish
      std::memcpy(reinterpret_cast<std::byte*>(e) + flag, kept.data() + flag, bytes - flag);
      if (c.remote) order_before_other_nodes();
      of_.commit(c, bytes);
      c.deferred.pop_front();
      any = sent = true;
    }
    if (c.lost) c.deferred.clear();
    if (c.waiters != nullptr && (c.lost || (c.deferred.empty() && (sent || c.ring.has_moved())))) {
      wake_waiters(c);
      any = true;
    }
    if (c.waiters == nullptr && c.deferred.empty()) {
      c.set_slow(c.lost);
      busy_[i] = busy_.back();
      busy_.pop_back();
    } else {
      ++i;
    }
  }
  return any;
}

void links::release_block(std::uint32_t source_pe, std::uint64_t offset) noexcept {
  of_.owner().let_go(source_pe);
  try {
    send_control(control_outbound_to(source_pe), wire::record_kind::release, 0, 0, offset);
  } catch (const std::exception&) {  // its node is gone, and its memory with it
  }
}

void links::cancel_waits() {
  for (const auto& c : outbound_) wake_waiters(*c);
}

// --- receiving -----------------------------------------------------------------------------------

void links::add_inbound(wire::unique_ptr<inbound> in) {
  {
    const std::lock_guard lock(arrivals_mutex_);
    arrivals_.push_back(std::move(in));
  }
  of_.owner().announce(of_);
}

void links::run_errand(void (*f)(void*), void* argument) {
  {
    const std::lock_guard lock(arrivals_mutex_);
    if (errands_over_) throw stopped("an errand");
    errands_.emplace_back(f, argument);
  }
  of_.owner().announce(of_);
}

void links::take_news() {
  // SYNC: acquire, with add_inbound and with the announcement of another node
  announced_ = bell_.announce.load(std::memory_order_acquire);
  decltype(errands_) errands;
  {
    const std::lock_guard lock(arrivals_mutex_);
    adopt_arrivals();
    errands.swap(errands_);
  }
  for (const auto& [f, argument] : errands) f(argument);
  of_.owner().adopt_remote(of_, inbound_);
  lose_gone();
  if (of_.owner().layer() != nullptr) of_.owner().layer()->membership_changed(of_);
}

void links::adopt_arrivals() {
  for (auto& in : arrivals_) inbound_.push_back(std::move(in));
  arrivals_.clear();
}

// Wakes the waiters of one outbound ring that has room. True if there is one.
bool links::wake_for_room() noexcept {
  for (outbound* c : busy_)
    if (c->lost || c->ring.has_moved()) {
      wake_waiters(*c);
      return true;
    }
  return false;
}

void links::release_space(inbound& in) noexcept {
  if (in.ring.release_space()) of_.owner().wake(in.pe);
}

void links::ask_for_wakes(bool yes) noexcept {
  for (outbound* c : busy_)
    if (!c->lost) c->ring.header()->producer_waits.store(yes ? 1 : 0, std::memory_order_relaxed);
}

std::pair<std::uint64_t, std::uint64_t> links::traffic() const noexcept {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (const auto& c : outbound_) sent += c->ring.written();
  for (const auto& in : inbound_) received += in->ring.read();
  return {sent, received};
}

// --- the end -------------------------------------------------------------------------------------

namespace {
// Gives back what a record of this node holds that nobody will receive: an owned payload, or what a
// control message names.
void drop_payload(wire::envelope& e) noexcept {
  if (!wire::is_message(e.kind)) return;
  const auto* const h = reinterpret_cast<const handler*>(e.handler);
  if (e.form == wire::payload_form::owned || (h->route != nullptr && h->payload_bytes == 0)) h->drop(e.payload());
}
}  // namespace

void links::drop_leftovers() noexcept {
  decltype(errands_) errands;
  {
    const std::lock_guard lock(arrivals_mutex_);
    adopt_arrivals();
    errands.swap(errands_);
    errands_over_ = true;
  }
  for (const auto& [f, argument] : errands) f(argument);
  for (const auto& in : inbound_) {
    if (in->remote || in->lost) continue;
    while (wire::envelope* e = in->ring.front()) {
      drop_payload(*e);
      (void)in->ring.pop();
    }
  }
  for (const auto& c : outbound_)
    if (!c->remote)
      for (auto& kept : c->deferred) drop_payload(*reinterpret_cast<wire::envelope*>(kept.data()));
}

// A ring can be opened as long as this OS process lives, and one that is open keeps its memory. So
// a node that leaves a world which goes on waits until the receivers have opened theirs.
void links::await_receivers() noexcept {
  for (const auto& in : inbound_)  // what was read here is not to be taken for lost by who sent it
    if (in->remote && !in->lost) (void)in->ring.release_space();
  constexpr std::int64_t adoption_ns = 10'000'000'000;
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 200'000};
  node& here = of_.owner();
  if (here.world() == nullptr || !here.world()->is_open()) return;
  const std::int64_t deadline = transport::now_ns() + adoption_ns;
  for (const auto& c : outbound_) {
    const auto is_unopened = [&] {
      return c->remote && !c->lost && here.world_runs() && here.takes_work(c->pe) &&
             here.world()->ring_offset(c->pe, of_.id()).has_value();
    };
    while (is_unopened() && transport::now_ns() < deadline) ::nanosleep(&pause, nullptr);
    if (!is_unopened()) continue;
    std::uint64_t posts = 0;
    c->ring.for_each_left([&](const wire::envelope& e, std::uint32_t) {
      if (wire::is_message(e.kind) && e.reply == 0) ++posts;
    });
    if (posts != 0) of_.failures().say_lost(c->pe, posts);
  }
}

}  // namespace orrery::scheduler
