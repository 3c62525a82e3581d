// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/member.hpp>

#include <fmt/format.h>

namespace orrery::detail {

constinit thread_local construction_scope* construction_scope::first_ = nullptr;

void member_base::join(group_handle& where) noexcept {
  const construction_scope* c = construction_scope::first_;
  if (c == nullptr) [[likely]]
    return;
  const slot* s = here_pe().active() != nullptr ? here_pe().active()->process : nullptr;
  while (c != nullptr && c->process_ != s) c = c->next_;
  if (c == nullptr) return;
  where = c->part_->group();
  handle_ = &where;
  part_ = c->part_->at();
  index_ = c->index_;
  rank_ = c->part_->members()[index_].rank;
}

member_base::~member_base() {
  if (handle_ == nullptr || scheduler::current_pe == nullptr) return;
  if (group_part* p = find_part(*scheduler::current_pe, part_.slot, part_.generation)) p->member_gone(rank_);
}

void member_base::meet(const collective& what, arrival& a) {
  check();
  pe& self = here_pe();
  group_part* p = find_part(self, part_.slot, part_.generation);
  if (p == nullptr) throw process_gone(verbatim, fmt::format("{}: the group was dismissed or destroyed", what.name));
  a.index = index_;
  p->arrive(what, a);
}

void member_base::throw_alone() {
  throw usage_error(errc::bad_argument,
                    "member: this process is in no group: spawn_group makes members, spawn does not");
}

}  // namespace orrery::detail
