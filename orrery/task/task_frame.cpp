// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/slot.hpp>
#include <orrery/task/internal/mail.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/task/internal/task_frame.hpp>
#include <orrery/task/internal/words.hpp>
#include <orrery/wire/error.hpp>

#include <exception>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::task_detail {

namespace {

// Outside of tasks.
std::string& text_of_thread() {
  thread_local std::string text;
  return text;
}

orrery_status status_of(errc code) noexcept {
  switch (code) {
    case errc::process_gone:
      return ORRERY_GONE;
    case errc::node_lost:
      return ORRERY_NODE_LOST;
    case errc::deadlock:
      return ORRERY_DEADLOCK;
    case errc::stopped:
      return ORRERY_STOPPED;
    case errc::timeout:
      return ORRERY_TIMEOUT;
    case errc::mailbox_full:
      return ORRERY_FULL;
    case errc::name_not_found:
      return ORRERY_NAME_NOT_FOUND;
    case errc::name_taken:
      return ORRERY_NAME_TAKEN;
    case errc::message_truncated:
    case errc::message_corrupt:
    case errc::message_too_deep:
    case errc::message_misaligned:
      return ORRERY_BAD_MESSAGE;
    case errc::no_such_place:
    case errc::unknown_handler:  // a PE of another program
      return ORRERY_NO_PLACE;
    case errc::bad_remote_cast:
    case errc::not_in_process:
    case errc::not_running:
    case errc::already_running:
    case errc::null_pointer:
    case errc::bad_argument:
      return ORRERY_USAGE;
    default:
      return ORRERY_FAILED;
  }
}

}  // namespace

task_frame::task_frame(scheduler::pe& self) noexcept
    : activation{self.active()->process, &mail_handler, nullptr}, self_(self) {
  self.push_activation(*this);
}

task_frame::~task_frame() {
  if (has_buffers) task_state::of(self_).buffers.ended(self_.self());
  self_.pop_activation(*this);
}

task_frame* task_frame::of(scheduler::pe& self) noexcept {
  scheduler::activation* a = self.active();
  // An object of C++ that is given such a message runs by the same handler, but is no function.
  return a != nullptr && a->method == &mail_handler && a->process->is_function ? static_cast<task_frame*>(a) : nullptr;
}

orrery_status fail(orrery_status status, std::string_view text) noexcept {
  scheduler::pe* self = scheduler::current_pe;
  task_frame* frame = self != nullptr ? task_frame::of(*self) : nullptr;
  try {
    (frame != nullptr ? frame->error : text_of_thread()) = text;
  } catch (const std::bad_alloc&) {  // then there is an older one
  }
  return status;
}

void refuse_null(const char* call, const char* what) {
  throw usage_error(errc::bad_argument, fmt::format("{}: {} is NULL", call, what));
}
void refuse_null_task(const char* call) { throw usage_error(errc::null_pointer, call); }

orrery_status status_of_exception(const char* call) {
  scheduler::pe* self = scheduler::current_pe;
  task_frame* frame = self != nullptr ? task_frame::of(*self) : nullptr;
  try {
    throw;
  } catch (const stopped& e) {
    // A task that goes on and on would keep its PE from ending.
    if (frame != nullptr && std::exchange(frame->told_to_stop, true)) throw;
    if (frame != nullptr) frame->polls = 0;  // it may look for what is left
    return fail(ORRERY_STOPPED, in_words_of_c(e, call));
  } catch (const error& e) {
    return fail(status_of(e.code()), in_words_of_c(e, call));
  } catch (const std::bad_alloc&) {
    return fail(ORRERY_NO_MEMORY, fmt::format("{}: there is no memory for it", call));
  } catch (const std::length_error&) {  // of a container
    return fail(ORRERY_NO_MEMORY, fmt::format("{}: there is no memory for it", call));
  } catch (const std::exception& e) {
    return fail(ORRERY_FAILED, fmt::format("{}: {}", call, e.what()));
  }
}

}  // namespace orrery::task_detail

// For thesis.c.
extern "C" void orrery_message_keep(void* message) {
  namespace t = orrery::task_detail;
  orrery::scheduler::pe* self = orrery::scheduler::current_pe;
  if (t::task_frame* frame = self != nullptr ? t::task_frame::of(*self) : nullptr; frame != nullptr)
    frame->received.reset(message);
}

extern "C" orrery_status orrery_message_refuse(const char* text) {
  return orrery::task_detail::fail(ORRERY_USAGE, text);
}

extern "C" const char* orrery_error(void) {
  namespace t = orrery::task_detail;
  orrery::scheduler::pe* self = orrery::scheduler::current_pe;
  t::task_frame* frame = self != nullptr ? t::task_frame::of(*self) : nullptr;
  return (frame != nullptr ? frame->error : t::text_of_thread()).c_str();
}

extern "C" const char* orrery_status_text(orrery_status status) {
  switch (status) {
    case ORRERY_OK:
      return "it was done";
    case ORRERY_EMPTY:
      return "there is no such message";
    case ORRERY_TIMEOUT:
      return "nothing came within the time";
    case ORRERY_FULL:
      return "the receiver has no room now, and nothing was sent: try again, or send with ORRERY_WAIT";
    case ORRERY_GONE:
      return "the task has ended";
    case ORRERY_NODE_LOST:
      return "the OS process of the task has ended or was killed";
    case ORRERY_STOPPED:
      return "the world ends, or this task is to end: return from its function";
    case ORRERY_NAME_NOT_FOUND:
      return "no task has the name";
    case ORRERY_NAME_TAKEN:
      return "another task has the name";
    case ORRERY_WRONG_TYPE:
      return "the message is of another type: look at its tag first";
    case ORRERY_BAD_MESSAGE:
      return "the bytes are not a message of that type";
    case ORRERY_NO_PLACE:
      return "there is no such PE, node or machine";
    case ORRERY_NO_MEMORY:
      return "there is no memory for it";
    case ORRERY_DEADLOCK:
      return "to wait for it would never end";
    case ORRERY_USAGE:
      return "the program asked for what cannot be done; orrery_error() says what";
    case ORRERY_FAILED:
      return "it failed; orrery_error() says how";
  }
  return "this is no status";
}
