// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber.hpp>

#include <cxxabi.h>
#include <exception>
#include <new>

#include <pthread.h>

#ifdef ORRERY_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ORRERY_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}
#endif

namespace orrery::scheduler {
namespace {

using boost::context::detail::fcontext_t;
using boost::context::detail::jump_fcontext;
using boost::context::detail::make_fcontext;
using boost::context::detail::transfer_t;

// Bytes below which a call is parked rather than run inline: room for one method's frames.
constexpr std::size_t inline_reserve = 24 << 10;

struct start {
  void (*entry)(fiber&, void*);
  void* argument;
};

// abi::__cxa_get_globals() is a call into the C++ library; PEs ask once.
constinit thread_local exception_globals* own_globals = nullptr;

exception_globals& thread_exceptions() noexcept { return *own_globals; }

// What a fiber does first when it gets the processor: remember where the other one stopped.
void arrive(transfer_t t) noexcept { static_cast<fiber*>(t.data)->context = t.fctx; }

void run_entry(transfer_t t) {
  auto* from = static_cast<fiber*>(t.data);
#ifdef ORRERY_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  arrive(t);
  thread_exceptions() = {};
  fiber* self = from->to;
  auto* s = reinterpret_cast<start*>(self) - 1;
  s->entry(*self, s->argument);
  std::terminate();  // entry must not return
}

}  // namespace

fiber* make_fiber(stack memory, void (*entry)(fiber&, void*), void* argument) noexcept {
  auto* f = new (memory.top - sizeof(fiber)) fiber{};
  auto* s = new (reinterpret_cast<std::byte*>(f) - sizeof(start)) start{entry, argument};
  f->memory = memory;
  const auto usable = static_cast<std::size_t>(memory.top - memory.bottom);
  f->limit = memory.bottom + (usable / 4 < inline_reserve ? usable / 4 : inline_reserve);
  auto* stack_top = reinterpret_cast<std::byte*>(s);
  f->context = make_fcontext(stack_top, static_cast<std::size_t>(stack_top - memory.bottom), run_entry);
#ifdef ORRERY_TSAN
  f->tsan = __tsan_create_fiber(0);
#endif
  return f;
}

void adopt_thread(fiber& root) noexcept {
  pthread_attr_t attr;
  if (pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* low = nullptr;
    std::size_t size = 0;
    pthread_attr_getstack(&attr, &low, &size);
    root.memory = {static_cast<std::byte*>(low), static_cast<std::byte*>(low) + size};
    pthread_attr_destroy(&attr);
  }
  own_globals = reinterpret_cast<exception_globals*>(abi::__cxa_get_globals());
  root.limit = root.memory.top;  // nothing runs inline on a thread's own stack
#ifdef ORRERY_TSAN
  root.tsan = __tsan_get_current_fiber();
#endif
}

void forget_fiber(fiber& f) noexcept {
#ifdef ORRERY_TSAN
  __tsan_destroy_fiber(f.tsan);
#endif
  f.~fiber();
}

void switch_fiber(fiber& from, fiber& to) noexcept {
  exception_globals& globals = thread_exceptions();
  from.exceptions = globals;
  from.to = &to;  // a fiber that starts learns from it who it is
#ifdef ORRERY_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.memory.bottom,
                                 static_cast<std::size_t>(to.memory.top - to.memory.bottom));
#endif
#ifdef ORRERY_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  arrive(jump_fcontext(to.context, &from));
#ifdef ORRERY_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
  globals = from.exceptions;
}

void leave_fiber(fiber& from, fiber& to) noexcept {
  from.to = &to;
#ifdef ORRERY_ASAN
  __sanitizer_start_switch_fiber(nullptr, to.memory.bottom,
                                 static_cast<std::size_t>(to.memory.top - to.memory.bottom));
#endif
#ifdef ORRERY_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  jump_fcontext(to.context, &from);
  std::terminate();
}

}  // namespace orrery::scheduler
