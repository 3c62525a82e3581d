// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/group_part.hpp>

#include <orrery/process/broadcast.hpp>
#include <orrery/scheduler/node.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <functional>

#include <fmt/format.h>

namespace orrery::detail {

// --- the group -----------------------------------------------------------------------------------

group_data::group_data(std::vector<address> m, const std::vector<address>& p) : members(std::move(m)) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> index;  // PE -> part
  for (const address& a : p) {
    index.emplace_back(a.pe, static_cast<std::uint32_t>(parts.size()));
    parts.push_back({a});
  }
  std::ranges::sort(index);
  part_of.reserve(members.size());
  for (std::uint32_t rank = 0; rank < members.size(); ++rank) {
    const auto it = std::ranges::lower_bound(index, members[rank].pe, {}, [](const auto& i) { return i.first; });
    if (it == index.end() || it->first != members[rank].pe)
      throw bad_message(errc::message_corrupt, "a group with a member on a PE where it has no part");
    part& q = parts[it->second];
    if (q.members++ == 0) q.first = rank;
    part_of.push_back(it->second);
  }
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].members == 0 || (i > 0 && parts[i].first < parts[i - 1].first))
      throw bad_message(errc::message_corrupt, "a group whose parts do not fit its members");
}

const group_data::part* group_data::on(std::uint32_t pe) const noexcept {
  for (const part& p : parts)
    if (p.at.pe == pe) return &p;
  return nullptr;
}

void group_handle::throw_null() {
  throw usage_error(errc::null_pointer, verbatim,
                    "group: it has no members: it was default-constructed; assign one that spawn_group gave");
}

void throw_no_member(const char* what, std::size_t rank, std::size_t size) {
  throw usage_error(errc::bad_argument, fmt::format("{}: there is no rank {}: it has {} member{}, of ranks from 0 on",
                                                    what, rank, size, size == 1 ? "" : "s"));
}

group_part* find_part(pe& self, std::uint32_t index, std::uint32_t generation) noexcept {
  slot* s = self.find(index, generation);
  return s != nullptr ? object_in<group_part>(*s) : nullptr;
}

// --- the part ------------------------------------------------------------------------------------

group_part::group_part(pe& self, address at) : self_(self), at_(at) { self.layers().watchers().add(*this); }

group_part::~group_part() {
  self_.layers().watchers().remove(*this);
  // Something is outstanding only when the runtime ends: nobody waits for it any more.
  while (outstanding != nullptr) {
    broadcast_base* b = outstanding;
    b->forget_messages(self_);
    delete b;
  }
}

void group_part::adopt(const group_handle& g) {
  const group_data& d = g.data();
  members_.clear();
  for (std::uint32_t rank = 0; rank < d.members.size(); ++rank)
    if (const address& a = d.members[rank]; a.pe == at_.pe) members_.push_back({rank, a.slot, a.generation});
  index_ = static_cast<std::uint32_t>(d.parts.size());
  for (std::uint32_t i = 0; i < d.parts.size(); ++i)
    if (d.parts[i].at == at_) index_ = i;
  if (index_ == d.parts.size()) throw bad_message(errc::message_corrupt, "a message for another group");
  received_.assign(static_cast<std::size_t>(std::bit_width(d.parts.size() - 1)), 0);
  group_ = g;
}

std::size_t group_handle::hash() const noexcept {
  std::size_t h = size();
  if (h != 0) h = std::hash<address>{}(data_->members.front()) * 31 + std::hash<address>{}(data_->members.back()) + h;
  return h;
}

std::string group_handle::text() const {
  constexpr std::size_t most = 8;
  if (data_ == nullptr) return "null";
  std::string all;
  for (std::size_t i = 0; i < size() && i < most; ++i) all += (i != 0 ? ", " : "") + to_string(data_->members[i]);
  return size() > most ? fmt::format("[{}, ... {} members]", all, size()) : fmt::format("[{}]", all);
}

slot* group_part::find(std::size_t i) const noexcept { return self_.find(members_[i].slot, members_[i].generation); }

std::size_t group_part::index_of(const slot& s) const noexcept {
  const address a = self_.address_of(s);
  std::size_t i = 0;
  while (i < members_.size() && (members_[i].slot != a.slot || members_[i].generation != a.generation)) ++i;
  return i;
}

// --- collectives ---------------------------------------------------------------------------------

