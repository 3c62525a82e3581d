// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>
#include <orrery/scheduler/activation.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace orrery::scheduler {
class pe;
}

namespace orrery::task_detail {

struct freed {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

/// The runtime's state of a task while its C function runs.
///
/// Problem: calls of task.h have no argument that says which task calls, and a table of tasks would
/// cost each blocked one memory, and each call a look-up. So the frame lies on the task's stack and
/// is its innermost activation, which the PE knows anyway. Used by its task only.
///
///     task_frame frame(self);
///     run(argument, size);          // in there: task_frame::of(self) == &frame
class task_frame : public scheduler::activation {
 public:
  explicit task_frame(scheduler::pe& self) noexcept;
  task_frame(const task_frame&) = delete;
  task_frame& operator=(const task_frame&) = delete;
  ~task_frame();

  /// The frame of the task that runs; null: what runs is no task of C.
  [[nodiscard]] static task_frame* of(scheduler::pe& self) noexcept;

  /// The message that the task has received last by the names of the thesis.
  wire::unique_ptr<void, freed> received;
  std::string error;  ///< of the last call that failed
  bool told_to_stop = false;
  bool hinted_to_stop = false;  ///< orrery_message_immediate was false for it
  bool has_buffers = false;  ///< or has had some
  orrery_strategy strategy = ORRERY_NOTIFY;
  std::uint32_t polls = 0;  ///< that have found nothing since the task has last let others run

 private:
  scheduler::pe& self_;
};

/// In a handler: the status for the exception that `call` has met; its text is kept for
/// orrery_error. Throws on what must end the task.
orrery_status status_of_exception(const char* call);
/// Keeps a text for orrery_error and returns the status.
orrery_status fail(orrery_status status, std::string_view text) noexcept;
[[noreturn]] void refuse_null(const char* call, const char* what);
[[noreturn]] void refuse_null_task(const char* call);
/// Throws usage_error if an argument is NULL that must not be: `what` says which.
inline void require(const void* argument, const char* call, const char* what) {
  if (argument == nullptr) [[unlikely]]
    refuse_null(call, what);
}
/// The same for a task that is all zero.
inline void require(const orrery_task& task, const char* call) {
  if (orrery_task_is_null(task)) [[unlikely]]
    refuse_null_task(call);
}
/// Thrown through C frames by orrery_exit.
struct task_exit {};

/// Runs a call of task.h, of which errors have that name: no exception but those that end the task
/// leaves it, and errno stays as it is.
template <class F>
orrery_status guarded(const char* call, F f) {
  struct keep_errno {
    int was = errno;
    ~keep_errno() { errno = was; }
  } kept;
  try {
    return f();
  } catch (...) {
    return status_of_exception(call);
  }
}

}  // namespace orrery::task_detail
