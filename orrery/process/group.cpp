// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/group.hpp>

#include <orrery/process/detail/attempts.hpp>
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/make_group.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/when_all.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

namespace orrery::detail {

// First each PE makes its part and reserves a slot for each of its members, so that all addresses
// are known; then all parts learn them; then the members are constructed. Until its constructor
// runs a reserved slot is in state `running`: what is sent to it waits.

namespace {

struct reserved {
  address part;
  std::vector<address> members;
};

void give_back(pe& self, const reserved& r) noexcept {
  for (const address& a : r.members)
    if (slot* s = self.find(a.slot, a.generation); s != nullptr && !s->has_object) self.free_slot(*s);
  if (slot* s = self.find(r.part.slot, r.part.generation); s != nullptr && s->has_object) self.destroy(*s);
}

reserved reserve_part(std::uint32_t members) {
  pe& self = here_pe();
  slot& s = self.allocate_slot();
  reserved r{self.address_of(s), {}};
  try {
    s.set_object(make_object<group_part>(s, self, r.part));
    s.class_number = class_of<group_part>::value.number;
    self.settle(s);
    r.members.reserve(members);
    for (std::uint32_t i = 0; i < members; ++i) r.members.push_back(self.address_of(self.allocate_slot()));
  } catch (...) {
    if (!s.has_object) self.free_slot(s);
    give_back(self, r);
    throw;
  }
  return r;
}

void give_back_part(reserved r) { give_back(here_pe(), r); }

/// At the PE of part `first`: tells it and those up to `last` whose group they are. Each PE passes
/// it on to the middle of what is left: the list of all members is long, and one PE alone would
/// send it as often as there are parts.
void adopt_group(const group_handle& g, std::size_t first, std::size_t last) {
  const auto& parts = g.data().parts;
  std::vector<future<void>> told;
  finish(told, [&] {
    while (last - first > 1) {
      const std::size_t middle = first + (last - first + 1) / 2;
      told.push_back(start_call<&adopt_group>(orrery::pe(parts[middle].at.pe), g, middle, last));
      last = middle;
    }
    group_part* p = find_part(here_pe(), parts[first].at.slot, parts[first].at.generation);
    if (p == nullptr) throw process_gone("a part of a group");
    p->adopt(g);
  });
}

void tell_parts(const group_handle& g) {
  const auto& parts = g.data().parts;
  if (parts.empty()) return;
  call<&adopt_group>(orrery::pe(parts.front().at.pe), g, std::size_t{0}, parts.size());
}

/// The group of the parts that were asked for, whose members `members_of(parts)` gives; or nothing
/// of it is left, and the first error is thrown.
template <class F>
group_handle made_of(std::vector<future<reserved>> asked, F members_of) {
  std::vector<reserved> parts;
  attempts attempt;
  for (auto& f : asked) attempt([&] { parts.push_back(f.get()); });
  group_handle group;
  if (!attempt.failed())
    attempt([&] {
      std::vector<address> at;
      for (const reserved& r : parts) at.push_back(r.part);
      group = group_handle(wire::counted_ptr(new const group_data(members_of(parts), at)));
      tell_parts(group);
    });
  if (!attempt.failed()) return group;
  for (reserved& r : parts) attempt([&] { post_call<&give_back_part>(orrery::pe(r.part.pe), std::move(r)); });
  attempt.rethrow_first();
}

void end_part_here(std::uint32_t index, std::uint32_t generation) {
  pe& self = here_pe();
  group_part* const p = find_part(self, index, generation);
  if (p == nullptr) throw process_gone("a group that was dismissed or destroyed before");
  p->ending = true;
  p->broken(p->number(), std::make_exception_ptr(process_gone(verbatim, "the group was dismissed")));
  if (p->outstanding == nullptr) self.destroy(*self.find(index, generation));
}

}  // namespace

group_handle group_of(std::vector<address> members) {
  std::vector<std::uint32_t> pes;
  for (const address& a : members) {
    if (!a) throw usage_error(errc::null_pointer, "make_group");
    if (std::ranges::find(pes, a.pe) == pes.end()) pes.push_back(a.pe);
  }
  std::vector<future<reserved>> asked;
  for (const std::uint32_t p : pes)
    asked.push_back(attempted<reserved>([p] { return start_call<&reserve_part>(orrery::pe(p), 0U); }));
  return made_of(std::move(asked), [&](const std::vector<reserved>&) { return std::move(members); });
}

void require_one_for_each(std::size_t members, std::size_t values) {
  if (members != values)
    throw usage_error(errc::bad_argument,
                      fmt::format("scatter: {} values for {} members; each takes one", values, members));
}

void dismiss_group(const group_data& d) {
  std::vector<future<void>> told;
  for (const auto& p : d.parts)
    told.push_back(
        attempted<void>([&] { return start_call<&end_part_here>(orrery::pe(p.at.pe), p.at.slot, p.at.generation); }));
  when_all(std::move(told)).get();
}

group_handle reserve_group(const std::vector<std::uint32_t>& pes) {
  // PE, members; in the order of the lowest ranks
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;
  std::map<std::uint32_t, std::size_t> part_on;
  for (const std::uint32_t p : pes) {
    const auto [it, fresh] = part_on.emplace(p, counts.size());
    if (fresh) counts.emplace_back(p, 0);
    ++counts[it->second].second;
  }
  std::vector<future<reserved>> asked;
  for (const auto& [p, n] : counts)
    asked.push_back(attempted<reserved>([p, n] { return start_call<&reserve_part>(orrery::pe(p), n); }));
  return made_of(std::move(asked), [&](const std::vector<reserved>& parts) {
    std::vector<address> members;
    members.reserve(pes.size());
    std::vector<std::size_t> next(parts.size());
    for (const std::uint32_t p : pes) {
      const std::size_t i = part_on[p];
      members.push_back(parts[i].members.at(next[i]++));
    }
    return members;
  });
}

}  // namespace orrery::detail
