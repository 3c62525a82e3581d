// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/behaviour_costs.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>
#include <orrery/shared/wrapped.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

// As the scopes send them; see region.cpp and release.cpp.
constexpr double buffer_bytes = 32 << 10;
constexpr double run_bytes = 8;  // what a run of writes has beside its values
constexpr double most_mostly_bytes = 64 << 10;  // of an object that is suggested for read_mostly

double real(std::uint64_t n) { return static_cast<double>(n); }

}  // namespace

behaviour_costs::behaviour_costs(const shared_description_for_advice& o, const use_of_object& u,
                                 const transport::link_cost& net)
    : o_(o), net_(net) {
  for (const auto& [pe, uses] : u.by_pe) {
    pe_use mine{pe, o.how.part_of(pe), 1, {}};
    std::map<std::uint32_t, part_use> parts;
    std::uint64_t phases = 0;
    for (const object_use& use : uses) {
      phases += use.phases;
      mine.members = std::max(mine.members, real(use.members));
      halo_ = std::max(halo_, use.halo);
      over_edges_ |= use.over_edges;
      for (const auto& [part, n] : use.parts) parts[part].add(n);
    }
    for (const auto& [part, n] : parts) {
      sum_.add(n);
      if (part != mine.own_part) far_ += n.all();
      mine.parts.emplace_back(part, n);
    }
    shared_by_members_ |= mine.members > 1;
    phases_ = std::max(phases_, real(phases));
    uses_.push_back(std::move(mine));
  }
  find_behaviours();
}

void behaviour_costs::find_behaviours() {
  const bool is_matrix = std::string_view(o_.label).starts_with("shared matrix");
  const char* const name = is_matrix ? "m" : std::string_view(o_.label).starts_with("shared vector") ? "v" : "s";
  const auto put = [&](std::string text, double ns) { all_.emplace_back(std::move(text), ns); };
  const char* const part = is_matrix ? "m.rows(first, count)" : "v.part(first, count)";
  if (far_ == 0) return put(fmt::format("owner_computes({}{})", name, shared_by_members_ ? ", team" : ""), 0);
  const bool writes = sum_.writes != 0;
  if (sum_.changes == 0 && sum_.reads != 0 && !writes) {
    // A behaviour that needs less memory comes first where it takes as long.
    if (is_matrix && has_halo())
      put(fmt::format("halo_cache(m, team, {}{})", halo_, over_edges_ ? ", edges::periodic" : ""), halo());
    put(fmt::format("read_cache({})", name), cache());
    if (*name != 's') put(fmt::format("read_cache({})", part), cache_of_rows());
  }
  if (sum_.changes == 0 && sum_.reads == 0) put(fmt::format("release({})", name), release());
  if (sum_.changes == 0 && sum_.reads != 0 && writes) {
    put(fmt::format("read_release({})", name), cache() + release());
    if (*name != 's') put(fmt::format("read_release({})", part), cache_of_rows() + release());
  }
  const bool small = real(o_.how.elements()) * o_.how.element_bytes <= most_mostly_bytes;
  if (!is_matrix && small && sum_.reads != 0 && (writes || sum_.changes != 0))
    put(fmt::format("read_mostly({})", name), read_mostly());
}

// Each PE has elements, and what is around them is not all of the matrix: else a cache of all says
// it in fewer words.
bool behaviour_costs::has_halo() const {
  const layout& l = o_.how;
  if (halo_ == 0 || halo_ > l.rows.size() || halo_ > l.columns.size() || !l.rows.contiguous()) return false;
  std::uint64_t most_rows = 0;
  std::uint64_t most_columns = 0;
  for (const pe_use& u : uses_) {
    if (u.own_part == l.parts()) return false;
    most_rows = std::max(most_rows, l.rows_of(u.own_part));
    most_columns = std::max(most_columns, l.columns_of(u.own_part));
  }
  return most_rows + 2 * halo_ < l.rows.size() || most_columns + 2 * halo_ < l.columns.size();
}

