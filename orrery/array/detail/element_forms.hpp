// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/index_message.hpp>
#include <orrery/process/detail/argument_forms.hpp>

#include <tuple>

// The arguments of a message to an element in its forms on the way. Methods whose parameters have
// the same types share it, so that the compiler makes it once.
namespace orrery::detail {

/// For methods with parameters P... of elements with such an index. `Ordered`: their order is kept.
template <class Index, bool Ordered, class... P>
struct element_forms : argument_forms<P...> {
  using arguments = argument_forms<P...>;
  using by_index = index_messages<Index>;
  using typename arguments::owned;
  using typename arguments::tuple;
  using prefix = routed_prefix<Index, Ordered>;
  using tag_type = typename prefix::tag_type;
  static constexpr bool ordered = Ordered;
  struct payload : prefix {
    owned args;
  };
  static_assert(alignof(payload) <= scheduler::payload_alignment);

  static bytes head_to_wire(const route_head& h, const Index& i, [[maybe_unused]] const tag_type& tag) {
    return by_index::head_to_wire(Ordered, h, i, tag_in<Ordered>(tag));
  }
  static bytes to_wire(const std::byte* at) {
    const auto& p = *reinterpret_cast<const payload*>(at);
    bytes b = head_to_wire(p.head, p.index, p.tag);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const tuple& all = arguments::values(p.args);
      pack_after(b, wire_form(std::get<I>(all))...);
    }(std::index_sequence_for<P...>{});
    return b;
  }
  /// The tag of a message in a mailbox.
  static order_tag tag_of(const scheduler::message& m) {
    auto* at = const_cast<scheduler::message&>(m).payload();
    if (m.head.form == wire::payload_form::owned) return tag_in<Ordered>(reinterpret_cast<const payload*>(at)->tag);
    orrery::reader r(std::span(reinterpret_cast<const std::byte*>(at),
                               m.head.size.load(std::memory_order_relaxed) - wire::granule - m.head.padding));
    (void)orrery::read<route_head>(r);
    (void)orrery::read<Index>(r);
    return by_index::template read_tag<Ordered>(r);
  }
  /// Views are read as what they are kept as: the message need not outlive the call.
  [[gnu::noinline]] static tuple read_kept([[maybe_unused]] orrery::reader& from) {
    return tuple{kept_t<P>(orrery::read<std::remove_cvref_t<P>>(from))...};
  }
  /// Moves the payload of the message on its way.
  static void relocate_routed(void* to, void* from) {
    auto* old = static_cast<payload*>(from);
    new (to) payload{{old->head, std::move(old->index), old->tag}, std::move(old->args)};
    old->~payload();
  }
  static void drop_routed(void* p) { static_cast<payload*>(p)->~payload(); }

  /// A message in the mailbox of an element that has ended, or moves on: its arguments go on their
  /// way.
  static void forward_here(array_core& core, cell_base& c, scheduler::message* m, const message_form& form) {
    pe& self = core.self();
    route_head h{0, 0, self.id(), 0, core.resends_failed() ? route_head::tried : std::uint16_t{0}};
    h.take_along();
    if (m->head.reply != 0)
      h.call = array_directory::of(self).waits().expect(*reinterpret_cast<scheduler::sink*>(m->head.reply), core.id());
    scheduler::message* out =
        by_index::make_routed(self, form, core.id(), h, static_cast<index_cell<Index>&>(c).index, m->head.padding);
    auto* p = reinterpret_cast<payload*>(out->payload());
    arguments::relocate(&p->args, m->payload());
    self.messages().release(m);
    dispatch(self, out);
  }
};

}  // namespace orrery::detail
