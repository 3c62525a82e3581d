// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/core_records.hpp>
#include <orrery/array/detail/section_core.hpp>
#include <orrery/array/target.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace orrery::detail {

namespace {

slot* route_empty_partial(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  return route_partial(self, d, e, size, nullptr);
}
slot* route_start(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  array_core* part = array_directory::of(self).find(e.slot);
  const sequence_number number{e.generation};
  const activity_end arrived(part);
  d.release();
  if (part != nullptr) part->receive_start(number);
  return nullptr;
}
slot* route_empty_pes(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t) noexcept {
  array_core* part = array_directory::of(self).find(e.slot);
  const std::uint32_t from = d.source_pe;
  const activity_end arrived(part);
  d.release();
  if (part != nullptr) part->receive_empty_pes(from);
  return nullptr;
}

const control_handler empty_partial_handler{"partial result", &route_empty_partial};
const control_handler start_handler{"reduction begins", &route_start};
const control_handler empty_pes_handler{"no elements", &route_empty_pes};

}  // namespace

const control_handler reduction_result{"result of a reduction", &refuse_route};

slot* route_partial(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                    accumulator_reader read) noexcept {
  try {
    array_core* part = array_directory::of(self).find(e.slot);
    const activity_end arrived(part);
    auto payload = wire_payload(d, e, size);
    orrery::reader r(payload);
    const auto p = orrery::read<partial_result>(r);
    wire::unique_ptr<reduction_target> target;
    if (p.has_target) target = wire::make_unique<reduction_target>(orrery::read<reduction_target>(r));
    wire::unique_ptr<accumulator> value;
    std::exception_ptr error;
    if (p.failed) {
      orrery::reader of_error(after_section(payload, r));
      error = decode_exception(orrery::read<wire_exception>(of_error), {"(array)", "reduction", d.source_pe});
    } else if (read != nullptr) {
      try {
        value = read(after_section(payload, r));
      } catch (...) {
        // of the value's serialize(): that ends the reduction, as it would where it is written
        error = std::current_exception();
      }
    }
    const std::uint32_t array = e.slot;
    d.release();  // its sender may write there again
    if (part == nullptr) {
      const std::string_view name = array_directory::of(self).name_of_gone(array);
      fail_unfinished(self, name.empty() ? "an array" : std::string(name), target.get());
    } else if (p.section == 0) {
      part->receive_partial(p, std::move(value), std::move(target), std::move(error));
    } else if (section_core* s = part->find_section(p.section)) {
      s->receive(p, std::move(value), std::move(target), std::move(error));
    } else {
      fail_unfinished(self, "a section of " + part->about().name, target.get());
    }
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}

open_reduction& array_core::open(sequence_number number) {
  // Mostly the newest.
  for (auto it = records_->open.rbegin(); it != records_->open.rend(); ++it)
    if (it->number == number) return *it;
  const auto at = std::ranges::find_if(records_->open, [&](const open_reduction& r) { return r.number > number; });
  open_reduction& r = *records_->open.emplace(at);
  r.number = number;
  r.here_done = number <= done_;
  // the first one hears of it
  if (lossy_ && !cells_.empty()) r.have = static_cast<std::uint32_t>(cells_.size()) - 1;
  for (const child& c : children_) {
    if (c.done >= number) continue;
    ++r.children_left;
    if (c.has_empty_pes) start_at(c, number);
  }
  return r;
}

void array_core::start_at(const child& c, sequence_number number) {
  begins();
  tell(self_, c.pe, start_handler, id(), number.value, {});
}

void array_core::leave_reductions(const cell_base& c) {
  take_out(c);
  for (open_reduction& r : records_->open)
    if (!r.here_done && r.number <= c.reductions) --r.have;
  if (cells_.empty()) tell_of_empty_pes();
}

void array_core::complete_here() {
  if (lossy_) {
    fail_lost_reductions();
    return;
  }
  if (ends_ || shares_ != 0) return;
  bool any = false;
  for (open_reduction& r : records_->open) {
    if (r.here_done) continue;
    if (r.number != done_.next() || r.have != cells_.size()) break;
    r.here_done = true;
    any = true;
    r.births += births_;
    for (const auto& [last, count] : records_->departed_contributions)
      if (last >= r.number) r.births += count;
    done_ = r.number;
    std::erase_if(records_->departed_contributions, [&](const auto& g) { return g.first <= done_; });
  }
  if (any) pass_on();
}

void array_core::pass_on() {
  if (ends_) return;
  while (!records_->open.empty()) {
    // At the root late values can be for reductions that are through here; elsewhere the first is
    // always the next.
    const auto at = std::ranges::find(records_->open, passed_.next(), &open_reduction::number);
    if (at == records_->open.end() || !at->here_done || at->children_left != 0) break;
    passed_ = at->number;
    if (self_.id() == about_.root) {
      at->tree_done = true;
      finish(*at);
      continue;
    }
    told_of_empty_pes_ = has_empty_pes();
    const partial_result p{0,          at->number, self_.id(),         at->contributions,
                           at->births, false,      told_of_empty_pes_, at->target != nullptr,
                           false};
    send_partial(self_, parent_, id(), p, at->value.get(), at->target.get(), at->error);
    records_->open.erase(at);
  }
}

void send_partial(pe& self, std::uint32_t to, std::uint32_t array, partial_result p, const accumulator* a,
                  const reduction_target* target, std::exception_ptr error) {
  const auto head = [&] { return target != nullptr ? pack(0, p, *target) : pack(0, p); };
  bytes b;
  if (error == nullptr) try {
      b = head();
      if (a != nullptr) a->append_to(b);
    } catch (...) {  // of the value's serialize(): nobody may wait for what was counted here
      error = std::current_exception();
    }
  if (error != nullptr) {
    p.failed = true;
    a = nullptr;
    b = head();
    pack_after(b, encode_exception(error));
  }
  if (array_core* part = array_directory::of(self).find(array)) part->begins();
  tell(self, to, a != nullptr ? a->handler() : empty_partial_handler, array, 0, b);
}

void array_core::send_late(sequence_number number, std::uint64_t contributions, std::int64_t births,
                           wire::unique_ptr<accumulator> a, const reduction_target* target) {
  const partial_result p{0, number, self_.id(), contributions, births, true, false, target != nullptr, false};
  send_partial(self_, about_.root, id(), p, a.get(), target);
}

void array_core::receive_partial(const partial_result& p, wire::unique_ptr<accumulator> value,
                                 wire::unique_ptr<reduction_target> target, std::exception_ptr error) {
  open_reduction& r = open(p.number);
  r.contributions += p.contributions;
  r.births += p.births;
  if (r.target == nullptr) r.target = std::move(target);
  add_up(r, std::move(value), std::move(error));
  if (p.late) {
    if (r.tree_done) finish(r);
    complete_here();  // it may be the first that this PE hears of it
    return;
  }
  for (child& c : children_) {
    if (c.pe != p.child) continue;
    c.done = p.number;
    c.has_empty_pes = p.has_empty_pes;
  }
  --r.children_left;
  complete_here();
  pass_on();
}

void array_core::receive_start(sequence_number number) {
  if (number <= done_) return;
  (void)open(number);
  complete_here();
}

bool array_core::has_empty_pes() const noexcept {
  return cells_.empty() || std::ranges::any_of(children_, &child::has_empty_pes);
}

void array_core::tell_of_empty_pes() {
  if (told_of_empty_pes_ || self_.id() == about_.root) return;
  told_of_empty_pes_ = true;
  begins();
  tell(self_, parent_, empty_pes_handler, id(), 0, {});
}

void array_core::receive_empty_pes(std::uint32_t pe) {
  for (child& c : children_) {
    if (c.pe != pe) continue;
    c.has_empty_pes = true;
    for (const open_reduction& r : records_->open)
      if (r.number > c.done) start_at(c, r.number);
  }
  tell_of_empty_pes();
}

std::string array_core::explain_waits() const {
  constexpr std::size_t most = 3;
  std::string text;
  for (const open_reduction& r : records_->open) {
    std::vector<std::string> missing;
    for (const cell_base* c : cells_)
      if (c->reductions < r.number && missing.size() <= most) missing.push_back(text_of(*c));
    text += fmt::format("  reduction {} of {}: {} of {} elements here have contributed", r.number.value, about_.name,
                        r.have, cells_.size());
    if (missing.size() > most) missing.back() = "more";
    if (!missing.empty()) text += fmt::format(", but not {}", fmt::join(missing, ", "));
    text += '\n';
  }
  for (const auto& [id, s] : records_->sections) text += s->explain_waits(about_.name);
  for (const auto& [element, messages] : early_waits(most))
    text += fmt::format("  {} message{} for {}, which was not created yet\n", messages,
                        messages == 1 ? " waits" : "s wait", element);
  return text;
}

void array_core::give_up_end() {
  ends_ = false;
  tell_ends();
  for (const records::late_leave& l : std::exchange(records_->late_leaves, {}))
    leave_section(*this, l.of.home, l.of, l.index);
  complete_here();
  pass_on();
  std::vector<sequence_number> through;  // at the root: what came late may have been all
  for (const open_reduction& r : records_->open)
    if (r.tree_done) through.push_back(r.number);
  for (const sequence_number n : through) finish(open(n));
}

void array_core::fail_reductions() noexcept {
  for (const open_reduction& r : std::exchange(records_->open, {})) fail_unfinished(self_, about_.name, r.target.get());
  for (const auto& [id, s] : records_->sections) s->fail_reductions(about_.name);
}

// Some elements were lost: reductions do not end, and callers that wait for a result are told.
// Other targets were reported with the loss.
void array_core::fail_lost_reductions() noexcept {
  for (const open_reduction& r : std::exchange(records_->open, {})) answer_lost(self_, about_.name, r.target.get());
}

void answer_lost(pe& self, const std::string& name, const reduction_target* target) noexcept {
  if (target != nullptr && target->what == reduction_target::kind::call)
    answer_error(self, target->call, &reduction_result,
                 make_error(errc::node_lost, fmt::format("a reduction of {}: elements were lost", name)));
}

void report_lost(pe& self, const std::string& name, const open_reduction& r) noexcept {
  if (r.contributions != 0)
    self.failures().report(fmt::format("reduction {} of {}", r.number.value, name),
                           make_error(errc::node_lost, "some elements were lost before they contributed"));
}

void array_core::pes_lost() noexcept {
  lossy_ = true;
  for (const open_reduction& r : records_->open) report_lost(self_, about_.name, r);
  fail_lost_reductions();
  for (const auto& [id, s] : records_->sections) s->elements_lost(about_.name);
  const std::vector<cell_base*> here = cells_;
  for (const cell_base* c : here)
    if (c->sections != nullptr)
      for (membership& m : *c->sections) release_early(m);
}

// At the root: when everybody has contributed who had to.
void array_core::finish(open_reduction& r) noexcept {
  if (ends_ || static_cast<std::int64_t>(r.contributions) != r.births) return;
  const wire::unique_ptr<accumulator> value = std::move(r.value);
  const wire::unique_ptr<reduction_target> target = std::move(r.target);
  const std::exception_ptr error = std::move(r.error);
  records_->open.erase(std::ranges::find(records_->open, r.number, &open_reduction::number));
  deliver_reduction(self_, value.get(), target.get(), error);
}

section_core* array_core::find_section(std::uint64_t id) const noexcept {
  const auto it = records_->sections.find(id);
  return it != records_->sections.end() ? it->second : nullptr;
}

void array_core::add_section(std::uint64_t id, section_core& s) { records_->sections.emplace(id, &s); }

void array_core::remove_section(std::uint64_t id) noexcept { records_->sections.erase(id); }

std::size_t array_core::open_reductions() const noexcept { return records_->open.size(); }

void array_core::leave_if_it_stays(membership m, bytes index) {
  records_->late_leaves.push_back({std::move(m), std::move(index)});
}

}  // namespace orrery::detail
