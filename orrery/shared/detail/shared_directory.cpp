// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/node.hpp>
#include <orrery/shared/detail/access_census.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/sharing_check.hpp>

#include <algorithm>
#include <utility>

namespace orrery::detail {

shared_directory::shared_directory() { here_pe().layers().watchers().add(*this); }
shared_directory::~shared_directory() = default;

const std::shared_ptr<const shared_object>* shared_directory::find_slowly(const shared_id& id) noexcept {
  const auto at = objects_.find(id);
  if (at == objects_.end()) return nullptr;
  recent_[id.number % recent_.size()] = {id, &at->second};
  return &at->second;
}

const std::shared_ptr<const shared_object>* shared_directory::add(std::shared_ptr<const shared_object> o) {
  const shared_id id = o->about.id;
  return &objects_.try_emplace(id, std::move(o)).first->second;
}

void shared_directory::pes_lost(scheduler::pe& self) noexcept {
  for (const auto& [id, o] : objects_) {
    const auto lost = [&](std::uint32_t p) { return !self.owner().reachable(p); };
    if (o->whole != nullptr && std::ranges::any_of(o->how().pes, lost)) o->whole = nullptr;
  }
}

void shared_directory::remove(const shared_id& id) noexcept {
  recent_[id.number % recent_.size()] = {};
  objects_.erase(id);
  replicas.forget(id);
}

}  // namespace orrery::detail