double behaviour_costs::by_default() const {
  transfer_model model(net_);
  for (const pe_use& u : uses_)
    for (const auto& [part, n] : u.parts) {
      if (part == u.own_part) continue;
      const double size = o_.how.element_bytes / phases_;
      model.exchange_in_turn(u.pe, o_.how.pes[part], real(n.all()) / phases_, real(n.writes + n.changes) * size,
                             real(n.reads + n.changes) * size);
    }
  return model.time() * phases_;
}

double behaviour_costs::cache() const {
  transfer_model model(net_);
  for (const pe_use& u : uses_)
    for (std::uint32_t p = 0; p < o_.how.parts(); ++p) {
      const double bytes = elements_of(p) * o_.how.element_bytes;
      if (p == u.own_part || bytes == 0) continue;
      model.exchange(u.pe, o_.how.pes[p], u.members * std::ceil(bytes / transfer_piece_bytes), 0, u.members * bytes);
    }
  return model.time() * phases_;
}

double behaviour_costs::cache_of_rows() const {
  transfer_model model(net_);
  for (const pe_use& u : uses_)
    for (const auto& [part, n] : u.parts) {
      const double bytes = real(n.hull) * o_.how.element_bytes / phases_;
      if (bytes != 0) model.exchange(u.pe, o_.how.pes[part], std::ceil(bytes / transfer_piece_bytes), 0, bytes);
    }
  return model.time() * phases_;
}

void behaviour_costs::add_halo_of(const pe_use& u, transfer_model& model) const {
  const layout& l = o_.how;
  if (u.own_part == l.parts() || l.elements_of(u.own_part) == 0) return;
  const std::uint32_t rp = l.row_part(u.own_part);
  const std::uint32_t cp = l.column_part(u.own_part);
  const edges beyond = over_edges_ ? edges::periodic : edges::open;
  const auto around = [&](const axis& a, std::uint32_t part) {
    auto first = static_cast<std::int64_t>(a.index(part, 0));
    auto count = static_cast<std::int64_t>(a.count(part));
    widen(first, count, halo_, beyond, a.size());
    std::vector<stretch> all = wrapped(first, count, static_cast<std::int64_t>(a.size()));
    // then the others are parts of it
    const auto whole = std::ranges::find(all, a.size(), &stretch::count);
    if (whole != all.end()) all = {*whole};
    return all;
  };
  const auto down = around(l.rows, rp);
  const auto across = around(l.columns, cp);
  const auto inside = [](const axis& a, std::uint32_t part, const stretch& s) {
    return real(a.below(part, s.first + s.count) - a.below(part, s.first));
  };
  for (const stretch& d : down)
    for (const stretch& a : across)
      for (std::uint32_t p = 0; p < l.parts(); ++p) {
        if (p == u.own_part) continue;
        const double bytes =
            inside(l.rows, l.row_part(p), d) * inside(l.columns, l.column_part(p), a) * l.element_bytes;
        if (bytes != 0) model.exchange(u.pe, l.pes[p], 1, 0, bytes);
      }
}

double behaviour_costs::halo() const {
  transfer_model model(net_);
  for (const pe_use& u : uses_) add_halo_of(u, model);
  return model.time() * phases_;
}

double behaviour_costs::release() const {
  transfer_model model(net_);
  for (const pe_use& u : uses_)
    for (const auto& [part, n] : u.parts) {
      if (part == u.own_part || n.writes == 0) continue;
      const double bytes = (real(n.writes) * o_.how.element_bytes + real(n.write_runs) * run_bytes) / phases_;
      model.exchange(u.pe, o_.how.pes[part], std::ceil(bytes / buffer_bytes), bytes, 0);
    }
  return model.time() * phases_;
}

// A change is a message to the owner, and one from it to each replica; it returns when these have
// answered.
double behaviour_costs::read_mostly() const {
  const transfer_model one(net_);
  const double replicas = real(uses_.size());
  const double change = 2 * one.round_trip(0, 0) + replicas * 2 * net_.overhead;
  double most = 0;
  for (const pe_use& u : uses_) {
    double changes = 0;
    for (const auto& [part, n] : u.parts) changes += real(n.writes + n.changes);
    most = std::max(most, changes);
  }
  return cache() + most * change;
}

}  // namespace orrery::detail
