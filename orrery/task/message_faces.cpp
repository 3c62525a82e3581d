// SPDX-License-Identifier: Apache-2.0
// Messages of tasks as C sees them: sending, receiving, strategies.
#include <orrery/task/task.h>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/task/internal/convert.hpp>
#include <orrery/task/internal/linear_form.hpp>
#include <orrery/task/internal/message_faces.hpp>
#include <orrery/task/internal/state.hpp>
#include <orrery/task/internal/task_frame.hpp>

#include <bit>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

namespace orrery::task_detail {
namespace {

using detail::here_pe;
using scheduler::pe;

constexpr std::uint32_t empty_looks = 16;  // a task that polls lets others run after so many
// in a simulation, where a task that polls would stop the time
constexpr std::int64_t look_ns = 100;

// The other tasks of the PE run, and what has come from other PEs is taken in.
void let_others_run(pe& self) {
  if (task_frame* const frame = task_frame::of(self); frame != nullptr) frame->polls = 0;
  if (self.refusing()) self.shutdown().refuse("orrery_receive");
  self.flow().listen();
}

// A request to end is one message, which is taken out when it is found. So whoever polls asks here.
void refuse_at_end(pe& self, const scheduler::slot& s) {
  if (self.refusing()) self.shutdown().refuse("orrery_receive");
  if (s.dying) throw stopped("receive: the process was destroyed");
}

void looked_in_vain(pe& self) {
  orrery_compute(look_ns);
  if (task_frame* const frame = task_frame::of(self); frame == nullptr || ++frame->polls == empty_looks)
    let_others_run(self);
}

// It has looked in vain since it was told to end. It may look for what is left, but not for ever.
orrery_status looked_at_end(pe& self, const scheduler::slot& s) {
  const task_frame* const frame = task_frame::of(self);
  if (frame == nullptr || !frame->told_to_stop || frame->polls == 0) refuse_at_end(self, s);
  return fail(ORRERY_STOPPED, fmt::format("orrery_receive: {}", orrery_status_text(ORRERY_STOPPED)));
}

// Looks until there is a message; null: it is too late.
scheduler::message* poll_mail(pe& self, scheduler::slot& s, const std::uint64_t* tag, std::int64_t deadline, bool take,
                              bool gives_core_away) {
  for (;;) {
    orrery_compute(look_ns);
    let_others_run(self);
    if (scheduler::message* const m = find_mail(self, s, tag, take); m != nullptr) return m;
    refuse_at_end(self, s);
    if (deadline >= 0 && orrery_now_ns() >= deadline) return nullptr;
    if (gives_core_away && self.simulated() == nullptr) ::sched_yield();
  }
}

// Those of a message that is being opened are its receiver's from now on.
std::vector<orrery_buffer> buffers_of(const orrery_message& message) {
  std::vector<orrery_buffer> all;
  if (message.handle_ == nullptr) return all;
  pe& self = here_pe();
  for (mailed_buffer& b : view_of(*static_cast<scheduler::message*>(message.handle_)).buffers) {
    all.push_back(task_state::of(self).buffers.add(self, std::move(b.memory), true));
    b.id = all.back().id_;
  }
  return all;
}

orrery_status status_of(sent said, const orrery_task& to, const char* call) {
  switch (said) {
    case sent::yes:
      return ORRERY_OK;
    case sent::full:
      return fail(ORRERY_FULL, fmt::format("{}: the receiver has no room now", call));
    default:
      return fail(ORRERY_GONE, fmt::format("{}: task {} has ended", call, to_string(address_of(to))));
  }
}

}  // namespace

sent send_message(const orrery_task& to, std::uint64_t tag, const orrery_message_type& type, const void* value,
                  bool may_wait) {
  std::vector<orrery_buffer> buffers;
  const std::size_t bytes = linear_size(type, value, &buffers);
  pe& self = here_pe();
  const mail_head head{tag, type.id, self.self(), static_cast<std::uint32_t>(buffers.size())};
  const linear_writer writer(type, value);
  return buffers.empty() ? send_mail(self, address_of(to), head, bytes, writer, may_wait)
                         : send_mail(self, address_of(to), head, bytes, writer, may_wait, buffers);
}

sent send_plain(const orrery_task& to, std::uint64_t tag, const void* data, std::size_t size, bool may_wait) {
  pe& self = here_pe();
  return send_mail(self, address_of(to), {tag, 0, self.self(), 0}, size, bytes_writer(data, size), may_wait);
}

void describe(scheduler::message& m, bool taken, orrery_message& to) noexcept {
  const mail_view view = view_of(m);
  to.tag = view.head->tag;
  to.type = view.head->type;
  to.sender = task_of(view.head->sender);
  to.data = taken ? view.bytes : nullptr;
  to.size = view.size;
  to.handle_ = taken ? &m : nullptr;
}

void open_message(orrery_message& message, const orrery_message_type& type) {
  open_linear(type, static_cast<std::byte*>(message.data), message.size, buffers_of(message));
}

orrery_status receive_until(const std::uint64_t* tag, orrery_message* message, std::int64_t timeout_ns, bool take,
                            bool sleeps) {
  pe& self = here_pe();
  scheduler::slot& s = detail::receiving_slot(self);
  scheduler::message* m = find_mail(self, s, tag, take);
  if (m == nullptr) {
    if (timeout_ns <= 0) {
      if (self.refusing()) self.shutdown().refuse("orrery_receive");
      looked_in_vain(self);
      return s.dying ? looked_at_end(self, s) : ORRERY_EMPTY;
    }
    const std::int64_t deadline = timeout_ns == ORRERY_FOREVER ? -1 : detail::deadline_after(time_of(timeout_ns));
    const task_frame* const frame = task_frame::of(self);
    if (frame != nullptr && frame->strategy != ORRERY_NOTIFY && !sleeps) {
      m = poll_mail(self, s, tag, deadline, take, frame->strategy == ORRERY_YIELD);
      if (m == nullptr) return ORRERY_TIMEOUT;
    }
    while (m == nullptr) {
      const bool in_time = self.functions().await_message(s, deadline);
      m = find_mail(self, s, tag, take);
      if (m == nullptr && !in_time) return ORRERY_TIMEOUT;
    }
  }
  describe(*m, take, *message);
  return ORRERY_OK;
}

namespace {

// The call of task.h with that name. Without a message, and where the task is ended, it leaves
// `message` all zero, so that this may be given to orrery_release.
orrery_status receive(const char* call, const std::uint64_t* tag, orrery_message* message, std::int64_t timeout_ns,
                      bool take) {
  struct zero_unless_received {
    orrery_message* message;
    bool received = false;
    ~zero_unless_received() {
      if (!received && message != nullptr) *message = {};
    }
  } result{message};
  const orrery_status said = guarded(call, [&] {
    require(message, call, "the message that it is to fill in");
    return receive_until(tag, message, timeout_ns, take);
  });
  result.received = said == ORRERY_OK;
  return said;
}

}  // namespace

}  // namespace orrery::task_detail

