// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/fiber.hpp>

#include <orrery/scheduler/handler.hpp>
#include <orrery/scheduler/internal/fiber_switch.hpp>

#include <cxxabi.h>
#include <exception>
#include <new>

#include <pthread.h>

#ifdef ORRERY_TSAN
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void* fiber);
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

// The first thing that runs on a new stack.
void run_entry(fiber* self) {
#ifdef ORRERY_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  *own_exceptions = {};
  auto* s = reinterpret_cast<start*>(self) - 1;
  s->entry(*self, s->argument);
  std::terminate();  // entry must not return
}

#if defined(__x86_64__)
void* first_context(std::byte* stack_top) noexcept {
  auto* top = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(stack_top) & ~std::uintptr_t{15});
  top[-1] = nullptr;  // in the place of a return address: run_entry begins as if it had been called
  top[-2] = reinterpret_cast<void*>(&run_entry);
  return top - 2;
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
#endif

}  // namespace

[[gnu::tls_model("initial-exec")]] constinit thread_local exception_globals* own_exceptions = nullptr;

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
  // The system reads the list of all mappings for it, which takes long: so once for each thread.
  thread_local stack own;
  pthread_attr_t attr;
  if (own.top == nullptr && pthread_getattr_np(pthread_self(), &attr) == 0) {
    void* low = nullptr;
    std::size_t size = 0;
    pthread_attr_getstack(&attr, &low, &size);
    own = {static_cast<std::byte*>(low), static_cast<std::byte*>(low) + size};
    pthread_attr_destroy(&attr);
  }
  root.memory = own;
  own_exceptions = reinterpret_cast<exception_globals*>(abi::__cxa_get_globals());
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

void switch_fiber(fiber& from, fiber& to) noexcept { switch_here(from, to); }

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
