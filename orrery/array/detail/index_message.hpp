// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/index_part.hpp>

#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

// The common part of messages to elements that does not depend on the class of the elements.
namespace orrery::detail {

/// The begin of an owned message on its way.
template <class Index, bool Ordered>
struct routed_prefix {
  struct no_tag {};
  using tag_type = std::conditional_t<Ordered, order_tag, no_tag>;
  route_head head;
  Index index;
  [[no_unique_address]] tag_type tag;
};

template <bool Ordered, class Tag>
[[nodiscard]] order_tag tag_in(const Tag& t) noexcept {
  if constexpr (Ordered) {
    return t;
  } else {
    return {};
  }
}

/// The form of a message to an element on its way, for what does not know the types of its
/// arguments. One static object for each kind of message.
struct message_form {
  const array_handler& routed;
  const array_handler& here;
  std::uint32_t payload_bytes = 0;  ///< of the owned form
  bool ordered = false;
  const array_handler* closer = nullptr;  ///< of messages in order: the last one of their stream
};

/// The common part of messages to the elements of all classes with one type of indices.
template <class Index>
struct index_messages {
  // --- the prefix of the owned form; head and index lie at the same places in both kinds ---------
  static order_tag& tag_of(std::byte* payload) noexcept {
    return std::launder(reinterpret_cast<routed_prefix<Index, true>*>(payload))->tag;
  }
  static void begin_prefix(std::byte* payload, bool ordered, const route_head& h, const Index& i, order_tag tag) {
    auto* const p = reinterpret_cast<routed_prefix<Index, true>*>(payload);
    new (&p->head) route_head(h);
    new (&p->index) Index(i);
    if (ordered) new (&p->tag) order_tag(tag);
  }
  static void end_prefix(std::byte* payload) noexcept {
    reinterpret_cast<routed_prefix<Index, false>*>(payload)->index.~Index();
  }
  /// A message on its way without its arguments, which the caller makes.
  static scheduler::message* make_routed(pe& self, const message_form& form, std::uint32_t array, const route_head& h,
                                         const Index& i, std::uint16_t pages) {
    scheduler::message* m = self.messages().allocate(form.payload_bytes);
    m->source_pe = self.id();
    m->head.size.store(wire::record_bytes(form.payload_bytes), std::memory_order_relaxed);
    write_envelope(m->head, {self.id(), array, 0}, form.routed, wire::payload_form::owned, nullptr, pages);
    begin_prefix(m->payload(), form.ordered, h, i, {});
    return m;
  }
  static bytes head_to_wire(bool ordered, const route_head& h, const Index& i, const order_tag& tag) {
    return ordered ? pack(0, h, i, tag) : pack(0, h, i);
  }

  template <bool Ordered>
  static order_tag read_tag(orrery::reader& r) {
    if constexpr (Ordered) return orrery::read<order_tag>(r);
    return {};
  }
  template <bool Ordered>
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size);
  [[noreturn]] static void reject_ended(pe& self, std::uint32_t array, const route_head& h, const Index& i);
  // The head of a message in a mailbox: in both forms it comes first.
  static route_head head_of(const std::byte* payload) noexcept {
    route_head h;
    std::memcpy(&h, payload, sizeof h);
    return h;
  }
  static scheduler::hidden_caller::name caller_of(const scheduler::message& m) noexcept {
    const route_head h = head_of(const_cast<scheduler::message&>(m).payload());
    return {h.origin, h.call};
  }
  static Index index_of(const scheduler::delivery& d);
  // Ends the turn of a message that has waited at its home: the next one can come.
  static void end_turn(array_core* core, const route_head& h, const Index& i) {
    if ((h.flags & route_head::from_home) != 0 && core != nullptr) [[unlikely]]
      static_cast<index_part<Index>*>(core)->tell_turn_over(i);
  }
  // `c`: the element, if there is one.
  static void fail_caller(pe& self, array_core* core, cell_base* c, scheduler::delivery& d,
                          std::exception_ptr why) noexcept;
};

}  // namespace orrery::detail
