// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/halo.hpp>
#include <orrery/shared/read_cache.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/wrapped.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

/// A run of indices of a halo along one axis, and whether it is the caller's PE's at its own place.
struct halo_run {
  stretch at;
  bool own;
};

/// Cuts the runs of an axis where the PE's own indices [begin, end) begin and end. `first` is the
/// index of the halo's beginning: a run that has come around an edge is not at its own place.
std::vector<halo_run> cut(const std::vector<stretch>& runs, std::int64_t first, std::uint64_t begin,
                          std::uint64_t end) {
  std::vector<halo_run> all;
  for (const stretch& s : runs) {
    if (first + static_cast<std::int64_t>(s.at) != static_cast<std::int64_t>(s.first)) {
      all.push_back({s, false});
      continue;
    }
    const std::uint64_t last = s.first + s.count;
    const std::uint64_t from = std::clamp(begin, s.first, last);
    const std::uint64_t to = std::clamp(end, from, last);
    const auto add = [&](std::uint64_t a, std::uint64_t b, bool own) {
      if (a != b) all.push_back({{a, b - a, s.at + (a - s.first)}, own});
    };
    add(s.first, from, false);
    add(from, to, true);
    add(to, last, false);
  }
  return all;
}

std::uint64_t first_of(const run_of<std::int64_t>& own) { return static_cast<std::uint64_t>(*own.begin()); }

}  // namespace

struct halo_scope::copies {
  std::shared_ptr<const shared_object> object;
  std::vector<std::byte> memory;  // of a copy
  std::byte* to = nullptr;  // [row_, column_], in a copy or in place
  std::deque<region_reader> readers;
  /// Columns that are there twice, as the halo goes over both edges: not read twice.
  struct repeat {
    std::uint64_t to;  // bytes
    std::uint64_t from;
    std::uint64_t bytes;
  };
  std::vector<repeat> repeats;
  scope_guard guard;  // of what is shown in place
  watched_access watch;
  watched_access copied;  // of what has room beside that, and is read when the scope begins

  /// The runs of columns, without those that repeat others.
  std::vector<stretch> columns_of(std::int64_t first, std::int64_t count) {
    const std::uint64_t size = object->columns;
    const std::uint64_t element = object->element_bytes();
    std::vector<stretch> columns = wrapped(first, count, static_cast<std::int64_t>(size));
    // The one at its own place, where the own columns are: others are copied from it. A halo as
    // wide as the matrix has all columns three times.
    const auto all = std::ranges::find_if(columns, [&](const stretch& s) {
      return s.count == size && first + static_cast<std::int64_t>(s.at) == static_cast<std::int64_t>(s.first);
    });
    if (all == columns.end()) return columns;
    const stretch whole = *all;
    columns.erase(all);
    for (const stretch& s : columns)
      repeats.push_back({s.at * element, (whole.at + s.first) * element, s.count * element});
    return {whole};
  }
};

halo_scope::halo_scope(const halo_request& r) : copies_(wire::make_unique<copies>()) {
  const std::shared_ptr<const shared_object> o = hold_object(r.id);
  require_owners(*o);
  const layout& l = o->how();
  if (!l.rows.contiguous())
    throw usage_error(errc::bad_argument,
                      fmt::format("halo_cache of the {}: the rows of a PE do not follow each other, so that each has "
                                  "others around it; distribute it by blocks or tiles",
                                  o->about.label));
  const std::uint64_t all_rows = l.rows.size();
  const std::uint64_t all_columns = l.columns.size();
  if (r.width > all_rows || r.width > all_columns)
    throw usage_error(errc::bad_argument,
                      fmt::format("halo_cache of the {}: a halo of width {} is wider than its {} x {} elements",
                                  o->about.label, r.width, all_rows, all_columns));
  const std::uint32_t p = o->own_part;
  if (p == l.parts() || l.elements_of(p) == 0) return;
  const std::uint64_t rows = l.rows_of(p);
  const std::uint64_t begin = l.rows.index(l.row_part(p), rows * r.share.index / r.share.count);
  const std::uint64_t end = begin + rows * (r.share.index + 1) / r.share.count - rows * r.share.index / r.share.count;
  const std::uint64_t left = l.columns.index(l.column_part(p), 0);
  if (begin == end) return;
  row_ = static_cast<std::int64_t>(begin);
  rows_ = static_cast<std::int64_t>(end - begin);
  column_ = static_cast<std::int64_t>(left);
  columns_ = static_cast<std::int64_t>(l.columns_of(p));
  own_rows_ = {row_, row_ + rows_};
  own_columns_ = {column_, column_ + columns_};
  widen(row_, rows_, r.width, r.beyond, all_rows);
  widen(column_, columns_, r.width, r.beyond, all_columns);
  copies_->object = o;
  copies_->watch.begin(o, access_kind::read, r.where, "halo_cache");
  if (r.width <= l.halo && l.halo != 0) {
    copies_->copied.begin(o, access_kind::read, r.where, "halo_cache");
    begin_in_place(o, r);
  } else {
    begin_copy(o);
  }
  first_ = copies_->to;
}

