// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/broadcast_message.hpp>
#include <orrery/array/detail/element_message.hpp>
#include <orrery/array/detail/index_sender.hpp>
#include <orrery/process/detail/bound_target.hpp>

// Sending to one element.
namespace orrery::detail {

/// An element by its index: what `grid[x, y]` gives. `array` is the number of the array.
template <class T, class Index>
struct element_name {
  std::uint32_t array = 0;
  Index index{};
};

/// Sends a message to an element by the rarer ways; false: it would have to wait, and `patience` is
/// must_not. True in `again` when it has waited: everything may be different. `Forms`:
/// element_forms.
template <class Forms, class Index, class... A>
[[gnu::noinline]] bool send_remote_as(pe& self, std::uint32_t array, const Index& to, const message_form& form,
                                      scheduler::sink* sink, patience p, bool& again, wire::record_kind level,
                                      A&&... args) {
  const auto size = [&] { return orrery::wire_size(std::as_const(args)...); };
  const auto write = [&](orrery::writer& w) { orrery::write(w, std::as_const(args)...); };
  const auto move = [&](void* payload) {
    Forms::make_owned(&static_cast<typename Forms::payload*>(payload)->args, std::forward<A>(args)...);
  };
  return index_sender<Index>::send_remote(
      self, array, to, form, sink, p, again,
      arguments_ref(size, write, move, sizeof(typename Forms::owned), pages_beside(args...), level));
}
template <class Message, class T, class Index, class... A>
bool send_remote(pe& self, const element_name<T, Index>& to, scheduler::sink* sink, patience p, bool& again,
                 wire::record_kind level, A&&... args) {
  return send_remote_as<typename Message::forms>(self, to.array, to.index, Message::form, sink, p, again, level,
                                                 std::forward<A>(args)...);
}

/// Sends a message to an element; `sink` null: one way. Parks while the way or the element's
/// mailbox is full, or returns false instead.
template <class Forms, class Index, class... A>
bool send_element_as(pe& self, std::uint32_t array, const Index& to, const message_form& form, scheduler::sink* sink,
                     patience p, A&&... args) {
  constexpr wire::record_kind normal = wire::record_kind::message;
  for (bool noted = false;;) {
    bool again = false;
    array_core* const core = array_directory::of(self).find(array);
    if (core == nullptr) [[unlikely]]
      return send_remote_as<Forms>(self, array, to, form, sink, p, again, normal, std::forward<A>(args)...);
    auto& part = static_cast<index_part<Index>&>(*core);
    if (part.measures() && !noted) [[unlikely]] {
      noted = true;
      part.note_sent(to, wire::record_bytes(sizeof(typename Forms::payload)) +
                             std::uint64_t{pages_beside(args...)} * wire::page_bytes);
    }
    if (slot* const found = part.find_process(to)) [[likely]] {
      slot& s = *found;
      if (self.flow().over_limit(s)) [[unlikely]] {
        if (p == patience::must_not) return false;
        if (self.flow().wait_for_room(s)) continue;  // it may be elsewhere now
      }
      if constexpr (Forms::ordered) {
        if (!send_remote_as<Forms>(self, array, to, form, sink, p, again, normal, std::forward<A>(args)...))
          return false;
        if (!again) return true;
        continue;
      }
      const std::uint16_t pages = pages_beside(args...);
      scheduler::message* m = Forms::make_message(self, std::forward<A>(args)...);
      part.begins();
      m->source_pe = self.id();
      write_envelope(m->head, {self.id(), 0, 0}, form.here, wire::payload_form::owned, sink, pages);
      if (sink == nullptr) {
        self.push(s, m);
      } else {
        sink->target = self.address_of(s);
        try {
          push_call(self, s, m);
        } catch (...) {  // it could never be executed
          part.over();
          throw;
        }
      }
      return true;
    }
    if (!send_remote_as<Forms>(self, array, to, form, sink, p, again, normal, std::forward<A>(args)...)) return false;
    if (!again) return true;
  }
}
template <class Message, class T, class Index, class... A>
bool send_element(pe& self, const element_name<T, Index>& to, scheduler::sink* sink, patience p, A&&... args) {
  return send_element_as<typename Message::forms>(self, to.array, to.index, Message::form, sink, p,
                                                  std::forward<A>(args)...);
}

/// How a probe of the waits follows a call to an element. `Name`: the element's, or a reference to
/// it.
template <class T, class Index, class Name>
struct element_route final : scheduler::call_route {
  Name to;
  explicit element_route(const element_name<T, Index>& n) : to(n) {}
  address follow(pe& self, std::span<const std::byte> probe) const override {
    array_core* core = array_directory::of(self).find(to.array);
    return core != nullptr ? static_cast<index_part<Index>*>(core)->follow(to.index, probe) : address{};
  }
  [[nodiscard]] std::string text() const override {
    array_core* core = array_directory::of(here_pe()).find(to.array);
    return core != nullptr ? static_cast<index_part<Index>*>(core)->text_of(to.index) : "an element of an array";
  }
};

template <class Forms, class R, class T, class Index, class... A>
future<R> start_element_as(pe& self, const element_name<T, Index>& to, const message_form& form, A&&... args) {
  using route = element_route<T, Index, element_name<T, Index>>;
  auto state = future_access<R>::make_routed(self, route(to), form.routed);
  auto travelling = future_access<R>::make_hold(state);
  send_element_as<Forms>(self, to.array, to.index, form, state.get(), patience::may_wait, std::forward<A>(args)...);
  travelling.release();
  return future_access<R>::wrap(std::move(state));
}
template <class Message, class R, class T, class Index, class... A>
future<R> start_element(pe& self, const element_name<T, Index>& to, A&&... args) {
  return start_element_as<typename Message::forms, R>(self, to, Message::form, std::forward<A>(args)...);
}

template <class Forms, class R, class T, class Index, class... A>
value_t<R> call_element_as(pe& self, const element_name<T, Index>& to, const message_form& form, A&&... args) {
  self.require_process();
  element_route<T, Index, const element_name<T, Index>&> way(to);
  typed_sink<value_t<R>> k;
  prepare(k, self, address{}, form.routed);
  k.route = &way;
  send_element_as<Forms>(self, to.array, to.index, form, &k, patience::may_wait, std::forward<A>(args)...);
  self.wait(k);
  return k.take();
}
template <class Message, class R, class T, class Index, class... A>
value_t<R> call_element(pe& self, const element_name<T, Index>& to, A&&... args) {
  return call_element_as<typename Message::forms, R>(self, to, Message::form, std::forward<A>(args)...);
}

// The meaning of a call of a method of `grid[i]` in each mode.
template <class T, class Index>
struct element_modes {
  using name = element_name<T, Index>;
  template <class M, class R, class... P>
  using message = element_message<T, Index, element_operation<T, Index, M, R>, P...>;

