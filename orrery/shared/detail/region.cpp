// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/transfer_limits.hpp>
#include <orrery/shared/detail/word_copy.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::detail {

namespace {

using bytes = std::vector<std::byte>;

constexpr std::uint64_t fill_bytes = 16 << 10;  // of values that are written at once

/// Calls f(part_region) for each part that the region meets, cut into pieces.
template <class F>
void for_each_piece(const shared_object& o, const region& r, F f) {
  const layout& l = o.how();
  for (std::uint32_t p = 0; p < l.parts(); ++p) {
    part_region w = part_of_region(l, p, r);
    if (w.rows == 0 || w.columns == 0) continue;
    if (o.base[p] != nullptr) {
      f(w);
      continue;
    }
    const std::uint64_t row_bytes = w.columns * o.element_bytes();
    const std::uint64_t rows = std::max<std::uint64_t>(1, transfer_piece_bytes / row_bytes);
    for (std::uint64_t done = 0; done < w.rows; done += rows)
      f({p, w.row + done, std::min(rows, w.rows - done), w.column, w.columns});
  }
}

/// A piece as a block of rows, and where each row belongs in the memory of a region.
class piece_rows {
 public:
  piece_rows(const shared_object& o, const region& r, const part_region& w)
      : element_(o.element_bytes()),
        row_bytes_(w.columns * element_),
        walk_(o.how().rows.walk(o.how().row_part(w.part), w.row, w.row + w.rows)),
        one_run_(o.how().rows.contiguous()),
        region_row_(r.row),
        rows_(w.rows) {
    const std::uint32_t cp = o.how().column_part(w.part);
    column_offset_ = (o.how().columns.index(cp, w.column) - r.column) * element_;
  }
  /// Calls copy(block offset, memory offset, bytes) for runs of bytes.
  template <class F>
  void for_each_run(std::uint64_t block_pitch, std::uint64_t pitch, F copy) const {
    if (one_run_ && block_pitch == row_bytes_ && pitch == row_bytes_ && column_offset_ == 0) {
      copy(0, (walk_.front() - region_row_) * pitch, rows_ * row_bytes_);
      return;
    }
    std::uint64_t n = 0;
    for (const std::uint64_t row : walk_)
      copy(block_pitch * n++, (row - region_row_) * pitch + column_offset_, row_bytes_);
  }
  [[nodiscard]] std::uint64_t row_bytes() const noexcept { return row_bytes_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return row_bytes_ * rows_; }

 private:
  std::uint64_t element_;
  std::uint64_t row_bytes_;
  axis_walk walk_;
  bool one_run_;
  std::uint64_t region_row_;
  std::uint64_t rows_;
  std::uint64_t column_offset_ = 0;
};

// --- at the owner --------------------------------------------------------------------------------

/// They came in a message.
void check_request(const shared_object& o, const part_region& w) {
  if (!is_inside(o.how(), w) || o.base[w.part] == nullptr)
    throw bad_message(errc::message_corrupt, o.about.label + ": a request for elements that are not here");
}

bytes read_at_owner(shared_id id, part_region w) {
  const shared_object& o = find_object(id);
  check_request(o, w);
  const std::uint64_t row_bytes = w.columns * o.element_bytes();
  const std::uint64_t pitch = part_pitch(o, w.part);
  bytes out(w.rows * row_bytes);
  const std::byte* from = first_of(o, w);
  if (pitch == row_bytes) {
    copy_out(out.data(), from, out.size());
  } else {
    for (std::uint64_t i = 0; i < w.rows; ++i) copy_out(out.data() + i * row_bytes, from + i * pitch, row_bytes);
  }
  return out;
}

/// Nobody views a piece of a part. Its rows and columns may lie apart.
void require_not_viewed(const shared_object& o, const part_region& w, std::string_view writer) {
  if (!scope_guard::is_viewed(o)) [[likely]]
    return;
  const layout& l = o.how();
  l.rows.walk(l.row_part(w.part), w.row, w.row + w.rows).for_each_run([&](index_run rows) {
    l.columns.walk(l.column_part(w.part), w.column, w.column + w.columns).for_each_run([&](index_run columns) {
      scope_guard::require_not_viewed(o, {*rows.begin(), rows.size(), *columns.begin(), columns.size()}, writer);
    });
  });
}

void write_region_at_owner(shared_id id, part_region w, std::span<const std::byte> values, std::string_view writer) {
  const shared_object& o = find_object(id);
  check_request(o, w);
  require_not_viewed(o, w, writer);
  const std::uint64_t row_bytes = w.columns * o.element_bytes();
  if (values.size() != w.rows * row_bytes)
    throw bad_message(errc::message_corrupt, o.about.label + ": a write of another size");
  const std::uint64_t pitch = part_pitch(o, w.part);
  std::byte* const to = first_of(o, w);
  for (std::uint64_t i = 0; i < w.rows; ++i) copy_in(to + i * pitch, values.data() + i * row_bytes, row_bytes);
}

}  // namespace

