// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/outbound.hpp>
#include <orrery/wire/unique_ptr.hpp>

namespace orrery::scheduler {

outbound& outbound_table::put(std::uint32_t pe, wire::unique_ptr<outbound> c) {
  if (is_dense(pe)) {
    if (pe >= dense_.size()) dense_.resize(pe + 1);
  } else if (2 * (all_.size() + 1) > sparse_.size()) {
    grow();
  }
  outbound& added = *all_.emplace_back(std::move(c));
  enter(pe, added);
  return added;
}

void outbound_table::grow() {
  const std::vector<entry> old = std::exchange(sparse_, std::vector<entry>(sparse_.empty() ? 4 : 2 * sparse_.size()));
  for (const entry& e : old)
    if (e.to != nullptr) sparse_[place_of(e.pe)] = e;
}

}  // namespace orrery::scheduler
