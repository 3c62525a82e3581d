// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/layout.hpp>

#include <algorithm>

namespace orrery::detail {

std::uint32_t layout::part_of(std::uint32_t pe) const noexcept {
  return static_cast<std::uint32_t>(std::ranges::find(pes, pe) - pes.begin());
}

bool layout::valid() const noexcept {
  return rows.valid() && columns.valid() && columns.contiguous() && element_bytes != 0 &&
         (halo == 0 || rows.contiguous()) && halo <= rows.size() && halo <= columns.size() &&
         std::uint64_t{rows.parts()} * columns.parts() == pes.size();
}

}  // namespace orrery::detail
