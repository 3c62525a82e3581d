// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/receiver.hpp>

#include <orrery/process/class_info.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/message_faces.hpp>

#include <exception>
#include <utility>

#include <fmt/format.h>

namespace orrery::task_detail {

void give_to_object(scheduler::pe& self, scheduler::slot& s, scheduler::delivery& d) {
  const scheduler::handler* const method = d.method;
  auto* const object = orrery::detail::object_in<tasks::receiver>(s);
  if (object == nullptr) {
    d.fail(std::make_exception_ptr(
        usage_error(errc::bad_argument,
                    fmt::format("the process is an object{}; only tasks, functions, and classes that derive from "
                                "orrery::tasks::receiver are given messages of tasks",
                                s.cls() != nullptr ? fmt::format(" of class {}", s.cls()->name) : std::string()))));
    return;
  }
  try {
    orrery_message m;
    describe(*take_delivered(self, d), true, m);
    object->on_message(tasks::mail(m));
  } catch (...) {
    if (d.payload != nullptr) {
      d.fail(std::current_exception());
    } else {
      self.failures().report_post(method, std::current_exception());
    }
  }
}

}  // namespace orrery::task_detail

namespace orrery::tasks {

void serve(receiver& r) {
  for (;;) r.on_message(receive());
}

void refuse(const mail& message, std::string_view task) {
  throw usage_error(errc::bad_argument,
                    fmt::format("task {}: a message with tag {}, which the task does not have, from task {}", task,
                                message.tag(), to_string(task_detail::address_of(message.sender()))));
}

}  // namespace orrery::tasks
