// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/group_part.hpp>

#include <orrery/process/detail/broadcast_base.hpp>
#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/detail/tell_part.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <bit>

#include <fmt/format.h>

namespace orrery::detail {

group_part* find_part(pe& self, std::uint32_t index, std::uint32_t generation) noexcept {
  slot* s = self.find(index, generation);
  return s != nullptr ? object_in<group_part>(*s) : nullptr;
}

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
  inside_.assign(members_.size(), 0);
  received_.assign(static_cast<std::size_t>(std::bit_width(d.parts.size() - 1)), 0);
  group_ = g;
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
  pe& self = self_;
  self.require_process();
  if (self.refusing()) self.shutdown().refuse(what.name);
  if (inside_[a.index] != 0)
    throw usage_error(errc::bad_argument,
                      fmt::format("{}: called while another method of this member waits in one", what.name));
  if (broken_ != nullptr && completed_ >= broken_from_) std::rethrow_exception(broken_);
  if (const collective* other = order_.note(completed_, what); other != nullptr) [[unlikely]] {
    disagree(completed_, *other, what);
    std::rethrow_exception(broken_);
  }
  what_ = &what;
  const void* const order = order_of(completed_);
  const address own = at_;
  inside_[a.index] = 1;
  self.order().give(order);
  if (last_ != nullptr) {
    last_->next = &a;
  } else {
    first_ = &a;
  }
  last_ = &a;
  if (++arrived_ == members_.size()) {
    self.order().take(order);  // what it sends is of all
    const auto is_there = [&] { return find_part(self, own.slot, own.generation) == this; };
    try {
      what.all_here(self, *this);
    } catch (const node_lost&) {  // other parts hear of that by themselves
      if (is_there()) broken(completed_, std::current_exception());
    } catch (const stopped&) {
      if (is_there()) broken(completed_, std::current_exception());
    } catch (...) {  // a message could not be made: nobody will get any further
      if (is_there()) broken_everywhere(std::current_exception());
    }
  }
  while (!a.done) {
    a.waiter = self.running();
    a.waiter->waits_in = what.name;
    self.park();
    self.running()->waits_in = nullptr;
  }
  self.order().take(order);
  if (a.failed != nullptr) std::rethrow_exception(a.failed);
}

void group_part::release(bool failed) noexcept {
  self_.order().give(order_of(completed_));
  // Those of the one before have gone on: they are in this one.
  self_.order().forget(order_of(completed_ - 1));
  arrival* a = std::exchange(first_, nullptr);
  last_ = nullptr;
  arrived_ = 0;
  exchanging_ = false;
  ++completed_;
  while (a != nullptr) {
    arrival* next = a->next;  // it lies on the stack of one that may go on
    if (failed) a->failed = broken_;
    inside_[a->index] = 0;
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

void part_failed(std::uint32_t index, std::uint32_t generation, std::uint64_t number, const wire_exception& why,
                 std::uint32_t at_pe) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->hear_of_failure(number, why, at_pe);
}

void part_broken(std::uint32_t index, std::uint32_t generation, std::uint64_t number, std::uint32_t rank) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->hear_of_end(number, rank);
}

void part_watches(std::uint32_t index, std::uint32_t generation) {
  if (group_part* p = find_part(here_pe(), index, generation)) p->watch_members();
}

/// A member whose class does not tell of its end, as that of spawn_group does.
struct member_watch final : end_watch {
  address part;
  std::uint32_t rank;

  member_watch(const address& of, std::uint32_t r) noexcept : part(of), rank(r) {
    end = [](pe& self, end_watch* w, const ending* e) noexcept {
      const wire::unique_ptr<member_watch> own(static_cast<member_watch*>(w));
      if (e == nullptr) return;
      if (group_part* p = find_part(self, own->part.slot, own->part.generation)) p->member_gone(own->rank);
    };
  }
};

}  // namespace

const collective group_part::barrier{"barrier", [](pe&, group_part& p) {
                                       p.exchanging_ = true;
                                       p.round_ = 0;
                                       if (!p.received_.empty()) p.signal(0);
                                       p.exchange();
                                     }};

void group_part::signal(std::uint32_t round) {
  self_.order().take(order_of(completed_));
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
  self_.order().give(order_of(number));
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

void group_part::broken_everywhere(const std::exception_ptr& why) noexcept {
  const std::uint64_t number = completed_;
  if (broken_ != nullptr && broken_from_ <= number) return;
  broken(number, why);
  tell_failure(number, encode_exception(why), at_.pe);
}

void group_part::hear_of_failure(std::uint64_t number, const wire_exception& why, std::uint32_t at_pe) noexcept {
  if (broken_ != nullptr && broken_from_ <= number) return;
  try {
    broken(number, decode_exception(why, {"(group)", "a collective", at_pe}));
  } catch (const std::exception&) {
    broken(number, std::current_exception());
  }
  tell_failure(number, why, at_pe);
}

// As hear_of_end does: all parts may have failed.
void group_part::tell_failure(std::uint64_t number, const wire_exception& why, std::uint32_t at_pe) noexcept {
  const group_data& d = group_.data();
  for (std::size_t step = 1; step < d.parts.size(); step *= 2)
    tell_part<&part_failed>(self_, d.parts[(index_ + step) % d.parts.size()].at, number, why, at_pe);
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

void group_part::watch_members() {
  if (std::exchange(watching_, true)) return;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    slot* const s = find(i);
    if (s == nullptr) {
      member_gone(members_[i].rank);
      continue;
    }
    auto w = wire::make_unique<member_watch>(at_, members_[i].rank);
    local_waits::of(self_).ends().add(*s, self_.address_of(*s), *w);
    w.release();
  }
  const group_data& d = group_.data();
  for (std::size_t step = 1; step < d.parts.size(); step *= 2)
    tell_part<&part_watches>(self_, d.parts[(index_ + step) % d.parts.size()].at);
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
    text += fmt::format("  {} of {} members on this PE have not ended {}::{}, which failed at member {}: {}\n", b->left,
                        members_.size(), b->method->class_name, b->method->method,
                        b->failed & ~group_data::after_another, scheduler::text_of(b->error));
  }
  if (last_failure.method != nullptr && last_failure.before == completed_ && broken_ == nullptr)
    text += fmt::format("  {}::{} failed at member {}, and no barrier of the group has ended since: {}\n",
                        last_failure.method->class_name, last_failure.method->method, last_failure.rank,
                        scheduler::text_of(last_failure.error));
  return text;
}

}  // namespace orrery::detail
