// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/membership.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <utility>

#define XXH_INLINE_ALL  // hashing a PE number costs less than a call
#include <xxhash.h>

namespace orrery::detail {

namespace {

enum seen : std::uint8_t { not_yet, alive, gone };

seen state_of(const transport::world& world, std::uint32_t node) noexcept {
  switch (world.state(node)) {
    case transport::node_state::empty:
    case transport::node_state::reserved:
    case transport::node_state::joining:
      return not_yet;
    case transport::node_state::alive:
      return alive;
    default:
      return gone;
  }
}

// For the last node at a place: its number and what is seen of it. A place that nobody had yet is
// as one whose first node is not alive yet. So none of these comes back when a place is used again.
std::uint64_t seen_at(const transport::world& world, std::uint32_t place) noexcept {
  const std::uint32_t n = world.node_at(place);
  if (n == transport::no_node) return 0;
  const seen s = state_of(world, n);
  return s == not_yet && n == place ? 0 : std::uint64_t{n} << 2 | s;
}

bool is_same(const transport::world& world, const world_membership& m) noexcept {
  const std::uint32_t limit = world.node_limit();
  for (std::uint32_t place = 0; place < limit; ++place)
    if (seen_at(world, place) != (place < m.states.size() ? m.states[place] : 0)) return false;
  return true;
}

}  // namespace

std::size_t world_membership::member_of(std::uint32_t pe) const noexcept {
  const auto next = std::ranges::upper_bound(members, pe, {}, &member::first_pe);
  if (next == members.begin()) return members.size();
  const auto at = next - 1;
  return pe - at->first_pe < at->pe_count ? static_cast<std::size_t>(at - members.begin()) : members.size();
}

membership_ptr read_membership(const scheduler::node& self, membership_ptr before) {
  const transport::world* world = self.world();
  if (world == nullptr) {
    if (before != nullptr) return before;
    auto m = std::make_shared<world_membership>();
    m->id = 1;
    m->members.push_back({self.first_pe(), self.pe_count()});
    m->keepers = m->members;
    return m;
  }
  const std::uint32_t epoch = world->epoch();
  if (before != nullptr && is_same(*world, *before)) {
    if (before->epoch == epoch) return before;
    // a change that was seen before it was counted
    auto m = std::make_shared<world_membership>(*before);
    m->epoch = epoch;
    return m;
  }
  auto m = std::make_shared<world_membership>();
  m->epoch = epoch;
  const std::uint32_t limit = world->node_limit();
  for (std::uint32_t place = 0; place < limit; ++place) {
    m->states.push_back(seen_at(*world, place));
    if ((m->states.back() & 3) != alive) continue;
    const auto n = static_cast<std::uint32_t>(m->states.back() >> 2);
    const auto [first_pe, pe_count] = world->pes_of(n);
    if (pe_count == 0) continue;  // its entry was overwritten: nobody can be reached there
    m->members.push_back({first_pe, pe_count});
    if (world->launch_of(n) == 0) m->keepers.push_back({first_pe, pe_count});
  }
  while (!m->states.empty() && m->states.back() == 0) m->states.pop_back();
  std::ranges::sort(m->members, {}, &member::first_pe);
  std::ranges::sort(m->keepers, {}, &member::first_pe);
  if (m->keepers.empty()) m->keepers = m->members;
  m->id = XXH3_64bits(m->states.data(), m->states.size() * sizeof m->states[0]);
  m->self_alive = m->member_of(self.first_pe()) != m->members.size();
  return m;
}

bool seems_current(const scheduler::node& self, const world_membership& m) noexcept {
  return self.world() == nullptr || self.world()->epoch() == m.epoch;
}

std::uint64_t hash_of(std::string_view name) noexcept { return XXH3_64bits(name.data(), name.size()); }

std::uint32_t owner_of(std::uint64_t hash, std::span<const member> members) noexcept {
  std::uint32_t best = no_pe;
  std::uint64_t highest = 0;
  for (const member& m : members)
    for (std::uint32_t pe = m.first_pe; pe != m.first_pe + m.pe_count; ++pe)
      if (const std::uint64_t drawn = XXH3_64bits_withSeed(&pe, sizeof pe, hash); drawn > highest || best == no_pe) {
        highest = drawn;
        best = pe;
      }
  return best;
}

}  // namespace orrery::detail
