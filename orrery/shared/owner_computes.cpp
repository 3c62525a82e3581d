// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/owner_computes.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace orrery::detail {

void require_members(const shared_object& o, const team_share& s, const char* behaviour) {
  if (s.pes.empty()) return;
  const layout& l = o.how();
  for (std::uint32_t p = 0; p < l.parts(); ++p)
    if (l.elements_of(p) != 0 && std::ranges::find(s.pes, l.pes[p]) == s.pes.end())
      throw usage_error(errc::bad_argument,
                        fmt::format("{} of the {}: PE {} owns elements, and has no member of the team, so that "
                                    "nobody would care for them; distribute it over the PEs of the team",
                                    behaviour, o.about.label, l.pes[p]));
}

owned_scope::owned_scope(const owned_request& r)
    : all_rows_(r.rows), all_columns_(r.columns), object_(hold_object(r.id)) {
  const shared_object& o = *object_;
  if (!r.share.pes.empty()) require_owners(o);  // nobody cares for what a lost PE owns
  require_members(o, r.share, "owner_computes");
  guard_.begin(object_, scope_guard::kind::write, r.where);
  const layout& l = o.how();
  const std::uint32_t p = o.own_part;
  if (p == l.parts()) return;
  const std::uint32_t rp = l.row_part(p);
  const std::uint64_t rows = l.rows_of(p);
  const std::uint64_t begin = rows * r.share.index / r.share.count;
  const std::uint64_t end = rows * (r.share.index + 1) / r.share.count;
  own_columns_ = l.columns_of(p);
  pitch_ = l.pitch_of(p);
  first_ = o.base[p];
  mine_ = first_ + begin * pitch_ * o.element_bytes();
  mine_rows_ = end - begin;
  rows_ = l.rows.walk(rp, begin, end);
  columns_ = l.columns.walk(l.column_part(p), 0, own_columns_);
  first_row_ = l.rows.index(rp, 0);
  first_column_ = l.columns.index(l.column_part(p), 0);
  if (!l.rows.contiguous()) {
    first_row_ = 0;
    block_ = l.rows.block();
    round_ = block_ * l.rows.parts();
  }
  watch_.begin(object_, access_kind::read, r.where, "owner_computes");
  if (watch_) {
    watch_.add_rows(rows_, first_column_, own_columns_);
    watch_.remember(mine_, rows_, first_column_, own_columns_, pitch_);
  }
}

owned_scope::~owned_scope() = default;

void owned_scope::close() {
  watch_.end();
  guard_.end();
}

void owned_scope::require_no_halo(const char* what) const { detail::require_no_halo(*object_, what); }

bool owned_scope::is_mine(std::uint64_t row, std::uint64_t column) const noexcept {
  const shared_object& o = *object_;
  const layout& l = o.how();
  if (row >= all_rows_ || column >= all_columns_) return false;
  return l.find(row, column).part == o.own_part;
}

}  // namespace orrery::detail