  struct call {
    using target = name;
    template <class M, class R, class... P>
    static value_t<R> invoke(const name& to, P&&... args) {
      using m = message<M, R, P...>;
      pe& self = here_pe();
      array_core* const core = array_directory::of(self).find(to.array);
      if (core == nullptr) [[unlikely]]
        return call_element<m, R>(self, to, std::forward<P>(args)...);
      auto& part = static_cast<index_part<Index>&>(*core);
      // not before what is still on its way
      if (slot* const found = m::ordered ? nullptr : part.find_process(to.index)) {
        slot& s = *found;
        if (s.state == scheduler::process_state::idle && self.room_on_stack()) [[likely]] {
          const auto run = [&]() -> R {
            const inline_frame frame(self, s, m::here);
            part.begins();
            const activity_end end(&part);
            return M::call(static_cast<typename M::object&>(element_in<T, Index>(s)), std::forward<P>(args)...);
          };
          try {
            if constexpr (comes_later<R>::value) {
              return run().get();
            } else {
              return run();
            }
          } catch (...) {
            rethrow_as_received(m::here, self);
          }
        }
      }
      return call_element<m, R>(self, to, std::forward<P>(args)...);
    }
  };
  struct start {
    using target = name;
    template <class M, class R, class... P>
    static future<value_t<R>> invoke(const name& to, P&&... args) {
      return start_element<message<M, R, P...>, value_t<R>>(here_pe(), to, std::forward<P>(args)...);
    }
  };
  struct post {
    using target = name;
    template <class M, class R, class... P>
    static void invoke(const name& to, P&&... args) {
      send_element<message<M, R, P...>>(here_pe(), to, nullptr, patience::may_wait, std::forward<P>(args)...);
    }
  };
  struct try_post {
    using target = name;
    template <class M, class R, class... P>
    static bool invoke(const name& to, P&&... args) {
      return send_element<message<M, R, P...>>(here_pe(), to, nullptr, patience::must_not, std::forward<P>(args)...);
    }
  };
  // All elements.
  struct broadcast {
    using target = std::uint32_t;
    template <class M, class R, class... P>
    static void invoke(const std::uint32_t& array, P&&... args) {
      bytes b;
      pack_after(b, std::as_const(args)...);
      broadcast_to(here_pe(), array, broadcast_message<T, Index, M, R, P...>::instance, b);
    }
  };
};

}  // namespace orrery::detail
