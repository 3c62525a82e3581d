// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/held.hpp>
#include <orrery/shared/team.hpp>

namespace orrery::detail {

held_place find_held(const shared_id& id, std::uint64_t row, std::uint64_t column, access_kind k,
                     std::source_location where) {
  const std::shared_ptr<const shared_object> o = hold_object(id);
  if (row >= o->rows || column >= o->columns) throw_outside(*o, row, column);
  note_access(*o, row, column, k, where);
  const layout::place p = o->how().find(row, column);
  require_owner(*o, p.part);
  return {o->how().pes[p.part], p.part, p.local};
}

std::vector<held_run> held_runs(const shared_object& o, const region& r) {
  const layout& l = o.how();
  std::vector<held_run> all;
  for (std::uint32_t p = 0; p < l.parts(); ++p) {
    const held_run run{part_of_region(l, p, r)};
    if (run.count() != 0) all.push_back(run);
  }
  return all;
}

void require_held(const shared_object& o, std::uint32_t part, std::uint64_t local) {
  if (part != o.own_part || part >= o.how().parts() || local >= o.how().elements_of(part))
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for an element that is not here");
}

void require_held(const shared_object& o, const held_run& r) {
  const layout& l = o.how();
  const auto inside = [](std::uint64_t first, std::uint64_t n, std::uint64_t size) {
    return first <= size && n <= size - first;
  };
  if (r.part != o.own_part || r.part >= l.parts() || !inside(r.row, r.rows, l.rows_of(r.part)) ||
      !inside(r.column, r.columns, l.columns_of(r.part)) || r.done > r.count())
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for elements that are not here");
}

element_place place_in(const shared_object& o, const held_run& r, std::uint64_t n) {
  const layout& l = o.how();
  return {l.rows.index(l.row_part(r.part), r.row + n / r.columns),
          l.columns.index(l.column_part(r.part), r.column + n % r.columns)};
}

std::shared_ptr<const shared_object> hold_for(const shared_id& id, const region& r) {
  std::shared_ptr<const shared_object> o = hold_object(id);
  require_inside(*o, r);
  require_owners(*o, r.row, r.rows, r.column, r.columns);
  return o;
}

void watch_region(watched_access& watch, const std::shared_ptr<const shared_object>& o, access_kind k, const region& r,
                  const std::source_location& where, const char* what) {
  watch.begin(o, k, where, what);
  if (watch)
    for (std::uint64_t i = r.row; i < r.row + r.rows; ++i) watch.add(i, r.column, r.columns);
}

void meet_team(team_member& team) { team.barrier(); }

}  // namespace orrery::detail