void group_part::arrive(const collective& what, arrival& a) {
  self_.require_process();
  if (self_.refusing()) self_.shutdown().refuse(what.name);
  if (broken_ != nullptr && completed_ >= broken_from_) std::rethrow_exception(broken_);
  if (const collective* other = order_.note(completed_, what); other != nullptr) [[unlikely]] {
    disagree(completed_, *other, what);
    std::rethrow_exception(broken_);
  }
  what_ = &what;
  const void* const order = order_of(completed_);
  self_.give_order(order);
  if (last_ != nullptr) {
    last_->next = &a;
  } else {
    first_ = &a;
  }
  last_ = &a;
  if (++arrived_ == members_.size()) {
    self_.take_order(order);  // what it sends is of all
    try {
      what.all_here(self_, *this);
    } catch (...) {  // a message could not be sent: nobody will get any further
      broken(completed_, std::current_exception());
    }
  }
  while (!a.done) {
    a.waiter = self_.running();
    a.waiter->waits_in = what.name;
    self_.park();
    self_.running()->waits_in = nullptr;
  }
  self_.take_order(order);
  if (a.failed) std::rethrow_exception(broken_);
}

void group_part::release(bool failed) noexcept {
  self_.give_order(order_of(completed_));
  // Those of the one before have gone on: they are in this one.
  self_.forget_order(order_of(completed_ - 1));
  arrival* a = std::exchange(first_, nullptr);
  last_ = nullptr;
  arrived_ = 0;
  exchanging_ = false;
  ++completed_;
  while (a != nullptr) {
    arrival* next = a->next;  // it lies on the stack of one that may go on
    a->failed = failed;
    a->done = true;
    if (a->waiter != nullptr) self_.ready(*a->waiter);
    a = next;
  }
}

void group_part::broken(std::uint64_t number, std::exception_ptr why) noexcept {
  if (broken_ != nullptr && broken_from_ <= number) return;
  broken_ = std::move(why);
  broken_from_ = number;
  if (completed_ >= number && arrived_ != 0) release(true);
}

// Barriers. In round k each part tells the one 2^k behind it, and hears from the one 2^k before:
// after log2 of their number all have heard of all. A part that has heard all may enter the next
// barrier while others still wait in this one; its messages are then one ahead in the counts.

namespace {

void part_barrier(std::uint32_t index, std::uint32_t generation, std::uint32_t round, std::uint64_t number) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->barrier_message(round, number);
}

std::exception_ptr disagreement_error(const std::string& text) {
  return std::make_exception_ptr(usage_error(errc::bad_argument, text));
}

void part_disagrees(std::uint32_t index, std::uint32_t generation, std::uint64_t number, const std::string& text) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->broken(number, disagreement_error(text));
}

void part_broken(std::uint32_t index, std::uint32_t generation, std::uint64_t number, std::uint32_t rank) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->hear_of_end(number, rank);
}

// Never parks. To a fresh slot rather than to the part, which may be gone: then nobody needs the
// message.
template <auto F, class... A>
void tell_part(pe& self, address part, const A&... args) noexcept {
  const scheduler::handler& h = function_handler<F>::instance;
  try {
    scheduler::channel& c = self.links().control_channel_to(part.pe);
    const auto room = [&] {
      if constexpr (has_fixed_wire_size<A...>) {
        return std::array<std::byte, wire_size<std::uint32_t, std::uint32_t, A...>()>{};
      } else {
        return std::vector<std::byte>(wire_size(part.slot, part.generation, args...));
      }
    };
    auto payload = room();
    orrery::writer w(payload);
    orrery::write(w, part.slot, part.generation, args...);
    self.links().send_control(c, wire::record_kind::message, wire::no_slot, 0, 0, payload.data(), payload.size(),
                              c.remote ? h.index : reinterpret_cast<std::uint64_t>(&h));
  } catch (const std::exception&) {  // its node is gone: the part hears of that in pes_lost
  }
}

}  // namespace

const collective group_part::barrier{"barrier", [](pe&, group_part& p) {
                                       p.exchanging_ = true;
                                       p.round_ = 0;
                                       if (!p.received_.empty()) p.signal(0);
                                       p.exchange();
                                     }};

void group_part::signal(std::uint32_t round) {
  self_.take_order(order_of(completed_));
  const auto& parts = group_.data().parts;
  const std::size_t to = (index_ + (std::size_t{1} << round)) % parts.size();
  tell_part<&part_barrier>(self_, parts[to].at, round, completed_);
}

void group_part::exchange() {
  const auto rounds = static_cast<std::uint32_t>(received_.size());
  while (round_ < rounds && received_[round_] > barriers_)
    if (++round_ < rounds) signal(round_);
  if (round_ < rounds) return;
  ++barriers_;
  release(false);
}

void group_part::hear(std::uint64_t number, const collective& what) noexcept {
  if (number < completed_) return;
  self_.give_order(order_of(number));
  if (const collective* other = order_.note(number, what)) disagree(number, *other, what);
}

