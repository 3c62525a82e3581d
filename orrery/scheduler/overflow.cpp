// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/overflow.hpp>

#include <orrery/scheduler/fork.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cerrno>
#include <csignal>
#include <mutex>

#include <fmt/format.h>
#include <unistd.h>

namespace orrery::scheduler {
namespace {

constexpr std::size_t handler_stack = 64 << 10;

// A signal's action belongs to the whole OS process, so this is shared by all PEs.
std::mutex mutex;
int users = 0;
struct sigaction previous;

// On the handler's own stack; nothing here allocates or locks.
void say_overflow(const pe& self) noexcept {
  const activation* a = self.active();
  const fiber* on = self.running();
  std::string_view class_name = "(no process)";
  std::string_view method;
  if (a != nullptr) {
    const class_info* cls = a->process->cls();  // of a constructor, destructor or process function
    class_name = a->method != nullptr ? a->method->class_name : cls != nullptr ? cls->name : class_name;
    if (a->method != nullptr) method = a->method->method;
  }
  char line[512];
  const auto end = fmt::format_to_n(
      line, sizeof line,
      "orrery: stack overflow in {}{}{} on PE {}: its stack of {} KiB is full; let it recurse less or keep "
      "large objects on the heap, or raise {}\n",
      class_name, method.empty() ? "" : "::", method, self.id(),
      (static_cast<std::size_t>(on->memory.top - on->memory.bottom) + 4095) / 4096 * 4,
      on->is_loop ? "--orrery-method-stack" : "--orrery-function-stack");
  (void)!::write(STDERR_FILENO, line, std::min(end.size, sizeof line));
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (is_forked_child) end_forked_child();  // it has touched what only its parent has
  const int saved = errno;
  const pe* self = current_pe;
  if (self != nullptr && info->si_code > 0 && in_stack_guard(info->si_addr)) {
    say_overflow(*self);
    std::signal(signal, SIG_DFL);  // the instruction faults again when this returns
  } else if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    std::signal(signal, previous.sa_handler);
    // somebody sent it: it would not come again by itself
    if (info->si_code <= 0) (void)raise(signal);
  }
  errno = saved;
}

}  // namespace

overflow_report::overflow_report() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && (now.ss_flags & SS_DISABLE) != 0) {
    stack_ = wire::make_unique_definit<std::byte[]>(handler_stack);
    stack_t own{};
    own.ss_sp = stack_.get();
    own.ss_size = handler_stack;
    sigaltstack(&own, nullptr);
  }
  const std::lock_guard lock(mutex);
  if (users++ > 0) return;
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &previous);
}

overflow_report::~overflow_report() {
  {
    const std::lock_guard lock(mutex);
    if (--users == 0) sigaction(SIGSEGV, &previous, nullptr);
  }
  if (stack_ == nullptr) return;
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

}  // namespace orrery::scheduler