using namespace orrery::task_detail;  // NOLINT: the C functions are its face

extern "C" {

orrery_status orrery_send(orrery_task to, uint64_t tag, const orrery_message_type* type, const void* value,
                          orrery_sending how) {
  return guarded("orrery_send", [&] {
    require(to, "orrery_send");
    require(type, "orrery_send", "the message type");
    require(value, "orrery_send", "the message");
    return status_of(send_message(to, tag, *type, value, how == ORRERY_WAIT), to, "orrery_send");
  });
}

orrery_status orrery_send_bytes(orrery_task to, uint64_t tag, const void* data, size_t size, orrery_sending how) {
  return guarded("orrery_send_bytes", [&] {
    require(to, "orrery_send_bytes");
    if (size != 0) require(data, "orrery_send_bytes", "the data, whose size is not 0,");
    return status_of(send_plain(to, tag, data, size, how == ORRERY_WAIT), to, "orrery_send_bytes");
  });
}

orrery_status orrery_receive(orrery_message* message, int64_t timeout_ns) {
  return receive("orrery_receive", nullptr, message, timeout_ns, true);
}

orrery_status orrery_receive_tag(uint64_t tag, orrery_message* message, int64_t timeout_ns) {
  return receive("orrery_receive_tag", &tag, message, timeout_ns, true);
}

orrery_status orrery_peek(orrery_message* message, int64_t timeout_ns) {
  return receive("orrery_peek", nullptr, message, timeout_ns, false);
}

orrery_status orrery_drop(void) {
  return guarded("orrery_drop", [] {
    orrery_message m;
    const orrery_status said = receive_until(nullptr, &m, ORRERY_NOW, true);
    if (said == ORRERY_OK) orrery_release(&m);
    return said;
  });
}

void* orrery_open(orrery_message* message, const orrery_message_type* type) {
  void* opened = nullptr;
  guarded("orrery_open", [&] {
    require(message, "orrery_open", "the message");
    require(type, "orrery_open", "the message type");
    if (message->type != type->id || message->data == nullptr)
      return fail(
          ORRERY_WRONG_TYPE,
          fmt::format("orrery_open: the message with tag {} from task {} is no {}, or one of another definition",
                      message->tag, to_string(address_of(message->sender)), type->name));
    open_message(*message, *type);
    opened = message->data;
    return ORRERY_OK;
  });
  return opened;
}

void orrery_release(orrery_message* message) {
  if (message == nullptr) return;
  orrery::scheduler::pe* self = orrery::scheduler::current_pe;
  if (message->handle_ != nullptr && self != nullptr) {
    auto& m = *static_cast<orrery::scheduler::message*>(message->handle_);
    for (const mailed_buffer& b : view_of(m).buffers)
      if (b.id != 0) task_state::of(*self).buffers.drop_received(b.id);
    release_mail(*self, m);
  }
  message->handle_ = nullptr;
  message->data = nullptr;
}

orrery_status orrery_set_strategy(orrery_strategy strategy) {
  // C takes any number for it, which C++ may not even read.
  static_assert(sizeof strategy == sizeof(unsigned));
  const auto number = std::bit_cast<unsigned>(strategy);
  return guarded("orrery_set_strategy", [&] {
    task_frame* const frame = task_frame::of(here_pe());
    if (frame == nullptr || number > ORRERY_IMMEDIATE)
      throw orrery::usage_error(orrery::errc::bad_argument,
                                "orrery_set_strategy: the caller is no task, or this is no strategy");
    frame->strategy = strategy;
    return ORRERY_OK;
  });
}

orrery_status orrery_message_notify(void) {
  orrery_message m;
  return guarded("orrery_message_notify", [&] { return receive_until(nullptr, &m, ORRERY_FOREVER, false, true); });
}

orrery_status orrery_message_wait(void) {
  return guarded("orrery_message_wait", [] {
    orrery::yield();
    return ORRERY_OK;
  });
}

bool orrery_message_immediate(void) {
  pe* const self = orrery::scheduler::current_pe;
  task_frame* const frame = self != nullptr ? task_frame::of(*self) : nullptr;
  const bool was_told = frame != nullptr && frame->told_to_stop;
  orrery_message m;
  orrery_status said = orrery_peek(&m, ORRERY_NOW);
  if (said == ORRERY_EMPTY) {
    said = orrery_yield();
    if (said == ORRERY_OK) said = orrery_peek(&m, ORRERY_NOW);
  }
  // This has no result that says it; the receive that follows has. But a task that asks
  // nothing else is to end, so this is taken back once only.
  if (said == ORRERY_STOPPED && frame != nullptr && !std::exchange(frame->hinted_to_stop, true))
    frame->told_to_stop = was_told;
  return said != ORRERY_OK && said != ORRERY_STOPPED;
}

}  // extern "C"