void group_part::disagree(std::uint64_t number, const collective& one, const collective& other) noexcept {
  if (broken_ != nullptr) return;
  try {
    const std::string text = disagreement(one, other);
    broken(number, disagreement_error(text));
    for (const auto& p : group_.data().parts)
      if (p.at != at_) tell_part<&part_disagrees>(self_, p.at, number, text);
  } catch (const std::exception&) {
    broken(number, std::current_exception());
  }
}

void group_part::barrier_message(std::uint32_t round, std::uint64_t number) {
  if (round >= received_.size()) return;
  hear(number, barrier);
  ++received_[round];
  if (exchanging_ && round == round_) exchange();
}

void group_part::member_gone(std::uint32_t rank) noexcept {
  if (broken_ == nullptr && !self_.stopping()) hear_of_end(completed_, rank);
}

// Each part tells those 1, 2, 4, ... behind it, once: all hear of it in log2 of their number steps,
// also if one of them has ended, as that one told the same when its members did. If each part told
// all, a group that is destroyed would send the square of their number.
void group_part::hear_of_end(std::uint64_t number, std::uint32_t rank) noexcept {
  if (rank >= group_.size() || (broken_ != nullptr && broken_from_ <= number)) return;
  const group_data& d = group_.data();
  try {
    broken(number, std::make_exception_ptr(
                       process_gone(fmt::format("member {} of the group, at {}", rank, to_string(d.members[rank])))));
  } catch (const std::exception&) {
    broken(number, std::current_exception());
  }
  for (std::size_t step = 1; step < d.parts.size(); step *= 2)
    tell_part<&part_broken>(self_, d.parts[(index_ + step) % d.parts.size()].at, number, rank);
}

void group_part::pes_lost(pe& self) noexcept {
  if (!group_) return;
  for (const auto& p : group_.data().parts)
    if (!self.owner().reachable(p.at.pe)) {
      broken(completed_, std::make_exception_ptr(node_lost(fmt::format("a group with members on PE {}", p.at.pe))));
      return;
    }
}

void group_part::cancel_waits(pe&) noexcept {
  broken_ = nullptr;
  broken(completed_, make_error(errc::stopped, what_ != nullptr ? what_->name : ""));
}

std::string group_part::explain_waits() const {
  std::string text;
  for (const broadcast_base* b = outstanding; b != nullptr; b = b->next) {
    if (b->failed == group_data::none || b->left == 0) continue;
    std::string why = "an exception";
    try {
      std::rethrow_exception(b->error);
    } catch (const std::exception& e) {
      why = e.what();
    } catch (...) {
    }
    text += fmt::format("  {} of {} members on this PE have not ended {}::{}, which failed at member {}: {}\n", b->left,
                        members_.size(), b->method->class_name, b->method->method,
                        b->failed & ~group_data::after_another, why);
  }
  return text;
}

// --- broadcasts ----------------------------------------------------------------------------------

broadcast_base::broadcast_base(group_part& p, const scheduler::handler& h, const scheduler::handler& member) noexcept
    : part(&p), method(&h), member_method(&member) {
  dropped.of = this;
  dropped.method = &h;
  dropped.on_done = [](pe& self, scheduler::sink& s) {
    broadcast_base& b = *static_cast<drop_sink&>(s).of;
    std::size_t i = 0;
    while (i + 1 < b.part->members().size() && b.part->find(i) != nullptr) ++i;
    if (!b.forgives) b.fail(i, std::exchange(s.error, nullptr));
    b.one_done(self);
  };
}

broadcast_base::~broadcast_base() {
  kept.release();
  if (left == 0) return;  // not in the list any more
  if (previous != nullptr) {
    previous->next = next;
  } else if (part->outstanding == this) {
    part->outstanding = next;
  }
  if (next != nullptr) next->previous = previous;
}

void broadcast_base::keep(scheduler::delivery& d) noexcept {
  d.leave_ring();
  kept = d;
  d.heap = nullptr;
  d.payload = nullptr;
}

