// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/communicator.hpp>

#include <fmt/format.h>

namespace orrery::detail {

group_place::group_place(const group_handle& g) {
  pe& self = here_pe();
  self.require_process();
  const group_data& d = g.data();
  const address own = self.self();
  size_ = static_cast<std::uint32_t>(d.members.size());
  rank_ = size_;
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    if (d.members[rank] != own) continue;
    if (rank_ != size_)
      throw usage_error(errc::bad_argument,
                        fmt::format("communicator: this process is in the group twice, as {} and {}", rank_, rank));
    rank_ = rank;
  }
  if (rank_ == size_)
    throw usage_error(errc::bad_argument, verbatim,
                      "communicator: this process is no member of the group; each member makes one of its own, in "
                      "one of its methods");
  part_ = d.on(own.pe)->at;
  const group_part* const p = find_part(self, part_.slot, part_.generation);
  if (p == nullptr) throw process_gone(verbatim, "communicator: the group was dismissed or destroyed");
  index_ = static_cast<std::uint32_t>(p->index_of(*self.active()->process));
  process_ = own;
}

void group_place::meet(const collective& what, arrival& a) {
  check();
  pe& self = here_pe();
  if (self.self() != process_)
    throw usage_error(errc::bad_argument,
                      fmt::format("{}: the communicator is that of the process at {}; each member makes one of its own",
                                  what.name, to_string(process_)));
  group_part* const p = find_part(self, part_.slot, part_.generation);
  if (p == nullptr) throw process_gone(verbatim, fmt::format("{}: the group was dismissed or destroyed", what.name));
  p->watch_members();
  a.index = index_;
  p->arrive(what, a);
}

void group_place::throw_nowhere() {
  throw usage_error(errc::null_pointer, verbatim,
                    "communicator: it was default-constructed, made without a color, or dismissed");
}

void throw_not_made(std::size_t by) {
  throw process_gone(verbatim,
                     fmt::format("split: the member of rank {} could not make the group, and has said why", by));
}

}  // namespace orrery::detail
