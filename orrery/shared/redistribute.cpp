// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/finish.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/shared/detail/object.hpp>
#include <orrery/shared/detail/region.hpp>
#include <orrery/shared/redistribute.hpp>
#include <orrery/shared/release.hpp>
#include <orrery/shared/sharing_check.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace orrery::detail {

namespace {

constexpr std::uint64_t block_bytes = 4 << 20;  // of an owner's elements that are copied at once

/// Writes single elements, collected for each owner.
class element_writer : public release_scope {
 public:
  using release_scope::put;
  using release_scope::release_scope;
};

/// Rows of the part that follow each other: in blocks of rows.
void push_blocks(const shared_object& from, const shared_object& to, std::string_view writer) {
  const layout& l = from.how();
  const std::uint32_t p = from.own_part;
  const std::uint64_t first_row = l.rows.index(l.row_part(p), 0);
  const std::uint64_t first_column = l.columns.index(l.column_part(p), 0);
  const std::uint64_t columns = l.columns_of(p);
  const std::uint64_t pitch = l.pitch_of(p) * from.element_bytes();
  const std::uint64_t rows = l.rows_of(p);
  const std::uint64_t step = std::max<std::uint64_t>(1, block_bytes / pitch);
  for (std::uint64_t done = 0; done < rows; done += step)
    write_region(to, {first_row + done, std::min(step, rows - done), first_column, columns},
                 from.base[p] + done * pitch, pitch, write_site(writer));
}

/// Rows that do not: element by element, which the release scope puts together.
void push_elements(const shared_object& from, const shared_object& to, const std::source_location& where) {
  const layout& l = from.how();
  const std::uint32_t p = from.own_part;
  const std::uint64_t columns = l.columns_of(p);
  const std::uint64_t first_column = l.columns.index(l.column_part(p), 0);
  element_writer w(release_request{to.about.id, 0, to.rows, 0, to.columns, where, false});
  const std::byte* at = from.base[p];
  for (const std::uint64_t row : l.rows.walk(l.row_part(p), 0, l.rows_of(p)))
    for (std::uint64_t j = 0; j < columns; ++j, at += from.element_bytes()) w.put(row, first_column + j, at);
  w.close();
}

/// At an owner.
void push_own_elements(shared_id from, shared_id to, std::string_view writer) {
  const std::shared_ptr<const shared_object> a = hold_object(from);
  const std::shared_ptr<const shared_object> b = hold_object(to);
  if (a->own_part == a->how().parts() || a->how().elements_of(a->own_part) == 0) return;
  if (a->rows != b->rows || a->columns != b->columns || a->element_bytes() != b->element_bytes())
    throw bad_message(errc::message_corrupt, a->about.label + ": a copy to an object of another shape");
  if (a->how().rows.contiguous()) {
    push_blocks(*a, *b, writer);
  } else {
    push_elements(*a, *b, std::source_location::current());
  }
}

}  // namespace

void copy_elements(const shared_id& from, const shared_id& to, const std::source_location& where) {
  const std::shared_ptr<const shared_object> a = hold_object(from);
  const std::shared_ptr<const shared_object> b = hold_object(to);
  require_owners(*a);
  require_owners(*b);
  scope_guard writes;
  writes.begin(b, scope_guard::kind::write, where);
  watched_access from_watch;
  watched_access to_watch;
  from_watch.begin(a, access_kind::read, where, "redistribute");
  to_watch.begin(b, access_kind::write, where, "redistribute");
  if (from_watch) from_watch.add(0, 0, a->rows * a->columns);
  if (to_watch) to_watch.add(0, 0, b->rows * b->columns);
  std::vector<future<void>> sent;
  finish(sent, [&] {
    for (std::uint32_t p = 0; p < a->how().parts(); ++p)
      if (a->how().elements_of(p) != 0)
        sent.push_back(start_call<&push_own_elements>(orrery::pe(a->how().pes[p]), from, to,
                                                      write_site{"redistribute", where}.text()));
  });
}

}  // namespace orrery::detail