void fill_at_owner(shared_id id, std::uint32_t part, std::span<const std::byte> value, std::string_view writer) {
  const shared_object& o = find_object(id);
  check_request(o, {part, 0, 0, 0, 0});
  const part_region whole{part, 0, o.how().rows_of(part), 0, o.how().columns_of(part)};
  require_not_viewed(o, whole, writer);
  // in one go where the elements follow each other, else row by row
  const bool in_rows = o.how().halo != 0;
  const std::uint64_t all = (in_rows ? o.how().columns_of(part) : o.how().elements_of(part)) * o.element_bytes();
  if (value.size() != o.element_bytes())
    throw bad_message(errc::message_corrupt, o.about.label + ": a value of another size");
  if (o.how().elements_of(part) == 0) return;
  // From memory of its own, as others may write what is filled.
  const std::uint64_t repeats = std::max<std::uint64_t>(1, std::min(all, fill_bytes) / value.size());
  bytes pattern;
  pattern.reserve(repeats * value.size());
  for (std::uint64_t i = 0; i < repeats; ++i) pattern.insert(pattern.end(), value.begin(), value.end());
  for (std::uint64_t row = 0; row < (in_rows ? o.how().rows_of(part) : 1); ++row)
    for (std::uint64_t done = 0; done < all;) {
      const std::uint64_t n = std::min<std::uint64_t>(pattern.size(), all - done);
      copy_in(o.base[part] + row * part_pitch(o, part) + done, pattern.data(), n);
      done += n;
    }
}

std::uint64_t part_pitch(const shared_object& o, std::uint32_t part) {
  return o.how().pitch_of(part) * o.element_bytes();
}
std::byte* first_of(const shared_object& o, const part_region& w) {
  return o.base[w.part] + w.row * part_pitch(o, w.part) + w.column * o.element_bytes();
}

bool is_inside(const layout& l, const part_region& w) {
  const auto inside = [](std::uint64_t first, std::uint64_t n, std::uint64_t size) {
    return first <= size && n <= size - first;
  };
  return w.part < l.parts() && inside(w.row, w.rows, l.rows_of(w.part)) &&
         inside(w.column, w.columns, l.columns_of(w.part));
}

part_region part_of_region(const layout& l, std::uint32_t part, const region& r) {
  const std::uint32_t rp = l.row_part(part);
  const std::uint32_t cp = l.column_part(part);
  const std::uint64_t row = l.rows.below(rp, r.row);
  const std::uint64_t column = l.columns.below(cp, r.column);
  return {part, row, l.rows.below(rp, r.row + r.rows) - row, column,
          l.columns.below(cp, r.column + r.columns) - column};
}

void require_inside(const shared_object& o, const region& r) {
  const layout& l = o.how();
  const bool rows = r.row <= l.rows.size() && r.rows <= l.rows.size() - r.row;
  const bool columns = r.column <= l.columns.size() && r.columns <= l.columns.size() - r.column;
  if (rows && columns) return;
  if (l.columns.size() == 1 && columns) throw_outside_rows(o, r.row, r.rows);
  throw_outside_matrix(o, r);
}

void require_in_scope(const shared_object& o, const region& r, std::uint64_t row, std::uint64_t column) {
  if (row - r.row < r.rows && column - r.column < r.columns) [[likely]]
    return;
  if (row >= o.rows || column >= o.columns) throw_outside(o, row, column);
  throw std::out_of_range(
      o.columns == 1
          ? fmt::format("{}: index {} is outside of the {} elements from {} on that its scope is open for",
                        o.about.label, row, r.rows, r.row)
          : fmt::format("{}: index [{}, {}] is outside of the {} x {} elements from [{}, {}] on that its scope is open "
                        "for",
                        o.about.label, row, column, r.rows, r.columns, r.row, r.column));
}

region_in_place find_in_place(const shared_object& o, const region& r) {
  if (o.in_order != nullptr) return {o.in_order + (r.row * o.columns + r.column) * o.element_bytes(), o.columns};
  if (r.rows == 0 || r.columns == 0) return {};
  const layout& l = o.how();
  const layout::place first = l.find(r.row, r.column);
  const layout::place last = l.find(r.row + r.rows - 1, r.column + r.columns - 1);
  const std::uint64_t pitch = l.pitch_of(first.part);
  // Numbers within a part ascend with the indices: if none is left out, all between are there.
  if (last.part != first.part || last.local - first.local != (r.rows - 1) * pitch + r.columns - 1) return {};
  if (o.base[first.part] == nullptr) return {};
  return {o.base[first.part] + first.local * o.element_bytes(), pitch};
}

