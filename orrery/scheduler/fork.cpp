// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fork.hpp>

#include <orrery/scheduler/pe.hpp>

#include <string_view>

#include <pthread.h>
#include <unistd.h>

namespace orrery::scheduler {

constinit bool is_forked_child = false;

namespace {
// In the child, on its only thread, before fork() returns.
void leave_parent() {
  // a child of another thread of the program may run a world of its own
  if (current_pe == nullptr) return;
  is_forked_child = true;
  // Inline calls are to end on their slow path, which ends the child.
  for (activation* a = current_pe->active(); a != nullptr && a->below != nullptr; a = a->below)
    a->process->dying = true;
  current_pe = nullptr;
}
}  // namespace

void watch_for_fork() {
  static const int registered = pthread_atfork(nullptr, nullptr, leave_parent);
  (void)registered;
}

void end_forked_child() noexcept {
  constexpr std::string_view line =
      "orrery: a method has returned in a child that it made with fork(), which is no part of the world: end the child "
      "with _exit or exec\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(1);
}

}  // namespace orrery::scheduler
