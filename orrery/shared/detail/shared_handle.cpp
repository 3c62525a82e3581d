// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/or_undo.hpp>
#include <orrery/shared/copy.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/detail/shared_handle.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/shared/sharing_check.hpp>
#include <orrery/wire/error.hpp>

#include <fmt/format.h>

namespace orrery::detail {

shared_id make_shared(const char* what, std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes,
                      const distribution& how, std::span<const std::byte> value, const std::source_location& where,
                      std::uint32_t held_size) {
  const shared_id id = make_shared_object(how.resolve(rows, columns, element_bytes), made_at(what, where), held_size);
  if (!value.empty()) or_undo([&] { fill_object(id, value, {"fill", where}); }, [&] { destroy_shared(id, where); });
  return id;
}

void destroy_shared(const shared_id& id, const std::source_location& where) {
  destroy_shared_object(id, line_of(where));
}
void fill_shared(const shared_id& id, std::span<const std::byte> value, const std::source_location& where) {
  watched_access watch;
  if (checks_sharing()) {
    const std::shared_ptr<const shared_object> o = hold_object(id);
    watch.begin(o, access_kind::write, where, "fill");
    watch.add(0, 0, o->rows * o->columns);
  }
  fill_object(id, value, {"fill", where});
}

void read_shared(const shared_id& id, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                 std::uint64_t columns, std::byte* to, std::uint64_t pitch, const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(id);
  require_inside(*o, {row, rows, column, columns});  // before its rows are gone through
  watched_access watch;
  watch.begin(o, access_kind::read, where, "copy");
  if (watch)
    for (std::uint64_t i = row; i < row + rows; ++i) watch.add(i, column, columns);
  region_reader r;
  r.begin(o, {row, rows, column, columns}, to, pitch);
  r.finish();
}
void write_shared(const shared_id& id, std::uint64_t row, std::uint64_t rows, std::uint64_t column,
                  std::uint64_t columns, const std::byte* from, std::uint64_t pitch,
                  const std::source_location& where) {
  const std::shared_ptr<const shared_object> o = hold_object(id);
  require_inside(*o, {row, rows, column, columns});
  watched_access watch;
  watch.begin(o, access_kind::write, where, "copy");
  if (watch)
    for (std::uint64_t i = row; i < row + rows; ++i) watch.add(i, column, columns);
  write_region(*o, {row, rows, column, columns}, from, pitch, {"copy", where});
}

own_elements elements_of_this_pe(const shared_id& id) {
  const shared_object& o = find_object(id);
  const layout& l = o.how();
  if (o.own_part == l.parts()) return {};
  const std::uint32_t p = o.own_part;
  return {o.base[p],
          l.rows_of(p),
          l.columns_of(p),
          l.pitch_of(p),
          l.rows.walk(l.row_part(p), 0, l.rows_of(p)),
          l.columns.walk(l.column_part(p), 0, l.columns_of(p))};
}

void throw_other_size(std::uint64_t from, std::uint64_t to) {
  throw usage_error(errc::bad_argument,
                    fmt::format("copy: {} elements to a place for {}; give both the same size", from, to));
}
void throw_other_shape(const rectangle& from, const rectangle& to) {
  if (from.columns == 1 && to.columns == 1) throw_other_size(from.rows, to.rows);
  throw usage_error(errc::bad_argument,
                    fmt::format("copy: {} x {} elements to a place for {} x {}; give both the same shape", from.rows,
                                from.columns, to.rows, to.columns));
}
void throw_other_size(const rectangle& part, std::uint64_t elements) {
  if (part.columns == 1 && part.column == 0)
    throw usage_error(errc::bad_argument,
                      fmt::format("copy: {} elements from index {} on, and memory for {}; give both the same size",
                                  part.rows, part.row, elements));
  throw usage_error(
      errc::bad_argument,
      fmt::format("copy: a part of {} x {} elements from [{}, {}] on, and {} elements; a part is given as (first row, "
                  "rows, first column, columns); give both the same size",
                  part.rows, part.columns, part.row, part.column, elements));
}

}  // namespace orrery::detail
