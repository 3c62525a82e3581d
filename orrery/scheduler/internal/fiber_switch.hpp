// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/fiber.hpp>
#include <orrery/scheduler/sanitizers.hpp>

#include <cstring>

#if !defined(__x86_64__)
#include <boost/context/detail/fcontext.hpp>
#endif

#ifdef ORRERY_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef ORRERY_TSAN
extern "C" void __tsan_switch_to_fiber(void* fiber, unsigned flags);
#endif

namespace orrery::scheduler {

/// The result of abi::__cxa_get_globals(), which is a call into the C++ library; PEs ask once.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local exception_globals* own_exceptions;

// Leaves one stack for another: saves where `from` stands, goes on where `to` had stood (or begins
// it). The floating-point environment is not switched: it belongs to the PE.
//
// Boost.Context does the same by a call that is left with a jump. Each switch then shifts the
// processor's stack of return addresses by one, and every return after it is predicted wrongly: a
// hop between two processes that receive cost 51 ns instead of 27. Inline, the returns of one fiber
// match the calls of the other where both stand at the same place in the same functions. That is
// why the whole switch is inline, up to pe::park() and pe::loop(): a fiber that goes on in the
// other of the two returns from nothing that this one has called.
#if defined(__x86_64__)
[[gnu::always_inline]] inline void switch_stack(fiber& from, fiber& to) noexcept {
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
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15"
#ifdef __AVX512F__
        ,
        "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#endif
  );
}
#else
inline void switch_stack(fiber& from, fiber& to) noexcept {
  from.to = &to;
  const auto t = boost::context::detail::jump_fcontext(to.context, &from);
  static_cast<fiber*>(t.data)->context = t.fctx;
}
#endif

/// switch_fiber, inline.
[[gnu::always_inline]] inline void switch_here(fiber& from, fiber& to) noexcept {
  std::memcpy(&from.exceptions, own_exceptions, sizeof from.exceptions);  // in one move
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
  std::memcpy(own_exceptions, &from.exceptions, sizeof from.exceptions);
}

}  // namespace orrery::scheduler
