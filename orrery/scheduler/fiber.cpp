// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber.hpp>

#include <orrery/scheduler/handler.hpp>

#include <cxxabi.h>
#include <exception>
#include <new>

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif
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

// Bytes below which a call is parked rather than run inline: room for one method's frames.
constexpr std::size_t inline_reserve = 24 << 10;

struct start {
  void (*entry)(fiber&, void*);
  void* argument;
};

// abi::__cxa_get_globals() is a call into the C++ library; PEs ask once.
constinit thread_local exception_globals* own_globals = nullptr;

exception_globals& thread_exceptions() noexcept { return *own_globals; }

// The first thing that runs on a new stack.
void run_entry(fiber* self) {
#ifdef ORRERY_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  thread_exceptions() = {};
  auto* s = reinterpret_cast<start*>(self) - 1;
  s->entry(*self, s->argument);
  std::terminate();  // entry must not return
}

// Leaves one stack for another: saves where `from` stands, goes on where `to` had stood (or begins
// it).
//
// Boost.Context does the same by a call that is left with a jump. Each switch then shifts the
// processor's stack of return addresses by one, and every return after it is predicted wrongly: a
// hop between two processes that receive cost 51 ns instead of 27. Inline, the returns of one fiber
// match the calls of the other, as both stand at the same place in the same functions. The
// floating-point environment is not switched: it belongs to the PE.
#if defined(__x86_64__)
void* first_context(std::byte* stack_top) noexcept {
  auto* top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack_top) & ~std::uintptr_t{15});
  top[-1] = nullptr;  // in the place of a return address: run_entry begins as if it had been called
  top[-2] = reinterpret_cast<void*>(&run_entry);
  return top - 2;
}

inline void switch_stack(fiber& from, fiber& to) noexcept {
  void** save = &from.context;
  void** load = &to.context;
  fiber* self = &to;
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the red zone may be in use
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%%rsi)\n\t"
      "movq (%%rdx), %%rsp\n\t"
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "+S"(save), "+d"(load), "+D"(self)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc");
}
#else
void boost_entry(boost::context::detail::transfer_t t) {
  auto* from = static_cast<fiber*>(t.data);
  from->context = t.fctx;
  run_entry(from->to);
}

void* first_context(std::byte* stack_top) noexcept {
  return boost::context::detail::make_fcontext(stack_top, 1, boost_entry);
}

inline void switch_stack(fiber& from, fiber& to) noexcept {
  from.to = &to;
  const auto t = boost::context::detail::jump_fcontext(to.context, &from);
  static_cast<fiber*>(t.data)->context = t.fctx;
}
#endif

}  // namespace

fiber* make_fiber(stack memory, void (*entry)(fiber&, void*), void* argument) noexcept {
#ifdef ORRERY_ASAN
  // The function that ended on this stack before did not return: its frames are still poisoned.
  __asan_unpoison_memory_region(memory.bottom, static_cast<std::size_t>(memory.top - memory.bottom));
#endif
  auto* f = new (memory.top - sizeof(fiber)) fiber{};
  auto* s = new (reinterpret_cast<std::byte*>(f) - sizeof(start)) start{entry, argument};
  f->memory = memory;
  const auto usable = static_cast<std::size_t>(memory.top - memory.bottom);
  f->limit = memory.bottom + (usable / 4 < inline_reserve ? usable / 4 : inline_reserve);
  if (through_wire) f->limit = memory.top;  // all calls are messages
  f->context = first_context(reinterpret_cast<std::byte*>(s));
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
#ifdef ORRERY_ASAN
  __sanitizer_start_switch_fiber(&from.fake_stack, to.memory.bottom,
                                 static_cast<std::size_t>(to.memory.top - to.memory.bottom));
#endif
#ifdef ORRERY_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  switch_stack(from, to);
#ifdef ORRERY_ASAN
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
  globals = from.exceptions;
}

void leave_fiber(fiber& from, fiber& to) noexcept {
#ifdef ORRERY_ASAN
  __sanitizer_start_switch_fiber(nullptr, to.memory.bottom, static_cast<std::size_t>(to.memory.top - to.memory.bottom));
#endif
#ifdef ORRERY_TSAN
  __tsan_switch_to_fiber(to.tsan, 0);
#endif
  switch_stack(from, to);
  std::terminate();
}

}  // namespace orrery::scheduler
