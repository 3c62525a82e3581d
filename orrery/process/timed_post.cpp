// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/timed_post.hpp>

#include <orrery/process/detail/in_time.hpp>

#include <algorithm>

namespace orrery {

bool timed_post::cancel() const {
  if (!sender_) throw usage_error(errc::null_pointer, verbatim, "timed_post: it was default-constructed");
  return detail::in_time([this] {
    try {
      destroy(sender_);
      return true;
    } catch (const process_gone&) {
      return false;
    } catch (const node_lost&) {
      return false;
    }
  });
}

namespace detail {

void await_turn(std::int64_t deadline_ns) {
  pe& self = here_pe();
  slot& s = receiving_slot(self);
  const auto look_for_end = [&] {
    s.search([&](scheduler::message* before, scheduler::message* m) {
      check_destroyed(self, s, before, m);
      return false;
    });
  };
  do look_for_end();
  while (self.functions().await_message(s, deadline_ns));
  look_for_end();
}

std::int64_t next_turn(std::int64_t deadline_ns, time_limit period) noexcept {
  const std::int64_t step = period.time().count();
  const std::int64_t late = std::max<std::int64_t>(transport::now_ns() - deadline_ns, 0);
  return deadline_ns + step + late / step * step;
}

void check_period(time_limit d) {
  if (d.time().count() <= 0)
    throw usage_error(errc::bad_argument, verbatim, "post_every: the time between two posts must be positive");
}

}  // namespace detail
}  // namespace orrery
