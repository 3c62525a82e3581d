// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/core_records.hpp>

#include <orrery/array/detail/activity.hpp>

#include <orrery/process/runtime.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/transport/wait.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

// The elements of a PE, and counts. Broadcasts: core_broadcast.cpp; reductions:
// core_reduction.cpp.
namespace orrery::detail {

constinit sequence_number before_first;

namespace {

const control_handler end_of_elements{"destructors of elements",
                                      &refuse_route};  // what it is called that is waited for

}  // namespace

array_core::array_core(pe& self, description s)
    : self_(self), about_(std::move(s)), records_(wire::make_unique<records>()) {
  if (!about_.pes.contains(about_.root) || !about_.pes.contains(self.id()))
    throw bad_message(errc::message_corrupt, "the description of an array");
  if (self.id() != about_.root) parent_ = about_.parent_of(self.id());
  for (const std::uint32_t c : about_.children_of(self.id())) children_.push_back({c});
}

bool array_core::find_losses() noexcept {
  std::vector<std::uint32_t>& lost = records_->lost;
  const std::size_t before = lost.size();
  for (std::uint32_t r = 0; r < about_.pes.count(); ++r) {
    const std::uint32_t pe = about_.pes.at(r);
    if (!self_.owner().reachable(pe) && std::ranges::find(lost, pe) == lost.end()) lost.push_back(pe);
  }
  return lost.size() != before;
}

void array_core::require_whole(const char* what) const {
  if (!records_->lost.empty()) [[unlikely]]
    throw node_lost(fmt::format("{} of {}, of which a part was on PE {}", what, about_.name, records_->lost.front()));
}

array_core::~array_core() {
  for (broadcast_record* r : records_->past) release(r);
}

void array_core::fetch(int step) const noexcept {
  constexpr std::size_t lines = 16;  // of this object with what the part adds
  constexpr std::size_t most_cells = 12;  // a PE with many elements is in a world of few PEs
  switch (step) {
    case 0:
      scheduler::fetch_lines(this, lines);
      return;
    case 1:
      scheduler::fetch_lines(cells_.data(), std::min(cells_.size(), most_cells) * sizeof(cell_base*) / 64 + 1);
      scheduler::fetch_lines(children_.data(), 1);
      scheduler::fetch_lines(records_.get(), 4);
      return;
    default:
      for (std::size_t i = 0; i < std::min(cells_.size(), most_cells); ++i) scheduler::fetch_lines(cells_[i], 2);
  }
}

// --- who lives here ------------------------------------------------------------------------------

void array_core::begin_share() {
  if (shares_++ == 0) before_shares_ = received_;
  begins();
}

void array_core::end_share() {
  over();
  if (--shares_ != 0) return;
  pass_acks();
  complete_here();
}

void array_core::born(cell_base& c) {
  const bool of_range = shares_ != 0 && c.birth == 0;
  c.part = this;
  c.broadcasts = of_range ? before_shares_ : received_;
  c.reductions = done_;
  c.position = static_cast<std::uint32_t>(cells_.size());
  cells_.push_back(&c);
  ++births_;
  if (received_ != c.broadcasts) catch_up(c);
}

void array_core::arrived(cell_base& c) {
  c.part = this;
  c.position = static_cast<std::uint32_t>(cells_.size());
  cells_.push_back(&c);
  over();
  if (lossy_ && c.sections != nullptr)
    for (membership& m : *c.sections) release_early(m);
  if (c.broadcasts < received_) catch_up(c);
  if (c.reductions <= done_) return;
  // It may be the first that this PE hears of them, and the last: all that live here may have
  // contributed elsewhere.
  for (sequence_number n = done_.next(); n <= c.reductions; n = n.next()) ++open(n).have;
  complete_here();
}

void array_core::catch_up(cell_base& c) {
  assert(low_ <= c.broadcasts);
  for (broadcast_record* r : records_->past) {
    if (r->number <= c.broadcasts) continue;
    post_to(c, *r);
    c.broadcasts = r->number;
  }
  c.broadcasts = received_;  // the last ones could not be read here
}

std::vector<pending_broadcast> array_core::pack_broadcasts(scheduler::message*& mailbox) {
  std::vector<pending_broadcast> all;
  for (scheduler::message** at = &mailbox; *at != nullptr;) {
    scheduler::message* m = *at;
    const auto* h = reinterpret_cast<const scheduler::handler*>(m->head.handler);
    if (h->route == nullptr || !static_cast<const array_handler*>(h)->is_member) {
      at = &m->next;
      continue;
    }
    *at = m->next;
    broadcast_record* r = nullptr;
    std::memcpy(&r, m->payload(), sizeof r);
    self_.messages().release(m);
    try {
      pending_broadcast b{r->method->index, {}};
      r->append_arguments(b.arguments);
      all.push_back(std::move(b));
    } catch (...) {  // the element has to go all the same
      self_.failures().report_post(r->member, std::current_exception());
    }
    executed(r);
  }
  return all;
}

void array_core::unpack_broadcasts(cell_base& c, const std::vector<pending_broadcast>& all) noexcept {
  for (const pending_broadcast& b : all) {
    const scheduler::handler* const h = scheduler::find_handler(b.method);
    try {
      if (h == nullptr || h->route == nullptr || static_cast<const array_handler*>(h)->decode == nullptr)
        throw bad_message(errc::unknown_handler, "a broadcast that came with an element");
      auto r = static_cast<const array_handler*>(h)->decode(b.arguments);
      r->part = this;
      r->holders = r->left = 1;
      post_to(c, *r);
      begins();
      executed(r.release());
    } catch (...) {  // the element has come all the same
      self_.failures().report_post(h, std::current_exception());
    }
  }
}

void array_core::departed(cell_base& c, std::uint32_t to) {
  begins();  // until it arrives
  leave_reductions(c);
  if (std::ranges::find(records_->departed_to, to) == records_->departed_to.end()) records_->departed_to.push_back(to);
  complete_here();
}

void array_core::died(cell_base& c) {
  --births_;
  leave_reductions(c);
  if (c.reductions > done_) {
    const auto it = std::ranges::find(records_->departed_contributions, c.reductions,
                                      &std::pair<sequence_number, std::uint32_t>::first);
    if (it != records_->departed_contributions.end()) {
      ++it->second;
    } else {
      records_->departed_contributions.emplace_back(c.reductions, 1);
    }
  }
  // what follows may go on with the next ones, where it does not count any more
  const sequence_number through = done_;
  for (sequence_number n = c.reductions.next(); n <= through; n = n.next()) send_late(n, 0, -1, nullptr, nullptr);
  complete_here();
}

void array_core::wait_for_ends() {
  while (ending_ != 0) wait_for_news_of_ends();
}

// As a call, so that a world in which nothing else happens is seen to be dead.
void array_core::wait_for_news_of_ends() {
  typed_sink<void> k;
  prepare(k, self_, address{}, end_of_elements);
  expected_answer news(array_directory::of(self_).waits(), k, id());
  records_->wait_for_ends.push_back(news.call());
  news.sent();
  self_.wait(k);
  try {
    k.take();
  } catch (const node_lost&) {  // which has nothing to do with it
  }
}

void array_core::tell_ends() noexcept {
  for (const std::uint64_t call : std::exchange(records_->wait_for_ends, {}))
    answer_value(self_, {self_.id(), call}, {});
}

void array_core::report_ended(const cell_base& c, const char* what) const noexcept {
  try {
    self_.failures().report(
        fmt::format("the destructor of {} {}, which an element that has ended cannot; do it in a method before",
                    text_of(c), what),
        nullptr);
  } catch (...) {
    self_.failures().report("a destructor of an element", std::current_exception());
  }
}

}  // namespace orrery::detail
