// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/local_waits.hpp>
#include <orrery/process/detail/through_wire.hpp>
#include <orrery/process/future.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <string>
#include <utility>

// A method that returns a future: its caller gets the value when it is there, and the method's
// process is free meanwhile.
namespace orrery::detail {

/// A call as both ends know it: the word in its envelope, or if `hidden`, in its payload. 0: it is
/// not known.
struct call_to_answer {
  std::uint32_t pe = 0;
  std::uint64_t call = 0;
  bool hidden = false;
};

/// The answer to a call whose method has given a future. Owned by that future.
struct later_answer : local_wait {
  const scheduler::handler* method;
  address process;
  const scheduler::sink* of;
  call_to_answer to;

  /// In the method. Throws std::bad_alloc.
  later_answer(pe& self, const scheduler::sink& from, call_to_answer call);
  [[nodiscard]] static std::string describe_answer(const pe&, const local_wait& w);
};

/// Calls give(pe&, future_state<T>&) once the result is there: now, or later as a process of its
/// own. `to`: the call that it answers, for probes. `give` throws nothing. Throws usage_error if
/// the future has no call.
template <class T, class Give>
void give_later(pe& self, future<T> from, Give give, call_to_answer to = {}) {
  future_access<T>::check(from);
  struct hook final : later_answer {
    hook(pe& at, const scheduler::sink& s, call_to_answer call, Give g)
        : later_answer(at, s, call), give(std::move(g)) {}
    future<T> from;
    Give give;
  };
  auto* s = future_access<T>::get(from);
  if (from.ready()) {
    give(self, *s);
    return;
  }
  auto h = wire::make_unique<hook>(self, *s, to, std::move(give));
  h->from = std::move(from);
  s->continuation_data = h.release();
  s->continuation = [](pe& at, future_state_base& base) {
    const wire::unique_ptr<hook> own(static_cast<hook*>(base.continuation_data));
    own->give(at, static_cast<future_state<T>&>(base));
  };
}

[[nodiscard]] inline const scheduler::handler* running_method(const pe& self) noexcept {
  return self.active() != nullptr ? self.active()->method : nullptr;
}

template <class T>
void answer_later(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, future<T> f) {
  if (reply == 0) return;
  give_later(self, std::move(f),
             [reply, source_pe, remote, method = running_method(self)](pe& at, future_state<T>& s) noexcept {
               try {
                 answer<T>(at, reply, source_pe, remote, [&]() -> T {
                   if constexpr (!std::is_void_v<T>)
                     if (scheduler::through_wire && !remote) [[unlikely]]
                       return written_and_read(s.take());
                   return s.take();
                 });
               } catch (...) {
                 scheduler::reply_error(at, reply, source_pe, remote, method, std::current_exception());
               }
             },
             {source_pe, reply});
}

}  // namespace orrery::detail
