// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/broadcast_message.hpp>
#include <orrery/array/message.hpp>
#include <orrery/scheduler/node.hpp>

#include <optional>

// Sending to one element.
namespace orrery::detail {

/// An element by its index: what `grid[x, y]` gives. `array` is the number of the array.
template <class T, class Index>
struct element_name {
  std::uint32_t array = 0;
  Index index{};
};

inline constexpr std::uint32_t most_waiting = 1024;  // messages at the sender, while the way changes

/// A message's place in a stream: taken when it is sure that it is sent.
class stream_place {
 public:
  stream_place() = default;
  explicit stream_place(outbox::line& l) noexcept : line_(&l) {}
  [[nodiscard]] order_tag tag() const noexcept { return {line_->stream, line_->sent + 1}; }
  order_tag take() noexcept { return {line_->stream, ++line_->sent}; }

 private:
  outbox::line* line_ = nullptr;
};
template <class T, class Index>
[[nodiscard]] stream_place next_tag(pe& self, const element_name<T, Index>& to) {
  bytes index;
  pack_after(index, to.index);
  return stream_place(
      array_directory::of(self).sender().to(self, to.array, index, close_operation<T, Index>::message::routed));
}

enum class patience : std::uint8_t { may_wait, must_not };

// The rarer ways; false if it would have to wait and must not. True in `again` when it has waited: everything may be different.
template <class Message, class T, class Index, class... A>
[[gnu::noinline]] bool send_away(pe& self, const element_name<T, Index>& to, scheduler::sink* sink, patience p,
                                 bool& again, A&&... args) {
  auto& part = index_part_of<Index>(self, to.array);
  std::optional<array_directory::expectation> answer;
  const auto number_of_call = [&] {
    return sink != nullptr ? answer.emplace(array_directory::of(self), *sink, part.id()).call() : 0;
  };
  const auto sent = [&] {
    if (answer) answer->sent();
  };
  away* way = Message::ordered && part.find_local(to.index) != nullptr ? nullptr : part.way_to(to.index);
  if (way == nullptr) {
    if (part.waiting_at(to.index) > most_waiting && self.active() != nullptr) {
      if (p == patience::must_not) return false;
      if (self.refusing()) self.shutdown().refuse("a message to an element");
      self.yield();
      return again = true;
    }
    const std::uint16_t pages = pages_beside(args...);
    scheduler::message* m =
        Message::make_routed(self, part.id(), {0, number_of_call(), self.id(), 0, 0}, to.index, pages);
    auto* out = reinterpret_cast<typename Message::payload*>(m->payload());
    try {
      Message::base::make_owned(&out->args, std::forward<A>(args)...);
    } catch (...) {
      out->index.~Index();
      self.release_message(m);
      throw;
    }
    if constexpr (Message::ordered) {
      try {
        out->tag = next_tag(self, to).take();
      } catch (...) {
        discard(self, m);
        throw;
      }
    }
    sent();
    part.begins();
    dispatch(self, m);
    return true;
  }
  const address there{way->pe, way->slot, way->generation};  // no slot until it is told
  if (p == patience::must_not) {
    if (self.is_stopped(there)) return false;
  } else if (self.wait_while_stopped(there)) {
    return again = true;
  }
  const std::uint32_t to_pe = way->pe;
  const std::uint16_t pages = pages_beside(args...);
  scheduler::channel* out_to = nullptr;
  std::uint32_t bytes_needed = 0;
  wire::envelope* e = nullptr;
  try {
    out_to = &self.channel_to(to_pe);
    bytes_needed =
        wire::record_bytes(sizeof(typename Message::payload)) + wire::ring_surcharge(pages, out_to->ring.capacity());
    e = out_to->try_reserve(bytes_needed);
    if (e == nullptr) [[unlikely]] {
      if (p == patience::must_not) return false;
      e = self.reserve(*out_to, bytes_needed);  // parks, and then the way may be another one
      auto& now = index_part_of<Index>(self, to.array);
      way = now.find_local(to.index) == nullptr ? now.way_to(to.index) : nullptr;
      if (way == nullptr || way->pe != to_pe) return again = true;
    }
  } catch (const node_lost&) {
    if (sink != nullptr) throw;
    self.failures().report_unsent(Message::routed, to_pe, std::current_exception());  // like a post to any process
    return true;
  }
  scheduler::channel& c = *out_to;
  route_head h{part.next_number(), number_of_call(), self.id(), 0,
               way->last == 0 ? route_head::wants_location : std::uint16_t{0}};
  if (way->asks) h.flags |= route_head::asks | route_head::wants_location;  // others wait for the answer
  typename Message::tag_type tag{};
  stream_place place;
  if constexpr (Message::ordered) {
    place = next_tag(self, to);
    tag = place.tag();
  }
  const auto numbered = [&] {  // when nothing can throw any more: who hears of a number believes that it was sent
    if constexpr (Message::ordered) (void)place.take();
    part.begins();
    note_hop(self, true);
    way->last = h.number;
    way->used = true;
    if (way->asks) way->state = away::what::waiting;
    sent();
  };
  if (c.remote) {
    bytes b = Message::head_to_wire(h, to.index, tag);
    pack_after(b, static_cast<const A&>(args)...);
    numbered();
    tell(self, way->pe, Message::routed, part.id(), 0, b);
    return true;
  }
  auto* out = reinterpret_cast<typename Message::payload*>(e->payload());
  new (&out->head) route_head(h);
  new (&out->index) Index(to.index);
  if constexpr (Message::ordered) new (&out->tag) order_tag(tag);
  try {
    Message::base::make_owned(&out->args, std::forward<A>(args)...);
  } catch (...) {
    out->index.~Index();
    throw;
  }
  numbered();
  fill(*e, {way->pe, part.id(), 0}, Message::routed, wire::payload_form::owned, nullptr, pages);
  self.commit(c, bytes_needed);
  return true;
}

// To an element of an array of another program: by way of the PE that made it.
template <class Message, class T, class Index, class... A>
[[gnu::noinline]] bool send_to_other_program(pe& self, const element_name<T, Index>& to, scheduler::sink* sink,
                                             patience p, const A&... args) {
  bytes arguments;
  pack_after(arguments, args...);
  if (!may_send_as_guest(self, to.array, p == patience::may_wait)) return false;
  array_directory& directory = array_directory::of(self);
  std::optional<array_directory::expectation> answer;
  if (sink != nullptr) answer.emplace(directory, directory.expect_as_guest(*sink, to.array));
  typename Message::tag_type tag{};
  if constexpr (Message::ordered) tag = next_tag(self, to).take();
  bytes b = Message::head_to_wire({0, answer ? answer->call() : 0, self.id(), 0, 0}, to.index, tag);
  b.insert(b.end(), arguments.begin(), arguments.end());
  send_as_guest(self, to.array, guest_request::message, Message::routed, b);
  if (answer) answer->sent();
  return true;
}

/// Sends a message to an element; `sink` null: one way. Parks while the way or the element's mailbox is full, or returns false instead.
template <class Message, class T, class Index, class... A>
bool send_element(pe& self, const element_name<T, Index>& to, scheduler::sink* sink, patience p, A&&... args) {
  for (bool noted = false;;) {
    array_core* const core = array_directory::of(self).find(to.array);
    if (core == nullptr) [[unlikely]]
      return send_to_other_program<Message>(self, to, sink, p, args...);
    auto& part = static_cast<index_part<Index>&>(*core);
    if (part.measures() && !noted) [[unlikely]] {
      noted = true;
      part.note_sent(to.index, wire::record_bytes(sizeof(typename Message::payload)) +
                                   std::uint64_t{pages_beside(args...)} * wire::page_bytes);
    }
    if (slot* const found = part.find_process(to.index)) [[likely]] {
      slot& s = *found;
      if (self.flow().over_limit(s)) [[unlikely]] {
        if (p == patience::must_not) return false;
        if (self.flow().wait_for_room(s)) continue;  // it may be elsewhere now
      }
      if constexpr (Message::ordered) {
        bool again = false;
        if (!send_away<Message>(self, to, sink, p, again, std::forward<A>(args)...)) return false;
        if (!again) return true;
        continue;
      }
      const std::uint16_t pages = pages_beside(args...);
      scheduler::message* m = Message::base::make_message(self, std::forward<A>(args)...);
      part.begins();
      m->source_pe = self.id();
      fill(m->head, {self.id(), 0, 0}, Message::here, wire::payload_form::owned, sink, pages);
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
    bool again = false;
    if (!send_away<Message>(self, to, sink, p, again, std::forward<A>(args)...)) return false;
    if (!again) return true;
  }
}

/// How a probe of the waits follows a call to an element. `Name`: the element's, or a reference to it.
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

template <class Message, class R, class T, class Index, class... A>
future<R> start_element(pe& self, const element_name<T, Index>& to, A&&... args) {
  using route = element_route<T, Index, element_name<T, Index>>;
  auto state = future_access<R>::make_routed(self, route(to), Message::routed);
  auto travelling = future_access<R>::make_hold(state);
  send_element<Message>(self, to, state.get(), patience::may_wait, std::forward<A>(args)...);
  travelling.release();
  return future_access<R>::wrap(std::move(state));
}

template <class Message, class R, class T, class Index, class... A>
value_t<R> call_element(pe& self, const element_name<T, Index>& to, A&&... args) {
  self.require_process();
  element_route<T, Index, const element_name<T, Index>&> way(to);
  typed_sink<value_t<R>> k;
  prepare(k, self, address{}, Message::routed);
  k.route = &way;
  send_element<Message>(self, to, &k, patience::may_wait, std::forward<A>(args)...);
  self.wait(k);
  return k.take();
}

// What calling a method of `grid[i]` means in each mode.
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
      if (slot* const found =
              m::ordered ? nullptr : part.find_process(to.index)) {  // not before what is still on its way
        slot& s = *found;
        if (s.state == scheduler::process_state::idle && self.room_on_stack()) [[likely]] {
          const auto run = [&]() -> R {
            const inline_frame frame(self, s, m::here);
            part.begins();
            const activity_end end(&part);
            return M::call(static_cast<typename M::object&>(*static_cast<T*>(s.where_apart())),
                           std::forward<P>(args)...);
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
  struct cast {
    using target = std::uint32_t;
    template <class M, class R, class... P>
    static void invoke(const std::uint32_t& array, P&&... args) {
      bytes b;
      pack_after(b, std::as_const(args)...);
      broadcast_to(here_pe(), array, broadcast_message<T, Index, M, R, P...>::cast, b);
    }
  };
};

/// The proxy of a class, for an object of another kind than an address.
template <class Mode, class T>
[[nodiscard]] const auto* view_target(const typename Mode::target& at) noexcept {
  static_assert(
      is_described<T>,
      "orrery: this class has no ORRERY_PROCESS(Class, methods...) line before this use; if its own methods use it, put the line "
      "before the class, behind a forward declaration");
  using proxy = proxy_of<description_of<T>, Mode>;
  static_assert(std::is_empty_v<proxy>);
  return std::launder(reinterpret_cast<const proxy*>(&at));
}
template <class Mode, class T>
class bound_target {
 public:
  explicit bound_target(typename Mode::target t) : target_(std::move(t)) {}
  [[nodiscard]] const auto* operator->() const noexcept { return view_target<Mode, T>(target_); }

 private:
  typename Mode::target target_;
};

}  // namespace orrery::detail
