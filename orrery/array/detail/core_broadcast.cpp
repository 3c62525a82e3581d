// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/core_records.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/carrier.hpp>

#include <algorithm>
#include <cassert>
#include <cstring>

namespace orrery::detail {

namespace {

// The first section of a broadcast.
struct broadcast_head {
  sequence_number number;  // 0: it is still on its way to the root
  sequence_number low;
  std::uint32_t from = 0;  // the PE where it began
};

slot* route_ack(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  const std::uint32_t from = d.source_pe;
  const sequence_number number{e.generation};
  array_core* part = array_directory::of(self).find(e.slot);
  d.release();
  if (part != nullptr) part->acknowledge(number, from);
  return nullptr;
}
slot* route_fence(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  const std::uint32_t from = d.source_pe;
  const sequence_number number{e.generation};
  array_core* part = array_directory::of(self).find(e.slot);
  d.release();
  if (part != nullptr) part->fence(number, from);
  return nullptr;
}
slot* route_fence_answer(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  const sequence_number number{e.generation};
  array_core* part = array_directory::of(self).find(e.slot);
  d.release();
  if (part != nullptr) part->fence_answered(number);
  return nullptr;
}

// Null, and reported, if serialize() of an argument throws.
wire::unique_ptr<broadcast_record> read_broadcast(pe& self, const array_handler& method,
                                                  std::span<const std::byte> arguments) noexcept try {
  return method.decode(arguments);
} catch (...) {
  self.failures().report_post(&method, std::current_exception());
  return nullptr;
}

const control_handler ack_handler{"acknowledge", &route_ack};
const control_handler fence_handler{"fence", &route_fence};
const control_handler fence_answer_handler{"fence answered", &route_fence_answer};

}  // namespace

bool array_core::inside_element() const noexcept {
  const array_directory& all = array_directory::of(self_);
  for (const scheduler::activation* a = self_.active(); a != nullptr; a = a->below)
    if (all.part_around(*a->process) == this || is_ending(*a->process)) return true;
  return false;
}

// An element waits for itself if it waits until its broadcasts have been executed; also where two
// arrays of its class do that to each other.
bool array_core::may_wait_for_broadcasts() const noexcept {
  for (const scheduler::activation* a = self_.active(); a != nullptr; a = a->below)
    if (a->process->cls() == element_class) return false;
  return self_.active() != nullptr;
}

void array_core::broadcast(const array_handler& method, std::span<const std::byte> arguments) {
  pe& self = self_;
  const std::uint32_t array = id();
  require_whole("a broadcast");
  while (own_ >= own_broadcasts && may_wait_for_broadcasts()) {
    if (self_.refusing()) self_.shutdown().refuse("a broadcast");
    self_.yield();
    // destroyed meanwhile, and maybe made anew
    if (array_directory::of(self).find(array) != this) throw_no_array(array);
    require_whole("a broadcast");  // else those under way may never be over
  }
  broadcast_now(method, arguments);
}

void array_core::broadcast_now(const array_handler& method, std::span<const std::byte> arguments) {
  bytes b = pack(arguments.size(), broadcast_head{{}, {}, self_.id()});
  if (!arguments.empty()) std::memcpy(b.data() + b.size() - arguments.size(), arguments.data(), arguments.size());
  ++own_;
  begins();
  tell(self_, about_.root, method, id(), 0, b);
}

void array_core::receive_broadcast(const array_handler& method, std::span<const std::byte> payload) {
  const activity_end arrived(this);
  orrery::reader r(payload);
  auto head = orrery::read<broadcast_head>(r);
  const auto arguments = after_section(payload, r);
  bytes numbered;
  if (head.number.value == 0) {
    if (self_.id() != about_.root) throw bad_message(errc::message_corrupt, "a broadcast without a number");
    numbered_ = numbered_.next();
    if (numbered_.value == 0) numbered_ = numbered_.next();
    head.number = numbered_;
    head.low = low_;
    numbered = pack(arguments.size(), head);
    if (!arguments.empty())
      std::memcpy(numbered.data() + numbered.size() - arguments.size(), arguments.data(), arguments.size());
    payload = numbered;
  }
  begins(children_.size());
  for (const child& c : children_) tell(self_, c.pe, method, id(), 0, payload);
  // Other machines are to begin before the elements here take the PE.
  if (transport::world* const w = self_.owner().world(); w != nullptr && !children_.empty())
    if (transport::carrier* const carrier = w->carrier(); carrier != nullptr) carrier->poll(true);
  const bool ours = head.from == self_.id();
  received_ = head.number;
  if (auto record = read_broadcast(self_, method, arguments); record != nullptr) [[likely]] {
    record->number = head.number;
    record->part = this;
    record->ours = ours;
    deliver(*record.release());
  } else {
    miss(head.number, ours);
  }
  forget_past(head.low);
  if (head.number.value % ack_every == 0) begin_ack(head.number);
}

void array_core::deliver(broadcast_record& r) {
  r.holders = 2;  // one of this function
  r.left = 1;
  begins();
  records_->past.push_back(&r);
  for (cell_base* c : cells_) {
    if (c->broadcasts >= r.number) continue;  // it has got it elsewhere
    c->broadcasts = r.number;
    post_to(*c, r);
  }
  executed(&r);
}

// It could not be read here: so it is over, and the elements of this PE never get it.
void array_core::miss(sequence_number number, bool ours) noexcept {
  for (cell_base* c : cells_) c->broadcasts = std::max(c->broadcasts, number);
  if (ours) --own_;
}

void array_core::post_to(cell_base& c, broadcast_record& r) {
  scheduler::message* m = self_.messages().allocate(sizeof(void*));
  broadcast_record* p = &r;
  std::memcpy(m->payload(), &p, sizeof p);
  m->source_pe = self_.id();
  write_envelope(m->head, self_.address_of(*c.process), *r.member, wire::payload_form::owned, nullptr, 0);
  ++r.holders;
  ++r.left;
  begins();
  self_.push(*c.process, m);
}

void array_core::release(broadcast_record* r) noexcept {
  if (--r->holders == 0) delete r;
}

void array_core::executed(broadcast_record* r) noexcept {
  over();
  if (--r->left == 0 && r->ours) {
    r->ours = false;
    --own_;
  }
  release(r);
}

void array_core::forget_past(sequence_number low) noexcept {
  low_ = std::max(low_, low);
  while (!records_->past.empty() && records_->past.front()->number <= low_) {
    broadcast_record* r = records_->past.front();
    records_->past.pop_front();
    release(r);
  }
}

// Everything that left this PE for another before the broadcast came is there before the fence is.
void array_core::begin_ack(sequence_number number) {
  records_->acks.push_back({number, static_cast<std::uint32_t>(children_.size() + records_->departed_to.size()) + 1});
  const auto to = std::exchange(records_->departed_to, {});
  for (const std::uint32_t pe : to) tell(self_, pe, fence_handler, id(), number.value, {});
  ack_step(number);
}

void array_core::fence(sequence_number number, std::uint32_t from) {
  tell(self_, from, fence_answer_handler, id(), number.value, {});
}
void array_core::fence_answered(sequence_number number) { ack_step(number); }
void array_core::acknowledge(sequence_number number, std::uint32_t) { ack_step(number); }

void array_core::ack_step(sequence_number number) {
  const auto round = std::ranges::find(records_->acks, number, &records::ack_round::number);
  if (round == records_->acks.end()) return;
  --round->left;
  pass_acks();
}

// In order: what left this PE before an earlier round is behind the fence of that one only.
void array_core::pass_acks() {
  while (shares_ == 0 && !records_->acks.empty() && records_->acks.front().left == 0) {
    const sequence_number done = records_->acks.front().number;
    records_->acks.pop_front();
    if (self_.id() == about_.root) {
      forget_past(done);
    } else {
      tell(self_, parent_, ack_handler, id(), done.value, {});
    }
  }
}

// It was to be numbered, and did not get there: it is over.
bool lost_broadcast(pe& self, const scheduler::handler&, std::span<const std::byte> payload, std::uint32_t,
                    const scheduler::unknown_message* unknown) noexcept try {
  array_core* const part = unknown != nullptr ? array_directory::of(self).find(unknown->slot) : nullptr;
  if (part == nullptr) return false;
  const activity_end ended(part);
  orrery::reader r(payload);
  const auto head = orrery::read<broadcast_head>(r);
  if (head.number.value == 0 && head.from == self.id()) part->take_back_broadcast();
  return false;
} catch (const error&) {
  return false;
}

std::size_t array_core::past_size() const noexcept { return records_->past.size(); }

}  // namespace orrery::detail
