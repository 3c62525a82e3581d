// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/access.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/push.hpp>
#include <orrery/shared/detail/scattered.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::detail {

namespace {

using object = std::shared_ptr<const shared_object>;

/// The columns of a region that a part has.
struct own_columns {
  std::uint64_t first;  // within the part
  std::uint64_t count;
  std::uint64_t to;  // the first one in the target
};

/// Elements of a vector that do not follow each other: sorted by the owners of their places.
void push_elements(const shared_object& from, const region& r, const object& to, std::uint64_t to_row,
                   const write_site& site) {
  const axis& rows = from.how().rows;
  const std::uint32_t rp = from.how().row_part(from.own_part);
  const std::uint64_t first = rows.below(rp, r.row);
  const std::uint64_t last = rows.below(rp, r.row + r.rows);
  std::vector<std::uint64_t> places;
  places.reserve(last - first);
  for (const std::uint64_t row : rows.walk(rp, first, last)) places.push_back(row - r.row + to_row);
  scatter_writer w(site);
  w.begin(to, std::span<const std::uint64_t>(places), from.base[from.own_part] + first * from.element_bytes());
  w.finish();
}

void push_rows(const shared_object& from, const region& r, const own_columns& c, const shared_object& to,
               const region_target& t, const write_site& site) {
  const axis& rows = from.how().rows;
  const std::uint32_t rp = from.how().row_part(from.own_part);
  const std::uint64_t pitch = from.how().pitch_of(from.own_part) * from.element_bytes();
  std::uint64_t at = rows.below(rp, r.row);
  region_writer w(site);
  rows.walk(rp, at, rows.below(rp, r.row + r.rows)).for_each_run([&](const index_run& run) {
    w.begin(to, {*run.begin() - r.row + t.row, run.size(), c.to, c.count},
            from.base[from.own_part] + at * pitch + c.first * from.element_bytes(), pitch);
    at += run.size();
  });
  w.finish();
}

/// At an owner.
void push_own_region(shared_id from_id, region r, region_target t, std::string_view writer) {
  const object from = hold_object(from_id);
  const object to = hold_object(t.id);
  require_inside(*from, r);
  const std::uint32_t p = from->own_part;
  if (p == from->how().parts() || from->element_bytes() != to->element_bytes())
    throw bad_message(errc::message_corrupt, from->about.label + ": a copy that cannot be");
  const axis& columns = from->how().columns;
  const std::uint32_t cp = from->how().column_part(p);
  const std::uint64_t first = columns.below(cp, r.column);
  const std::uint64_t count = columns.below(cp, r.column + r.columns) - first;
  if (count == 0) return;
  if (from->columns == 1 && to->columns == 1 && !from->how().rows.contiguous())
    return push_elements(*from, r, to, t.row, write_site(writer));
  push_rows(*from, r, {first, count, columns.index(cp, first) - r.column + t.column}, *to, t, write_site(writer));
}

/// At an owner: the elements of the stride that it has, run after run of its indices, some at a
/// time.
void push_own_stride(shared_id from_id, stride s, shared_id to_id, stride places, std::string_view writer) {
  const object from = hold_object(from_id);
  const object to = hold_object(to_id);
  const std::uint32_t p = from->own_part;
  if (p == from->how().parts() || from->element_bytes() != to->element_bytes())
    throw bad_message(errc::message_corrupt, from->about.label + ": a copy that cannot be");
  const std::size_t size = from->element_bytes();
  const std::size_t most = std::max<std::size_t>(1, transfer_piece_bytes / size);
  std::vector<std::uint64_t> at;
  std::vector<std::byte> values;
  scatter_writer w((write_site(writer)));
  const auto send = [&] {
    w.begin(to, std::span<const std::uint64_t>(at), values.data());
    at.clear();
    values.clear();
  };
  const std::uint64_t distance = std::max<std::uint64_t>(1, s.distance);  // of one element: any
  const axis& rows = from->how().rows;
  std::uint64_t local = rows.below(p, s.first);
  const std::uint64_t last = s.first + (s.count - 1) * s.distance;
  rows.walk(p, local, rows.below(p, last + 1)).for_each_run([&](const index_run& run) {
    const std::uint64_t begin = *run.begin();
    std::uint64_t k = (begin - s.first + distance - 1) / distance;
    for (std::uint64_t i = s.first + k * distance; k < s.count && i < *run.end(); ++k, i += distance) {
      at.push_back(places.first + k * places.distance);
      values.resize(at.size() * size);
      load_here(*from, from->base[p] + (local + i - begin) * size, values.data() + values.size() - size);
      if (at.size() == most) send();
    }
    local += run.size();
  });
  send();
  w.finish();
}

}  // namespace

std::vector<future<void>> push_stride(const shared_id& from_id, const stride& s, const shared_id& to_id,
                                      const stride& places, const write_site& site) {
  const object from = hold_object(from_id);
  const object to = hold_object(to_id);
  std::vector<future<void>> sent;
  if (s.count == 0) return sent;
  const auto last_of = [&](const stride& x, const shared_object& o) {
    const std::uint64_t last = x.first + (s.count - 1) * x.distance;
    if (last >= o.rows) throw_outside(o, last, 0);
    return last;
  };
  const std::uint64_t last = last_of(s, *from);
  (void)last_of(places, *to);
  require_owners(*from);
  require_owners(*to);
  const axis& rows = from->how().rows;
  const std::string writer = site.text();
  try {
    for (std::uint32_t p = 0; p < from->how().parts(); ++p)
      if (rows.below(p, last + 1) != rows.below(p, s.first))
        sent.push_back(start_call<&push_own_stride>(orrery::pe(from->how().pes[p]), from_id, s, to_id, places, writer));
  } catch (...) {  // what was sent is over when the caller hears of it
    (void)finish(sent, [] { throw; });
  }
  return sent;
}

std::vector<future<void>> push_region(const shared_id& from_id, const region& r, const region_target& t,
                                      const write_site& site) {
  const object from = hold_object(from_id);
  const object to = hold_object(t.id);
  require_inside(*from, r);
  require_inside(*to, {t.row, r.rows, t.column, r.columns});
  require_owners(*from);
  require_owners(*to);
  scope_guard::require_not_viewed(*to, {t.row, r.rows, t.column, r.columns}, site);
  std::vector<future<void>> sent;
  const layout& l = from->how();
  const auto send = [&](std::uint32_t p) {
    const auto has = [](const axis& a, std::uint32_t part, std::uint64_t first, std::uint64_t n) {
      return a.below(part, first + n) != a.below(part, first);
    };
    if (has(l.rows, l.row_part(p), r.row, r.rows) && has(l.columns, l.column_part(p), r.column, r.columns))
      sent.push_back(start_call<&push_own_region>(orrery::pe(l.pes[p]), from_id, r, t, site.text()));
  };
  try {
    for (std::uint32_t p = 0; p < l.parts(); ++p) send(p);
  } catch (...) {
    (void)finish(sent, [] { throw; });
  }
  return sent;
}

}  // namespace orrery::detail