void halo_scope::begin_copy(const std::shared_ptr<const shared_object>& o) {
  pitch_ = columns_;
  const std::uint64_t bytes = static_cast<std::uint64_t>(rows_ * columns_) * o->element_bytes();
  copies_->memory = memory_for_copy(*o, bytes, [&] { return std::vector<std::byte>(bytes); });
  copies_->to = copies_->memory.data();
  const std::vector<stretch> columns = copies_->columns_of(column_, columns_);
  for (const stretch& down : wrapped(row_, rows_, static_cast<std::int64_t>(o->rows)))
    for (const stretch& across : columns) {
      if (copies_->watch)
        for (std::uint64_t i = 0; i < down.count; ++i) copies_->watch.add(down.first + i, across.first, across.count);
      read(down.first, down.count, across.first, across.count, down.at, across.at);
    }
}

void halo_scope::begin_in_place(const std::shared_ptr<const shared_object>& o, const halo_request& r) {
  const layout& l = o->how();
  const std::uint32_t p = o->own_part;
  const std::uint64_t first_row = l.rows.index(l.row_part(p), 0);
  // The halo shows rows of other members on this PE in place, too.
  const auto shown = static_cast<std::uint64_t>(std::max(row_, static_cast<std::int64_t>(first_row)));
  const auto shown_end = std::min(static_cast<std::uint64_t>(row_ + rows_), first_row + l.rows_of(p));
  copies_->guard.begin(o, scope_guard::kind::view, r.where,
                       {shown, shown_end - shown, first_of(own_columns_), own_columns_.size()});
  pitch_ = static_cast<std::int64_t>(l.pitch_of(p));
  const auto down_to = row_ - static_cast<std::int64_t>(first_row);
  const auto right_to = column_ - *own_columns_.begin();
  copies_->to = o->base[p] + (down_to * pitch_ + right_to) * static_cast<std::int64_t>(o->element_bytes());
  const auto down =
      cut(wrapped(row_, rows_, static_cast<std::int64_t>(o->rows)), row_, first_row, first_row + l.rows_of(p));
  const auto across = cut(copies_->columns_of(column_, columns_), column_, first_of(own_columns_),
                          first_of(own_columns_) + own_columns_.size());
  for (const halo_run& d : down)
    for (const halo_run& a : across) {
      watched_access& watch = d.own && a.own ? copies_->watch : copies_->copied;
      if (watch)
        for (std::uint64_t i = 0; i < d.at.count; ++i) watch.add(d.at.first + i, a.at.first, a.at.count);
      if (d.own && a.own) continue;
      read(d.at.first, d.at.count, a.at.first, a.at.count, d.at.at, a.at.at);
    }
  if (copies_->watch) copies_->watch.is_view();
}

void halo_scope::read(std::uint64_t row, std::uint64_t rows, std::uint64_t column, std::uint64_t columns,
                      std::uint64_t to_row, std::uint64_t to_column) {
  const std::uint64_t element = copies_->object->element_bytes();
  const std::uint64_t pitch = static_cast<std::uint64_t>(pitch_) * element;
  copies_->readers.emplace_back().begin(copies_->object, {row, rows, column, columns},
                                        copies_->to + to_row * pitch + to_column * element, pitch);
}

halo_scope::~halo_scope() = default;

void halo_scope::ready() {
  for (region_reader& r : copies_->readers) r.finish();
  copies_->readers.clear();
  if (!copies_->repeats.empty()) {
    const std::uint64_t pitch = static_cast<std::uint64_t>(pitch_) * copies_->object->element_bytes();
    std::byte* row = copies_->to;
    for (std::int64_t i = 0; i < rows_; ++i, row += pitch)
      for (const copies::repeat& r : copies_->repeats) std::memcpy(row + r.to, row + r.from, r.bytes);
  }
  copies_->copied.end();
  if (!copies_->memory.empty()) copies_->watch.end();
}

void halo_scope::close() {
  first_ = nullptr;
  copies_->copied.end();
  copies_->watch.end();
  copies_->guard.end();
  copies_ = wire::make_unique<copies>();
}

}  // namespace orrery::detail
