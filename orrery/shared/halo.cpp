// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/halo.hpp>
#include <orrery/shared/region.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/shared/wrapped.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstring>
#include <deque>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

struct halo_scope::copies {
  std::vector<std::byte> memory;
  std::deque<region_reader> readers;
  /// Columns that are in the copy twice, as it goes over both edges: not read twice.
  struct repeat {
    std::uint64_t to;  // bytes
    std::uint64_t from;
    std::uint64_t bytes;
  };
  std::vector<repeat> repeats;
  watched_access watch;
};

halo_scope::halo_scope(const halo_request& r) : copies_(std::make_unique<copies>()) {
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
  own_rows_ = {begin, end};
  own_columns_ = {left, left + l.columns_of(p)};
  row_ = static_cast<std::int64_t>(begin);
  rows_ = static_cast<std::int64_t>(end - begin);
  column_ = static_cast<std::int64_t>(left);
  columns_ = static_cast<std::int64_t>(l.columns_of(p));
  widen(row_, rows_, r.width, r.beyond, all_rows);
  widen(column_, columns_, r.width, r.beyond, all_columns);

  const std::uint64_t pitch = static_cast<std::uint64_t>(columns_) * o->element_bytes();
  copies_->memory.resize(static_cast<std::uint64_t>(rows_) * pitch);
  first_ = copies_->memory.data();
  copies_->watch.begin(o, access_kind::read, r.where, "halo_cache");
  std::vector<stretch> columns = wrapped(column_, columns_, static_cast<std::int64_t>(all_columns));
  if (const auto all = std::ranges::find(columns, all_columns, &stretch::count); all != columns.end()) {
    const stretch whole = *all;
    columns.erase(all);
    for (const stretch& s : columns)
      copies_->repeats.push_back(
          {s.at * o->element_bytes(), (whole.at + s.first) * o->element_bytes(), s.count * o->element_bytes()});
    columns.assign(1, whole);
  }
  for (const stretch& down : wrapped(row_, rows_, static_cast<std::int64_t>(all_rows)))
    for (const stretch& across : columns) {
      if (copies_->watch)
        for (std::uint64_t i = 0; i < down.count; ++i) copies_->watch.add(down.first + i, across.first, across.count);
      copies_->readers.emplace_back().begin(o, {down.first, down.count, across.first, across.count},
                                            copies_->memory.data() + down.at * pitch + across.at * o->element_bytes(),
                                            pitch);
    }
}

halo_scope::~halo_scope() = default;

void halo_scope::ready() {
  for (region_reader& r : copies_->readers) r.finish();
  if (!copies_->repeats.empty()) {
    const std::size_t pitch = copies_->memory.size() / static_cast<std::size_t>(rows_);
    for (std::byte* row = copies_->memory.data(); row != copies_->memory.data() + copies_->memory.size(); row += pitch)
      for (const copies::repeat& r : copies_->repeats) std::memcpy(row + r.to, row + r.from, r.bytes);
  }
  copies_->watch.end();
}

void halo_scope::close() {
  first_ = nullptr;
  copies_ = std::make_unique<copies>();
}

}  // namespace orrery::detail
