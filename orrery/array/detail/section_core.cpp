// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/section_core.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

// A member that has ended.
struct end_of_member {
  std::uint64_t section = 0;
  sequence_number contributed;
};
struct end_of_child {
  std::uint64_t section = 0;
  std::uint32_t child = 0;
  sequence_number after;
};

std::string name_of_section(const std::string& array) { return "a section of " + array; }

section_core* section_of(pe& self, std::uint32_t array, std::uint64_t id) noexcept {
  const array_core* part = array_directory::of(self).find(array);
  return part != nullptr ? part->find_section(id) : nullptr;
}

slot* route_left(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  try {
    const auto payload = wire_payload(d, e, size);
    orrery::reader r(payload);
    const activity_end arrived(array_directory::of(self).find(e.slot));
    const auto m = orrery::read<end_of_member>(r);
    orrery::reader index(after_section(payload, r));
    if (section_core* s = section_of(self, e.slot, m.section)) s->left(m.contributed, index);
    d.release();
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}
slot* route_ended(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
  try {
    orrery::reader r(wire_payload(d, e, size));
    const activity_end arrived(array_directory::of(self).find(e.slot));
    const auto end = orrery::read<end_of_child>(r);
    const std::uint32_t array = e.slot;
    d.release();  // its sender may write there again
    if (section_core* s = section_of(self, array, end.section)) s->child_ended(end.child, end.after);
  } catch (...) {
    d.fail(std::current_exception());
  }
  return nullptr;
}

const control_handler left_handler{"a member has ended", &route_left};
const control_handler ended_handler{"no members left", &route_ended};

}  // namespace

section_core::section_core(pe& self, description s, std::size_t members)
    : self_(self), about_(std::move(s)), alive_(members) {
  array_core* part = array_directory::of(self).find(about_.array);
  if (part == nullptr) throw process_gone(fmt::format("array {}, of which a section was made", about_.array));
  for (const std::uint32_t c : about_.children) children_.push_back({c});
  part->add_section(about_.id, *this);
}

void section_core::elements_lost(const std::string& array) noexcept {
  for (const open_reduction& r : open_) report_lost(self_, name_of_section(array), r);
  fail_lost_reductions(array);
}

void section_core::fail_lost_reductions(const std::string& array) noexcept {
  for (const open_reduction& r : std::exchange(open_, {})) answer_lost(self_, name_of_section(array), r.target.get());
}

section_core::~section_core() {
  array_core* part = array_directory::of(self_).find(about_.array);
  if (part == nullptr) return;
  part->remove_section(about_.id);
  fail_reductions(part->about().name);
}

void section_core::fail_reductions(const std::string& array) noexcept {
  for (const open_reduction& r : std::exchange(open_, {}))
    fail_unfinished(self_, name_of_section(array), r.target.get());
}

open_reduction& section_core::open(sequence_number number) {
  const auto at = std::ranges::lower_bound(open_, number, {}, &open_reduction::number);
  if (at != open_.end() && at->number == number) return *at;
  open_reduction& r = *open_.emplace(at);
  r.number = number;
  for (const child& c : children_) r.children_left += c.done < number && !(c.has_ended && c.ended < number) ? 1 : 0;
  return r;
}

std::uint64_t section_core::expected(sequence_number number) const noexcept {
  std::uint64_t n = alive_;
  for (const auto& [last, count] : departed_contributions_) n += last >= number ? count : 0;
  return n;
}

void section_core::receive(const partial_result& p, wire::unique_ptr<accumulator> value,
                           wire::unique_ptr<reduction_target> target, std::exception_ptr error) {
  if (p.number <= passed_) throw bad_message(errc::message_corrupt, "a contribution to a reduction that is over");
  open_reduction& r = open(p.number);
  if (r.target == nullptr) r.target = std::move(target);
  add_up(r, std::move(value), std::move(error));
  if (p.child == partial_result::no_child) {
    ++r.contributions;
  } else {
    const auto c = std::ranges::find(children_, p.child, &child::pe);
    if (c == children_.end() || r.children_left == 0) throw bad_message(errc::message_corrupt, "a part of a section");
    c->done = p.number;
    --r.children_left;
  }
  const array_core* const part = array_directory::of(self_).find(about_.array);
  if (part != nullptr && part->lossy()) [[unlikely]]
    fail_lost_reductions(part->about().name);
  pass_on();
}

void section_core::left(sequence_number contributed, orrery::reader& index) {
  --alive_;
  if (contributed > passed_) {
    const auto it =
        std::ranges::find(departed_contributions_, contributed, &std::pair<sequence_number, std::uint32_t>::first);
    if (it != departed_contributions_.end()) {
      ++it->second;
    } else {
      departed_contributions_.emplace_back(contributed, 1);
    }
  }
  remove(index);
  pass_on();
}

void section_core::child_ended(std::uint32_t pe, sequence_number after) {
  const auto c = std::ranges::find(children_, pe, &child::pe);
  if (c == children_.end()) return;
  c->has_ended = true;
  c->ended = after;
  for (open_reduction& r : open_)
    if (r.number > after) --r.children_left;
  forget_children();
  pass_on();
}

