// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/task/internal/watches.hpp>

#include <exception>
#include <utility>

namespace orrery::task_detail {

namespace {

// The status in an orrery_ended.
orrery_status status_of(orrery::detail::future_state<ending>& s) noexcept {
  if (s.scheduler::sink::state != scheduler::sink::status::value) return ORRERY_FAILED;
  return s.value.cause == end_cause::node_lost ? ORRERY_NODE_LOST : ORRERY_OK;
}

}  // namespace

orrery::detail::watch_key new_watch(scheduler::pe& self) {
  orrery::detail::watch_key key = orrery::detail::new_watch(self);
  key.number |= orrery::detail::end_watch::reported_too;
  return key;
}

void task_watches::add(const address& task, std::uint64_t tag) {
  const orrery::detail::watch_key key = new_watch(self_);
  auto end = orrery::detail::await_end(task, key);
  const address watcher = self_.self();
  self_.active()->process->watched = true;
  all_.emplace(watcher.slot, watch{task, key, tag});
  orrery::detail::when_done(self_, std::move(end),
                            [watcher, number = key.number](scheduler::pe& at, orrery::detail::future_state<ending>& s) {
                              s.taken = true;
                              if (task_state* const here = task_state::find(at); here != nullptr)
                                here->watches.told(watcher, number, status_of(s));
                            });
}

void task_watches::told(const address& watcher, std::uint32_t number, orrery_status status) noexcept try {
  auto [at, end] = all_.equal_range(watcher.slot);
  while (at != end && at->second.key.number != number) ++at;
  if (at == end) return;  // it was taken back
  const watch of = at->second;
  all_.erase(at);
  if (status == ORRERY_FAILED && self_.refusing()) return;  // nobody has ended but the world
  const orrery_ended ended{task_of(of.task), status};
  put_mail(self_, watcher, {of.tag, 0, of.task, 0}, sizeof ended, bytes_writer(&ended, sizeof ended));
} catch (...) {
  self_.failures().report_post(&mail_handler, std::current_exception());
}

void task_watches::ended(const address& watcher) noexcept {
  // Taken out before: a watch that is taken back is told of, too.
  for (auto at = all_.find(watcher.slot); at != all_.end(); at = all_.find(watcher.slot)) {
    const watch of = at->second;
    all_.erase(at);
    orrery::detail::forget_end(self_, of.task, of.key);
  }
}

}  // namespace orrery::task_detail
