// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/load_scope.hpp>

#include <orrery/transport/wait.hpp>

namespace orrery::detail {

void load_scope::begin(const cell_base& c) noexcept {
  part_ = c.part;
  self_ = &part_->self();
  process_ = c.process;
  position_ = c.position;
  parks_ = self_->count().parks;
  begin_ = transport::now_ns();
}
// Others have run on the PE if anything was parked; then it is not known what was this element's,
// and it and its array may have ended.
void load_scope::end() noexcept {
  if (self_->count().parks != parks_) return;
  const auto& cells = part_->cells();
  if (position_ < cells.size() && cells[position_]->process == process_)
    cells[position_]->load_ns += static_cast<std::uint64_t>(transport::now_ns() - begin_);
}

}  // namespace orrery::detail