// Those that take part in none of the reductions that are to come.
void section_core::forget_children() noexcept {
  std::erase_if(children_, [&](const child& c) { return c.has_ended && c.ended <= passed_; });
}

void section_core::pass_on() {
  while (!open_.empty()) {
    open_reduction& r = open_.front();
    if (r.number != passed_.next() || r.children_left != 0 || r.contributions != expected(r.number)) break;
    passed_ = r.number;
    forget_children();
    std::erase_if(departed_contributions_, [&](const auto& g) { return g.first <= passed_; });
    const open_reduction done = std::move(r);
    open_.pop_front();
    if (about_.parent == self_.id()) {
      deliver_reduction(self_, done.value.get(), done.target.get(), done.error);
    } else {
      partial_result p;
      p.section = about_.id;
      p.number = done.number;
      p.child = self_.id();
      p.has_target = done.target != nullptr;
      send_partial(self_, about_.parent, about_.array, p, done.value.get(), done.target.get(), done.error);
    }
  }
  tell_end();
}

void section_core::tell_end() {
  if (told_end_ || alive_ != 0 || !departed_contributions_.empty() || !open_.empty() || about_.parent == self_.id())
    return;
  for (const child& c : children_)
    if (!c.has_ended) return;
  told_end_ = true;
  if (array_core* part = array_directory::of(self_).find(about_.array)) part->begins();
  tell(self_, about_.parent, ended_handler, about_.array, 0, pack(0, end_of_child{about_.id, self_.id(), passed_}));
}

void throw_null_section() {
  throw usage_error(errc::null_pointer, verbatim,
                    "a null section: it was default-constructed, or was restored from a checkpoint; use what "
                    "create_section returned");
}

void throw_no_member(const std::string& element) {
  throw usage_error(errc::bad_argument, element + ": there is no such element, which was to be in a section");
}

std::string section_core::explain_waits(const std::string& array) const {
  std::string text;
  for (const open_reduction& r : open_)
    text += fmt::format("  reduction {} of a section of {}: {} contributions have come to its agent here\n",
                        r.number.value, array, r.contributions);
  return text;
}

void array_core::release_early(membership& m) {
  std::ranges::sort(m.early, {}, &membership::early_broadcast::number);
  std::size_t done = 0;
  for (; done < m.early.size() && (lossy_ || m.early[done].number == m.broadcasts.next()); ++done) {
    const membership::early_broadcast& e = m.early[done];
    if (e.message.empty()) {
      (void)m.take_turn(e.number, lossy_);
      over();
      continue;
    }
    const scheduler::handler* const h = scheduler::find_handler(e.handler);
    // the element came from a program that has more methods
    if (h == nullptr || h->route == nullptr) {
      (void)m.take_turn(e.number, lossy_);
      over();
      self_.failures().report("a broadcast that came with an element",
                              make_error(errc::unknown_handler, "a broadcast to a section"));
      continue;
    }
    dispatch(self_, wire_message(self_, *h, id(), 0, e.message));  // its turn is over when it runs
    if (lossy_) continue;
    ++done;
    break;
  }
  m.early.erase(m.early.begin(), m.early.begin() + static_cast<std::ptrdiff_t>(done));
}

void array_core::skip_broadcast(membership& m, sequence_number number) {
  if (m.take_turn(number, lossy_)) {
    release_early(m);
  } else {
    m.early.push_back({number, 0, {}});
    begins();
  }
}

void leave_section(array_core& part, std::uint32_t home, const membership& m, const bytes& index) {
  bytes b = pack(0, end_of_member{m.section, m.contributed});
  b.insert(b.end(), index.begin(), index.end());
  part.begins();
  tell(part.self(), home, left_handler, part.id(), 0, b);
}

membership& require_member(cell_base& c, std::uint64_t section) {
  if (c.sections != nullptr)
    if (const auto it = std::ranges::find(*c.sections, section, &membership::section); it != c.sections->end())
      return *it;
  throw usage_error(
      errc::bad_argument,
      fmt::format("{} contributes to a section of which it is no member, or which was destroyed", c.part->text_of(c)));
}

void contribute_to(cell_base& c, std::uint64_t section, wire::unique_ptr<accumulator> value,
                   const reduction_target& target) {
  if (c.ended) {
    c.part->report_ended(c, "contributes to a section");
    return;
  }
  membership& m = require_member(c, section);
  partial_result p;
  p.section = section;
  p.number = m.contributed = m.contributed.next();
  p.contributions = 1;
  p.has_target = true;
  pe& self = c.part->self();
  if (c.part->lossy()) [[unlikely]] {  // the agent may be lost that would say so
    answer_lost(self, name_of_section(c.part->about().name), &target);
    return;
  }
  section_core* const here = m.home == self.id() ? c.part->find_section(section) : nullptr;
  if (here == nullptr) {
    send_partial(self, m.home, c.part->id(), p, value.get(), &target);
    return;
  }
  try {
    here->receive(p, std::move(value), wire::make_unique<reduction_target>(target), {});
  } catch (...) {  // as if it had arrived
    self.failures().report("a contribution to a section", std::current_exception());
  }
}

}  // namespace orrery::detail