void region_reader::begin(std::shared_ptr<const shared_object> from, const region& r, std::byte* to,
                          std::uint64_t pitch) {
  require_inside(*from, r);
  from_ = std::move(from);
  region_ = r;
  to_ = to;
  pitch_ = pitch;
  for_each_piece(*from_, r, [&](const part_region& w) {
    if (from_->base[w.part] == nullptr) waiting_.push_back(w);
  });
  ask();
  for_each_piece(*from_, r, [&](const part_region& w) {
    if (from_->base[w.part] != nullptr) place(w, first_of(*from_, w), part_pitch(*from_, w.part));
  });
}

void region_reader::ask() {
  while (!waiting_.empty() && asked_.size() < transfer_window) {
    const part_region w = waiting_.front();
    waiting_.pop_front();
    asked_.push_back({w, start_call<&read_at_owner>(orrery::pe(from_->how().pes[w.part]), from_->about.id, w)});
  }
}

void region_reader::finish() {
  while (!asked_.empty()) {
    const bytes answer = asked_.front().answer.get();
    const part_region w = asked_.front().what;
    asked_.pop_front();
    ask();
    const std::uint64_t row_bytes = w.columns * from_->element_bytes();
    if (answer.size() != w.rows * row_bytes)
      throw bad_message(errc::message_corrupt, from_->about.label + ": another number of elements than was asked for");
    place(w, answer.data(), row_bytes);
  }
}

void region_reader::place(const part_region& what, const std::byte* elements, std::uint64_t from_pitch) const {
  place_piece(*from_, region_, what, elements, from_pitch, to_, pitch_);
}

void for_each_piece_of(const shared_object& o, const region& r, const std::function<void(const part_region&)>& f) {
  for_each_piece(o, r, f);
}

void place_piece(const shared_object& o, const region& r, const part_region& what, const std::byte* elements,
                 std::uint64_t from_pitch, std::byte* to, std::uint64_t pitch) {
  piece_rows(o, r, what).for_each_run(from_pitch, pitch, [&](std::uint64_t from, std::uint64_t at, std::uint64_t n) {
    copy_out(to + at, elements + from, n);
  });
}

void region_writer::begin(const shared_object& o, const region& r, const std::byte* from, std::uint64_t pitch) {
  try {
    send(o, r, from, pitch);
  } catch (...) {  // what was sent is over when the caller hears of it
    (void)detail::finish(sent_, [] { throw; });
  }
}

void region_writer::send(const shared_object& o, const region& r, const std::byte* from, std::uint64_t pitch) {
  require_inside(o, r);
  scope_guard::require_not_viewed(o, {r.row, r.rows, r.column, r.columns}, site_);
  for_each_piece(o, r, [&](const part_region& w) {
    const piece_rows rows(o, r, w);
    if (o.base[w.part] != nullptr) {
      std::byte* const to = first_of(o, w);
      rows.for_each_run(part_pitch(o, w.part), pitch,
                        [&](std::uint64_t in_part, std::uint64_t in_memory, std::uint64_t n) {
                          copy_in(to + in_part, from + in_memory, n);
                        });
      return;
    }
    bytes values(rows.bytes());
    rows.for_each_run(rows.row_bytes(), pitch, [&](std::uint64_t in_block, std::uint64_t in_memory, std::uint64_t n) {
      std::memcpy(values.data() + in_block, from + in_memory, n);
    });
    sent_.push_back(start_call<&write_region_at_owner>(orrery::pe(o.how().pes[w.part]), o.about.id, w,
                                                       std::span<const std::byte>(values), site_.text()));
    if (sent_.size() > transfer_window) {
      future<void> oldest = std::move(sent_.front());
      sent_.pop_front();
      oldest.get();
    }
  });
}

void region_writer::finish() {
  (void)detail::finish(sent_, [] {});
}

void write_region(const shared_object& o, const region& r, const std::byte* from, std::uint64_t pitch,
                  const write_site& site) {
  region_writer w(site);
  w.begin(o, r, from, pitch);
  w.finish();
}

void fill_object(const shared_id& id, std::span<const std::byte> value, const write_site& site) {
  const std::shared_ptr<const shared_object> o = hold_object(id);
  scope_guard::require_not_viewed(*o, {0, o->rows, 0, o->columns}, site);
  std::vector<future<void>> filled;
  const std::string writer = site.text();
  finish(filled, [&] {
    for (std::uint32_t p = 0; p < o->how().parts(); ++p)
      filled.push_back(start_call<&fill_at_owner>(orrery::pe(o->how().pes[p]), id, p, value, writer));
  });
}

}  // namespace orrery::detail
