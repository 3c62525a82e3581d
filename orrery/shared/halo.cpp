// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/halo.hpp>
#include <orrery/shared/region.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <deque>
#include <vector>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

/// A run of indices of an axis, and where it lies in a copy.
struct stretch {
  std::uint64_t first;
  std::uint64_t count;
  std::uint64_t at;
};

/// Indices [first, first + count) of an axis of `size`, beyond whose ends it begins again.
std::vector<stretch> wrapped(std::int64_t first, std::int64_t count, std::int64_t size) {
  std::vector<stretch> all;
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t at = ((first + done) % size + size) % size;
    const std::int64_t n = std::min(count - done, size - at);
    all.push_back({static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(n), static_cast<std::uint64_t>(done)});
    done += n;
  }
  return all;
}

/// Widens [first, first + count) by the width of a halo.
void widen(std::int64_t& first, std::int64_t& count, std::uint64_t width, edges beyond, std::uint64_t size) {
  const auto w = static_cast<std::int64_t>(width);
  const auto n = static_cast<std::int64_t>(size);
  const std::int64_t begin = beyond == edges::open ? std::max<std::int64_t>(0, first - w) : first - w;
  const std::int64_t end = beyond == edges::open ? std::min(n, first + count + w) : first + count + w;
  first = begin;
  count = end - begin;
}

}  // namespace

struct halo_scope::copies {
  std::vector<std::byte> memory;
  std::deque<region_reader> readers;
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
  for (const stretch& down : wrapped(row_, rows_, static_cast<std::int64_t>(all_rows)))
    for (const stretch& across : wrapped(column_, columns_, static_cast<std::int64_t>(all_columns))) {
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
  copies_->watch.end();
}

void halo_scope::close() {
  first_ = nullptr;
  copies_ = std::make_unique<copies>();
}

}  // namespace orrery::detail
