// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/task/typed.hpp>

namespace orrery::tasks {

/// A process of C++ that receives messages of tasks.
///
/// Problem: tasks of C ask for their messages, objects are called. So a class that derives from
/// this one is given each message that is sent to its process by a method, on_message, between its
/// other methods and one at a time; a C task sends to it as to a task, and finds it by its name. A
/// function process can have such an object, too, and let it serve(). If a header of orrery-cc
/// describes the task, `T::receiver` calls a method for each tag.
///
///     struct Board : weather::Board::receiver {
///       void handle_READING(weather::Reading message) override { ... }
///       int total() const;
///     };
///     ORRERY_PROCESS(Board, total);
///
/// An exception of on_message is reported, as that of any one-way message.
class receiver {
 public:
  receiver() = default;
  receiver(const receiver&) = default;
  receiver& operator=(const receiver&) = default;
  virtual ~receiver() = default;
  /// Is given each message, one at a time. May park.
  virtual void on_message(mail message) = 0;
};
ORRERY_PROCESS(receiver);

/// Gives each message that comes to the calling function process to `r`, until the process is to
/// end. Parks. Throws stopped then, and what on_message throws.
[[noreturn]] void serve(receiver& r);

/// For generated code: a message with a tag that the task does not have. Throws usage_error.
[[noreturn]] void refuse(const mail& message, std::string_view task);

}  // namespace orrery::tasks
