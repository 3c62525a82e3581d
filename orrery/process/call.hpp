// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/inline_frame.hpp>
#include <orrery/process/detail/later_answer.hpp>
#include <orrery/process/detail/method_operation.hpp>
#include <orrery/process/detail/send.hpp>
#include <orrery/process/detail/typed_handler.hpp>
#include <orrery/process/future.hpp>
#include <orrery/process/remote.hpp>

#include <utility>

// The meaning of a call of a method in each mode; method.hpp leads here.
namespace orrery::detail {

struct call_mode {
  using target = address;

  template <class M, class R, class... P>
  static value_t<R> invoke(const address& to, P&&... arguments) {
    using operation = method_operation<M, R>;
    using handler = typed_handler<operation, P...>;
    pe& self = here_pe();
    if (to.pe == self.id()) {
      slot* s = self.find(to.slot, to.generation);
      if (s != nullptr && s->state == scheduler::process_state::idle && self.room_on_stack()) [[likely]] {
        auto* object = object_in<typename M::object>(*s);
        if (object == nullptr) [[unlikely]]
          throw_wrong_class(handler::instance, s->cls());
        try {
          if constexpr (comes_later<R>::value) {
            return run_inline<M, handler, R>(self, *s, *object, std::forward<P>(arguments)...).get();
          } else {
            const inline_frame frame(self, *s, handler::instance);
            return M::call(*object, std::forward<P>(arguments)...);
          }
        } catch (...) {
          rethrow_as_received(handler::instance, self);
        }
      }
    }
    return far<handler, R>(self, to, std::forward<P>(arguments)...);
  }

 private:
  // The process is free while its caller waits for what it has given.
  template <class M, class Handler, class R, class O, class... P>
  static R run_inline(pe& self, slot& s, O& object, P&&... arguments) {
    const inline_frame frame(self, s, Handler::instance);
    return M::call(object, std::forward<P>(arguments)...);
  }
  template <class Handler, class R, class... P>
  [[gnu::noinline]] static value_t<R> far(pe& self, address to, P&&... arguments) {
    typed_sink<value_t<R>> k;
    send_call<Handler>(self, to, k, std::forward<P>(arguments)...);
    return k.take();
  }
};

struct start_mode {
  using target = address;

  template <class M, class R, class... P>
  static future<value_t<R>> invoke(const address& to, P&&... arguments) {
    return start_message<typed_handler<method_operation<M, R>, P...>, value_t<R>>(here_pe(), to,
                                                                                  std::forward<P>(arguments)...);
  }
};

struct post_mode {
  using target = address;

  template <class M, class R, class... P>
  static void invoke(const address& to, P&&... arguments) {
    send_owned<typed_handler<method_operation<M, R>, P...>>(here_pe(), to, nullptr, true,
                                                            std::forward<P>(arguments)...);
  }
};

struct try_post_mode {
  using target = address;

  template <class M, class R, class... P>
  static bool invoke(const address& to, P&&... arguments) {
    return send_owned<typed_handler<method_operation<M, R>, P...>>(here_pe(), to, nullptr, false,
                                                                   std::forward<P>(arguments)...);
  }
};

}  // namespace orrery::detail
