// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/index_sender.hpp>
#include <orrery/array/detail/part_order.hpp>

#include <optional>
#include <span>

// How index_sender sends.
namespace orrery::detail {

// messages at the sender, while the way changes
inline constexpr std::uint32_t most_waiting = 1024;

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

template <class Index>
stream_place index_sender<Index>::next_tag(pe& self, std::uint32_t array, const Index& to, const message_form& form) {
  bytes index;
  pack_after(index, to);
  return stream_place(array_directory::of(self).sender().to(self, array, index, *form.closer));
}

template <class Index>
void index_sender<Index>::pack_arguments(bytes& b, const arguments_ref& arguments) {
  const std::size_t begin = b.size();
  b.resize(begin + arguments.wire_size());
  arguments.write(std::span<std::byte>(b).subspan(begin));
}

// The call behind a message, if it is one.
class call_of_message {
 public:
  [[nodiscard]] std::uint64_t number(pe& self, scheduler::sink* sink, std::uint32_t array) {
    return sink != nullptr ? answer_.emplace(array_directory::of(self).waits(), *sink, array).call() : 0;
  }
  void sent() {
    if (answer_) answer_->sent();
  }

 private:
  std::optional<expected_answer> answer_;
};

// As a message that finds its way itself, from here.
template <class Index>
bool index_sender<Index>::send_from_here(pe& self, index_part<Index>& part, const Index& to, const message_form& form,
                                         scheduler::sink* sink, patience p, bool& again,
                                         const arguments_ref& arguments) {
  using messages = index_messages<Index>;
  if (part.waiting_at(to) > most_waiting && self.active() != nullptr) {
    if (p == patience::must_not) return false;
    if (self.refusing()) self.shutdown().refuse("a message to an element");
    self.yield();
    return again = true;
  }
  call_of_message call;
  scheduler::message* m = messages::make_routed(
      self, form, part.id(), {0, call.number(self, sink, part.id()), self.id(), 0, 0}, to, arguments.pages());
  try {
    arguments.move(m->payload());
  } catch (...) {
    messages::end_prefix(m->payload());
    self.messages().release(m);
    throw;
  }
  if (form.ordered) {
    try {
      messages::tag_of(m->payload()) = next_tag(self, part.id(), to, form).take();
    } catch (...) {
      discard(self, m);
      throw;
    }
  }
  call.sent();
  part.begins();
  m->head.kind = arguments.level();
  dispatch(self, m);
  return true;
}

template <class Index>
bool index_sender<Index>::send_remote(pe& self, std::uint32_t array, const Index& to, const message_form& form,
                                      scheduler::sink* sink, patience p, bool& again, const arguments_ref& arguments) {
  array_core* const core = array_directory::of(self).find(array);
  if (core == nullptr) [[unlikely]]
    return send_to_other_program(self, array, to, form, sink, p, arguments);
  auto& part = static_cast<index_part<Index>&>(*core);
  const bool by_route = form.ordered || arguments.level() != wire::record_kind::message;
  remote_location* way = by_route && part.find_local(to) != nullptr ? nullptr : part.way_to(to);
  if (way == nullptr) return send_from_here(self, part, to, form, sink, p, again, arguments);
  const address there{way->pe, way->slot, way->generation};  // no slot until it is told
  if (p == patience::must_not) {
    if (self.is_stopped(there)) return false;
  } else if (self.wait_while_stopped(there)) {
    return again = true;
  }
  const std::uint32_t to_pe = way->pe;
  space room;
  try {
    room.ring = &self.outbound_to(to_pe);
    room.bytes =
        wire::record_bytes(form.payload_bytes) + wire::ring_surcharge(arguments.pages(), room.ring->ring.capacity());
    room.record = room.ring->try_reserve(room.bytes);
    if (room.record == nullptr) [[unlikely]] {
      if (p == patience::must_not) return false;
      // parks, and then the way may be another one
      room.record = self.reserve(*room.ring, room.bytes);
      auto& now = index_part_of<Index>(self, array);
      way = now.find_local(to) == nullptr ? now.way_to(to) : nullptr;
      if (way == nullptr || way->pe != to_pe) return again = true;
    }
  } catch (const node_lost&) {
    // like a call, or a post, to any process
    if (sink != nullptr) {
      scheduler::reply_error(self, reinterpret_cast<std::uint64_t>(sink), self.id(), false, &form.routed,
                             std::current_exception());
    } else {
      self.failures().report_unsent(form.routed, to_pe, std::current_exception());
    }
    return true;
  }
  write_record(self, part, *way, room, to, form, sink, arguments);
  return true;
}

template <class Index>
void index_sender<Index>::write_record(pe& self, index_part<Index>& part, remote_location& way, const space& room,
                                       const Index& to, const message_form& form, scheduler::sink* sink,
                                       const arguments_ref& arguments) {
  using messages = index_messages<Index>;
  call_of_message call;
  const bool wants = way.slot == wire::no_slot && !way.wanted;
  route_head h{part.next_number(), call.number(self, sink, part.id()), self.id(), 0,
               wants ? route_head::wants_location : std::uint16_t{0}};
  // others wait for the answer
  if (way.asks) h.flags |= route_head::asks | route_head::wants_location;
  order_tag tag{};
  stream_place place;
  if (form.ordered) {
    place = next_tag(self, part.id(), to, form);
    tag = place.tag();
  }
  // when nothing can throw any more: who hears of a number believes that it was sent
  const auto numbered = [&] {
    if (form.ordered) (void)place.take();
    part.begins();
    note_hop(self, true);
    way.last = h.number;
    way.used = true;
    if (wants) way.wanted = true;
    if (way.asks) way.state = remote_location::what::waiting;
    call.sent();
  };
  if (room.ring->remote) {
    bytes b = messages::head_to_wire(form.ordered, h, to, tag);
    pack_arguments(b, arguments);
    numbered();
    tell(self, way.pe, form.routed, part.id(), 0, b, arguments.level());
    return;
  }
  wire::envelope& e = *room.record;
  messages::begin_prefix(e.payload(), form.ordered, h, to, tag);
  try {
    arguments.move(e.payload());
  } catch (...) {
    messages::end_prefix(e.payload());
    throw;
  }
  numbered();
  write_envelope(e, {way.pe, part.id(), 0}, form.routed, wire::payload_form::owned, nullptr, arguments.pages(),
                 arguments.level());
  self.commit(*room.ring, room.bytes);
}

template <class Index>
bool index_sender<Index>::has_room(pe& self, std::uint32_t array, const Index& to, patience p) {
  for (;;) {
    array_core* const core = array_directory::of(self).find(array);
    slot* const s = core != nullptr ? static_cast<index_part<Index>*>(core)->find_process(to) : nullptr;
    if (s == nullptr || !self.flow().over_limit(*s)) return true;
    if (p == patience::must_not) return false;
    self.flow().wait_for_room(*s);
  }
}

template <class Index>
bool index_sender<Index>::send_to_other_program(pe& self, std::uint32_t array, const Index& to,
                                                const message_form& form, scheduler::sink* sink, patience p,
                                                const arguments_ref& arguments) {
  bytes packed;
  pack_arguments(packed, arguments);
  if (!may_send_as_guest(self, array, p == patience::may_wait)) return false;
  array_waits& waits = array_directory::of(self).waits();
  std::optional<expected_answer> answer;
  if (sink != nullptr) answer.emplace(waits, waits.expect_as_guest(*sink, array));
  order_tag tag{};
  if (form.ordered) tag = next_tag(self, array, to, form).take();
  bytes b =
      index_messages<Index>::head_to_wire(form.ordered, {0, answer ? answer->call() : 0, self.id(), 0, 0}, to, tag);
  b.insert(b.end(), packed.begin(), packed.end());
  send_as_guest(self, array, guest_request::message, form.routed, b);
  if (answer) answer->sent();
  return true;
}

}  // namespace orrery::detail
