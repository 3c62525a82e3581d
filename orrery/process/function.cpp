// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/function.hpp>

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/program_code.hpp>
#include <orrery/scheduler/stack_sizes.hpp>
#include <orrery/scheduler/vocabulary.hpp>
#include <orrery/wire/exception.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <fmt/format.h>

namespace orrery::detail {

const scheduler::class_info function_class{"process function", nullptr, {}, false};

namespace {

// The activation of a process function, and who asked it to end.
struct function_frame : scheduler::activation {
  std::uint64_t destroy_reply = 0;
  std::uint32_t destroy_source = 0;
  bool destroy_remote = false;
};

// False: nobody is told of it.
bool note_end(pe& self, const slot& s, end_cause why, const std::exception_ptr& thrown) noexcept {
  if (!s.watched) return false;
  try {
    return local_waits::of(self).ends().note(
        {self.address_of(s), why, thrown != nullptr ? encode_exception(thrown).what : std::string{}});
  } catch (...) {  // short of memory: it has ended, whatever the reason
    return false;
  }
}

void function_entry(scheduler::fiber&, void* argument) {
  pe& self = *scheduler::current_pe;
  auto* body = static_cast<function_body*>(argument);
  slot& s = *body->process;
  self.functions().begin();
  function_frame frame{{&s, nullptr, nullptr}};
  self.push_activation(frame);
  s.active = &frame;
  s.depth = 1;
  try {
    if (!self.refusing()) body->run();
    if (!s.dying) (void)note_end(self, s, end_cause::returned, {});
  } catch (const stopped&) {
    // The end of a function that waited when it was destroyed or the runtime shut down.
  } catch (...) {
    if (!note_end(self, s, end_cause::threw, std::current_exception()))
      self.failures().report_post(nullptr, std::current_exception());
  }
  delete body;
  s.dying = true;
  if (s.named) [[unlikely]]
    self.owner().layer()->before_end(self, s);
  if (frame.destroy_reply != 0)
    answer<void>(self, frame.destroy_reply, frame.destroy_source, frame.destroy_remote, [] {});
  self.functions().end(s);
}

}  // namespace

void note_failed_constructor(pe& self, const slot& s) noexcept {
  (void)note_end(self, s, end_cause::threw, std::current_exception());
}

void begin_function(pe& self, slot& s, wire::unique_ptr<function_body> body) {
  body->process = &s;
  if (body->stack_bytes > scheduler::stack_sizes::most)
    throw usage_error(
        errc::bad_argument,
        fmt::format("a stack of {} bytes: the largest that a function can have is 1 GiB", body->stack_bytes));
  self.order().give(&s);  // it begins after what has made it
  s.set_object(self.functions().make(&function_entry, body.get(), body->stack_bytes));
  body.release();
  s.class_number = function_class.number;
  s.is_function = true;
  self.make_runnable(s);
}

slot& receiving_slot(pe& self, bool takes) {
  self.require_process();
  slot& s = *self.active()->process;
  if (!s.is_function)
    throw usage_error(
        errc::bad_argument,
        fmt::format(
            "receive: called in {}; only a process function receives: give the class a method that takes "
            "the message as its argument, or spawn a function",
            self.active()->method == nullptr
                ? "a constructor or destructor"
                : fmt::format("the method {}::{}", self.active()->method->class_name, self.active()->method->method)));
  if (takes && self.running()->in_guard) [[unlikely]]
    throw usage_error(errc::bad_argument, verbatim,
                      "receive: called in a guard, which looks at a message while the process receives: receive in the "
                      "function that the case calls");
  return s;
}

std::size_t messages_before(const slot& s, const scheduler::message* m) noexcept {
  std::size_t n = 0;
  for (const scheduler::message* at = s.last->next; at != m; at = at->next) ++n;
  return n;
}

void refuse_message(pe& self, slot& s, scheduler::message* before, scheduler::message* m) {
  unlink(self, s, before, m);
  throw bad_message(errc::message_corrupt, "a message to a function, which has no tag");
}

void unlink(pe& self, slot& s, scheduler::message* before, scheduler::message* m) noexcept {
  s.charge -= m->charge();
  while (before->next != m) before = before->next;
  (void)s.unlink_after(before);
  scheduler::delivery::give_back(self, *m);
  if (s.has_extra) [[unlikely]]
    self.flow().made_room_if_low(s);
}

void check_destroyed(pe& self, slot& s, scheduler::message* before, scheduler::message* m) {
  using handler = typed_handler<destroy_operation<function>>;
  if (m->head.handler != reinterpret_cast<std::uint64_t>(&handler::instance)) return;
  // The first one is answered when the function has ended; others fail then, as all that is in the
  // mailbox.
  if (s.dying) throw stopped("receive: the process was destroyed");
  scheduler::delivery d;
  d.load(self, *m);
  auto& frame = *static_cast<function_frame*>(s.active);
  frame.destroy_reply = d.reply;  // answered when the stack is unwound
  frame.destroy_source = d.source_pe;
  frame.destroy_remote = d.remote;
  unlink(self, s, before, m);
  s.dying = true;
  if (s.named) [[unlikely]]
    self.owner().layer()->before_end(self, s);
  self.running()->cancelled = 1;
  throw stopped("receive: the process was destroyed");
}

std::uint64_t code_to_offset(const void* code) {
  const scheduler::program_code& program = scheduler::code_of_program();
  if (!program.contains(code))
    throw usage_error(errc::bad_argument,
                      "spawn: only a function of the program itself can be sent to another node as a "
                      "pointer, not one of a shared library");
  return static_cast<std::uint64_t>(static_cast<const char*>(code) - program.begin);
}

std::uint64_t own_build() noexcept { return scheduler::build_of_program(); }

const void* offset_to_code(std::uint64_t offset, std::uint64_t build) {
  if (build != own_build())
    throw bad_message(
        errc::unknown_handler, verbatim,
        "spawn: a pointer to a function came from another build of the program, where code lies elsewhere; "
        "spawn it in a method or a remote function that both programs have");
  const scheduler::program_code& program = scheduler::code_of_program();
  if (offset == 0 || offset >= program.size())
    throw bad_message(errc::message_corrupt, "a function outside of the program");
  return program.begin + offset;
}

}  // namespace orrery::detail