void broadcast_base::fan_out(pe& self, std::uint32_t argument_bytes, bool constructs) noexcept {
  constexpr std::size_t message_bytes = 64;
  births = constructs;
  // Parts end before what waits until their PE is idle does.
  if (level == wire::record_kind::background && self.shutdown().stage() != scheduler::shutdown_stage::running)
    level = wire::record_kind::message;
  next = part->outstanding;
  if (next != nullptr) next->previous = this;
  part->outstanding = this;
  const std::size_t n = part->members().size();
  charged = static_cast<std::uint32_t>(
      std::min<std::size_t>((n * message_bytes + argument_bytes) / scheduler::charge_unit, 1 << 24));
  if (slot* s = self.find(part->at().slot, part->at().generation)) s->charge += charged;
  left = static_cast<std::uint32_t>(n) + 1;
  for (std::size_t i = 0; i < n; ++i) {
    slot* s = part->find(i);
    if (s == nullptr) {
      if (!forgives)
        fail(i, std::make_exception_ptr(process_gone(fmt::format("{}::{} at member {} of the group", method->class_name,
                                                                 method->method, part->members()[i].rank))));
      --left;
      continue;
    }
    scheduler::message* m = nullptr;
    try {
      m = self.allocate_message(sizeof(message_payload));
    } catch (const std::bad_alloc&) {
      fail(i, std::current_exception());
      if (constructs) self.free_slot(*s);
      --left;
      continue;
    }
    const message_payload payload{this, i};
    std::memcpy(m->payload(), &payload, sizeof payload);
    m->source_pe = self.id();
    write_envelope(m->head, self.address_of(*s), *member_method, wire::payload_form::refs, &dropped, 0);
    if (constructs) {
      // Before what peers that were constructed sooner have sent.
      s->push_front(m);
      s->charge += m->charge();
      self.make_runnable(*s);
    } else if (level != wire::record_kind::message) {
      self.push_at(level, *s, m);
    } else {
      self.push(*s, m);
    }
  }
  one_done(self);
}

void broadcast_base::fail(std::size_t index, std::exception_ptr why) noexcept {
  std::uint32_t rank = part->members()[index].rank;
  if (births && part->is_broken() && is_process_gone(why)) rank |= group_data::after_another;
  if (rank >= failed) return;
  failed = rank;
  error = as_received(why, scheduler::where_is(method, here_pe().id()));
}

namespace {

void end_part(pe& self, slot& s) noexcept {
  if (s.depth == 0) {
    self.destroy(s);
  } else {  // it is handing something on: when it is done
    s.dying = true;
  }
}

}  // namespace

void broadcast_base::one_done(pe& self) noexcept {
  self.give_order(this);
  if (--left != 0) return;
  self.take_order(this);
  self.forget_order(this);
  (previous != nullptr ? previous->next : part->outstanding) = next;
  if (next != nullptr) next->previous = previous;
  const address at = part->at();
  if (slot* s = self.find(at.slot, at.generation)) {
    s->charge -= charged;
    if (s->has_extra) self.flow().made_room_if_low(*s);
  }
  if (ends_part) part->ending = true;
  answer(self);
  if (const group_part* p = find_part(self, at.slot, at.generation);
      p != nullptr && p->ending && p->outstanding == nullptr)
    end_part(self, *self.find(at.slot, at.generation));
}

void broadcast_base::forget_messages(pe& self) noexcept {
  for (std::size_t i = 0; i < part->members().size(); ++i) {
    slot* s = part->find(i);
    if (s == nullptr) continue;
    const auto forget = [&](scheduler::message* before, scheduler::message* m) {
      message_payload payload{};
      if (m->head.handler == reinterpret_cast<std::uint64_t>(member_method))
        std::memcpy(&payload, m->payload(), sizeof payload);
      if (payload.of != this) return false;
      self.release_message(s->unlink_after(before));
      return true;
    };
    while (s->search(forget)) {
    }
  }
}

void check_not_inside(pe& self, const group_data& d, const scheduler::handler& h) {
  const group_data::part* p = d.on(self.id());
  if (p == nullptr) return;
  group_part* part = find_part(self, p->at.slot, p->at.generation);
  if (part == nullptr) return;
  for (const scheduler::activation* a = self.active(); a != nullptr; a = a->below) {
    if (a->process->cls() == nullptr || a->process->is_function || a->process->cls()->reentrant) continue;
    if (part->index_of(*a->process) == part->members().size()) continue;
    throw deadlock_error(fmt::format("{} -> {}::{} (a member calls its own group and waits; use start or post)",
                                     a->method != nullptr
                                         ? fmt::format("{}::{}", a->method->class_name, a->method->method)
                                         : std::string("(constructor)"),
                                     h.class_name, h.method));
  }
}

bool wait_for_members(pe& self, address at) {
  slot* s = self.find(at.slot, at.generation);
  if (s == nullptr) return false;
  if (!self.flow().over_limit(*s)) return true;
  // Otherwise messages that a waiting member was to empty would wait with it.
  group_part* part = find_part(self, at.slot, at.generation);
  for (const scheduler::activation* a = self.active(); a != nullptr; a = a->below)
    if (part != nullptr && part->index_of(*a->process) != part->members().size()) {
      self.flow().excess().took_more(*s);
      return true;
    }
  (void)self.flow().wait_for_room(*s);
  return self.find(at.slot, at.generation) != nullptr;
}

}  // namespace orrery::detail
