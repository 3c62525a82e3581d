// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/runtime.hpp>
#include <orrery/shared/detail/layout.hpp>
#include <orrery/shared/distribution.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

namespace orrery {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw usage_error(errc::bad_argument, "distribution of shared data: " + why);
}

void check_size(std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (columns != 0 && rows > most / element_bytes / columns)
    refuse(fmt::format("{} x {} elements of {} bytes are more than there are addresses; make it smaller", rows, columns,
                       element_bytes));
}

}  // namespace

detail::layout distribution::resolve(std::uint64_t rows, std::uint64_t columns, std::uint32_t element_bytes) const {
  check_size(rows, columns, element_bytes);
  detail::layout l;
  l.element_bytes = element_bytes;
  l.pes = pes_;
  if (kind_ == kind::one) l.pes = {where_.resolve()};
  if (l.pes.empty()) {
    l.pes = program_pes();
    if (kind_ == kind::bounds && ends_.size() < l.pes.size()) l.pes.resize(ends_.size());
    const std::uint64_t wanted = std::uint64_t{down_} * across_;
    if (kind_ == kind::tiles && wanted < l.pes.size()) l.pes.resize(wanted);
  }
  if (l.pes.empty()) refuse("it names no PE; bounds() has one end for each PE, and tiles() one tile");
  std::vector<std::uint32_t> once = l.pes;
  std::ranges::sort(once);
  if (const auto twice = std::ranges::adjacent_find(once); twice != once.end())
    refuse(fmt::format("PE {} is listed twice; name each PE once", *twice));
  for (const std::uint32_t p : l.pes) (void)pe(p).resolve();

  const auto parts = static_cast<std::uint32_t>(l.pes.size());
  l.rows = detail::axis::in_blocks(rows, 1);
  l.columns = detail::axis::in_blocks(columns, 1);
  switch (kind_) {
    case kind::block:
      l.rows = detail::axis::in_blocks(rows, parts);
      break;
    case kind::cyclic:
      if (block_ == 0) refuse("block_cyclic(0): runs have at least one element");
      l.rows = detail::axis::dealt_out(rows, parts, block_);
      break;
    case kind::bounds:
      if (ends_.size() != parts)
        refuse(fmt::format("bounds() has {} ends for {} PEs; give one end for each PE", ends_.size(), parts));
      if (!std::ranges::is_sorted(ends_) || ends_.back() != rows)
        refuse(fmt::format("the ends of bounds() must ascend to the size, which is {}", rows));
      l.rows = detail::axis::with_ends(ends_);
      break;
    case kind::one:
      break;
    case kind::columns:
      l.columns = detail::axis::in_blocks(columns, parts);
      break;
    case kind::tiles:
      if (down_ == 0 || across_ == 0 || std::uint64_t{down_} * across_ != parts)
        refuse(fmt::format("{} x {} tiles for {} PEs; there must be one tile for each PE", down_, across_, parts));
      l.rows = detail::axis::in_blocks(rows, down_);
      l.columns = detail::axis::in_blocks(columns, across_);
      break;
  }
  if (halo_ != 0) {
    if (!l.rows.contiguous())
      refuse("with_halo: rows in turn have others around each of them; deal out blocks, bounds, columns or tiles");
    if (halo_ > rows || halo_ > columns)
      refuse(fmt::format("with_halo({}): wider than the {} x {} elements; make it narrower", halo_, rows, columns));
    check_size(rows + 2 * halo_ * l.rows.parts(), columns + 2 * halo_ * l.columns.parts(), element_bytes);
    l.halo = halo_;
  }
  return l;
}

const distribution& detail::without_halo(const distribution& how) {
  if (how.halo() != 0)
    refuse(fmt::format("with_halo({}): only a matrix of trivially copyable elements has room for a halo; leave it out",
                       how.halo()));
  return how;
}

}  // namespace orrery
