// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/team_gather.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>
#include <orrery/shared/owner_computes.hpp>
#include <orrery/shared/team.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <span>
#include <unordered_set>

namespace orrery::detail {

namespace {

constexpr std::chrono::milliseconds look_for_losses{200};  // while elements are missing

void place(gathered_pieces::arriving& a, const part_region& w, std::span<const std::byte> elements) {
  if (!is_inside(a.from->how(), w) || elements.size() != w.rows * w.columns * a.from->element_bytes())
    throw bad_message(errc::message_corrupt, a.from->about.label + ": elements for a cache that make no sense");
  place_piece(*a.from, a.all, w, elements.data(), w.columns * a.from->element_bytes(), a.to, a.pitch);
  a.missing -= std::min(a.missing, w.rows * w.columns);
  if (a.missing == 0 && a.waiter != nullptr) resolve<void>(here_pe(), a.waiter.release(), [] {});
}

void take_early(gathered_pieces::arriving& a) {
  for (const auto& [w, elements] : std::exchange(a.early, {})) place(a, w, elements);
}

/// At a member's PE.
void take_piece(address member, std::uint64_t number, part_region w, std::span<const std::byte> elements) {
  if (!gathered_pieces::expects(member)) return;
  auto& a = shared_directory::of_this_pe().gathers.of[{member, number}];
  if (a.from == nullptr) {
    a.early.emplace_back(w, std::vector<std::byte>(elements.begin(), elements.end()));
  } else {
    place(a, w, elements);
  }
}

}  // namespace

bool gathered_pieces::expects(const address& member) {
  scheduler::slot* const s = here_pe().find(member.slot, member.generation);
  if (s != nullptr) s->watched = true;
  return s != nullptr;
}

void gathered_pieces::forget(const address& member) noexcept {
  const auto end_all = [&](auto& values) {
    values.erase(values.lower_bound({member, 0}),
                 values.upper_bound({member, std::numeric_limits<std::uint64_t>::max()}));
  };
  end_all(of);
  end_all(given);
}

void team_gather::begin(team_member& member, std::shared_ptr<const shared_object> from, const region& r, std::byte* to,
                        std::uint64_t pitch) {
  require_inside(*from, r);
  const team_share share = member.share();
  require_members(*from, share, "read_cache");
  member_ = &member;
  from_ = std::move(from);
  region_ = r;
  to_ = to;
  pitch_ = pitch;
  number_ = member.next_exchange();
  auto& a = shared_directory::of_this_pe().gathers.of[{member.address_of(member.rank()), number_}];
  a.from = from_.get();
  a.all = r;
  a.to = to;
  a.pitch = pitch;
  const layout& l = from_->how();
  const std::uint32_t p = from_->own_part;
  const std::vector<std::size_t> afar = members_afar();
  if (!memory_is_shared_) copy_from_memory();
  for (std::uint32_t part = 0; part < l.parts(); ++part)
    if (from_->base[part] == nullptr) {
      const part_region w = part_of_region(l, part, r);
      a.missing += w.rows * w.columns;
    }
  if (p == l.parts()) return take_early(a);
  const std::uint64_t rows = l.rows_of(p);
  part_region mine{p, 0, 0, 0, 0};
  mine.row = std::max(rows * share.index / share.count, l.rows.below(l.row_part(p), r.row));
  const std::uint64_t end =
      std::min(rows * (share.index + 1) / share.count, l.rows.below(l.row_part(p), r.row + r.rows));
  mine.column = l.columns.below(l.column_part(p), r.column);
  mine.columns = l.columns.below(l.column_part(p), r.column + r.columns) - mine.column;
  if (mine.row >= end || mine.columns == 0) return take_early(a);
  take_early(a);
  const std::uint64_t step = std::max<std::uint64_t>(1, transfer_piece_bytes / (mine.columns * from_->element_bytes()));
  for (; mine.row < end; mine.row += mine.rows) {
    mine.rows = std::min(step, end - mine.row);
    own_.push_back(mine);
    send(mine, afar);
  }
}

std::vector<std::size_t> team_gather::members_afar() {
  const std::uint32_t here = domain_of(here_pe().id());
  std::vector<std::size_t> afar;
  std::unordered_set<std::uint32_t> domains;
  for (std::size_t i = 1; i <= member_->size(); ++i) {
    const std::size_t rank = (member_->rank() + i) % member_->size();
    const std::uint32_t domain = domain_of(member_->address_of(rank).pe);
    if (domain != here) afar.push_back(rank);
    memory_is_shared_ |= !domains.insert(domain).second;
  }
  return afar;
}

void team_gather::send(const part_region& w, const std::vector<std::size_t>& to) {
  if (to.empty()) return;
  const std::uint64_t element = from_->element_bytes();
  const std::uint64_t pitch = part_pitch(*from_, w.part);
  const std::byte* const first = first_of(*from_, w);
  std::vector<std::byte> packed(w.rows * w.columns * element);
  for (std::uint64_t i = 0; i < w.rows; ++i)
    std::memcpy(packed.data() + i * w.columns * element, first + i * pitch, w.columns * element);
  for (const std::size_t rank : to) {
    const address member = member_->address_of(rank);
    post_call<&take_piece>(orrery::pe(member.pe), member, number_, w, std::span<const std::byte>(packed));
  }
}

void team_gather::copy_from_memory() {
  const layout& l = from_->how();
  for (std::uint32_t p = 0; p < l.parts(); ++p) {
    const part_region w = part_of_region(l, p, region_);
    if (from_->base[p] == nullptr || w.rows == 0 || w.columns == 0) continue;
    place_piece(*from_, region_, w, first_of(*from_, w), part_pitch(*from_, p), to_, pitch_);
  }
}

void team_gather::finish() {
  member_->barrier();
  if (memory_is_shared_) copy_from_memory();
  await_others();
  if (memory_is_shared_) member_->barrier();  // who goes on may write what others still copy
}

void team_gather::await_others() {
  auto& a = shared_directory::of_this_pe().gathers.of.at({member_->address_of(member_->rank()), number_});
  if (a.missing == 0) return;
  auto mine = future_access<void>::make_local(here_pe());
  a.waiter = future_access<void>::make_hold(mine);
  future<void> all_there = future_access<void>::wrap(std::move(mine));
  while (!all_there.wait_for(look_for_losses)) require_owners(*from_);
  all_there.get();
}

team_gather::~team_gather() {
  if (member_ == nullptr || from_ == nullptr) return;
  shared_directory::of_this_pe().gathers.of.erase({member_->address_of(member_->rank()), number_});
}

}  // namespace orrery::detail
