// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/part_order.hpp>

#include <cstring>
#include <tuple>

// A method of an element as a message, in its four forms:
//   here     in the mailbox of an element of this PE: the arguments, as for any process
//   routed   on its way, behind its route: what the element is found by
//   cast     a broadcast on its way
//   member   a broadcast in a mailbox
namespace orrery::detail {

/// Calls a method of the T of a process that is an element.
template <class T, class Index, class M, class R>
struct element_operation {
  using object = void;
  using result = R;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  static constexpr bool ordered = keeps_order<T>(M::name);
  template <class... A>
  static decltype(auto) run(pe&, slot& s, void*, A&&... args) {
    auto& object = *static_cast<T*>(s.where_apart());
    const load_scope measured(cell<T, Index>::of(&object));
    return M::call(static_cast<typename M::object&>(object), std::forward<A>(args)...);
  }
};

// What is written for an argument that is kept.
template <class K>
[[nodiscard]] const K& wire_form(const K& k) noexcept {
  return k;
}
template <class E>
[[nodiscard]] std::span<const E> wire_form(const kept_span<E>& k) noexcept {
  return k;
}

template <class T, class Index, class Operation, class... P>
struct element_message;

/// In the place of a message whose arguments cannot be written: what waits for it goes on, as who asks where the element is, and what was sent after it.
template <class T, class Index, bool Ordered>
struct nothing_operation {
  using object = void;
  using result = void;
  using message = element_message<T, Index, nothing_operation>;
  static constexpr bool may_miss = true;
  static constexpr bool ordered = Ordered;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept {
    return Ordered ? "(a message in order that failed)" : "(a message that failed)";
  }
  static void run(pe&, slot&, void*) noexcept {}
};

template <class T, class Index, class Operation, class... P>
struct element_message {
  using base = typed_handler<Operation, P...>;
  using owned = typename base::owned;
  using part_type = array_part<T, Index>;
  using result = typename Operation::result;
  // Of a collective: one that has been destroyed meanwhile is not missed.
  static constexpr bool may_miss = requires { Operation::may_miss; };
  static constexpr early policy = may_miss ? early::refuse : early_policy<T>(Operation::name());
  // Its order is kept, whoever migrates: then it is a routed one in mailboxes, too.
  static constexpr bool ordered = [] {
    if constexpr (requires { Operation::ordered; }) return Operation::ordered;
    return false;
  }();
  static constexpr bool counts = true;
  static constexpr bool closes = requires { Operation::closes; };
  static constexpr bool answers_later = requires { Operation::answers_later; };  // it is told whom, and does so itself
  static_assert((policy != early::create_at_home && policy != early::create_at_sender) ||
                    std::is_default_constructible_v<T>,
                "orrery: when_early() of this class creates elements on demand: it needs a default constructor");

  struct no_tag {};
  using tag_type = std::conditional_t<ordered, order_tag, no_tag>;
  struct payload {
    route_head head;
    Index index;
    [[no_unique_address]] tag_type tag;
    owned args;
  };
  static_assert(alignof(payload) <= scheduler::payload_alignment);

  static typename base::tuple& values(owned& a) noexcept {
    if constexpr (base::boxed) {
      return *a;
    } else {
      return a;
    }
  }
  static const typename base::tuple& values(const owned& a) noexcept {
    if constexpr (base::boxed) {
      return *a;
    } else {
      return a;
    }
  }
  static bytes head_to_wire(const route_head& h, const Index& i, [[maybe_unused]] const tag_type& tag) {
    if constexpr (ordered) {
      return pack(0, h, i, tag);
    } else {
      return pack(0, h, i);
    }
  }
  static bytes to_wire(const payload& p) {
    return std::apply(
        [&](const auto&... v) {
          bytes b = head_to_wire(p.head, p.index, p.tag);
          pack_after(b, wire_form(v)...);
          return b;
        },
        values(p.args));
  }
  static tag_type read_tag([[maybe_unused]] orrery::reader& r) {
    if constexpr (ordered) {
      return orrery::read<order_tag>(r);
    } else {
      return {};
    }
  }
  static order_tag wide(const tag_type& t) noexcept {
    if constexpr (ordered) {
      return t;
    } else {
      return {};
    }
  }
  // Of a message in a mailbox.
  static order_tag tag_of(const scheduler::message& m) {
    auto* at = const_cast<scheduler::message&>(m).payload();
    if (m.head.form == wire::payload_form::owned) return wide(reinterpret_cast<const payload*>(at)->tag);
    orrery::reader r(std::span(reinterpret_cast<const std::byte*>(at),
                               m.head.size.load(std::memory_order_relaxed) - wire::granule - m.head.padding));
    (void)orrery::read<route_head>(r);
    (void)orrery::read<Index>(r);
    return wide(read_tag(r));
  }

  // --- on its way --------------------------------------------------------------------------------------------------

  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    route_head h;
    array_core* const core = array_directory::of(self).find(e.slot);
    try {
      if (d.form == wire::payload_form::owned) {
        auto& p = *reinterpret_cast<payload*>(d.payload);
        h = p.head;
        if (core == nullptr) throw_no_array(e.slot);
        auto* part = static_cast<part_type*>(core);
        if (part->find_local(p.index) == nullptr) {
          const Index i = p.index;  // the payload moves
          return part->template route<element_message>(d, e, size, h, i, wide(p.tag));
        }
        return part->template route<element_message>(d, e, size, h, p.index, wide(p.tag));
      }
      orrery::reader r(wire_payload(d, e, size));
      h = orrery::read<route_head>(r);
      const auto i = orrery::read<Index>(r);
      const tag_type tag = read_tag(r);
      if (core == nullptr) throw_no_array(e.slot);
      return static_cast<part_type*>(core)->template route<element_message>(d, e, size, h, i, wide(tag));
    } catch (...) {
      const activity_end end(core);
      reject(self, d, h, std::current_exception());
      return nullptr;
    }
  }

  // Before it leaves this PE. One that had waited here has no number yet.
  static void count_hop(part_type& part, route_head& h, const scheduler::delivery& d) noexcept {
    const bool first = h.hops == 0 && d.source_pe == part.self().id();
    note_hop(part.self(), first);
    if (!first && (h.flags & route_head::asks) != 0) h.flags |= route_head::asked;
    if (first && h.number == 0) {
      h.number = part.last_number();
    } else {
      ++h.hops;
    }
  }
  static void forward_to(part_type& part, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size,
                         std::uint32_t to) {
    pe& self = part.self();
    if (d.form != wire::payload_form::owned) {
      const auto from = wire_payload(d, e, size);
      bytes b(from.begin(), from.end());
      route_head h;
      std::memcpy(&h, b.data(), sizeof h);
      count_hop(part, h, d);
      std::memcpy(b.data(), &h, sizeof h);
      d.release();
      tell(self, to, routed, part.id(), 0, b);
      return;
    }
    auto* p = reinterpret_cast<payload*>(d.payload);
    count_hop(part, p->head, d);
    if (self.owner().is_local(to) && to != self.id()) {
      scheduler::channel& c = self.channel_to(to);
      const std::uint32_t record =
          wire::record_bytes(sizeof(payload)) + wire::ring_surcharge(e.padding, c.ring.capacity());
      if (wire::envelope* out = self.try_reserve(c, record)) {
        relocate(out->payload(), p);
        fill(*out, {to, part.id(), 0}, routed, wire::payload_form::owned, nullptr, e.padding);
        d.form = wire::payload_form::refs;  // nothing is left there to drop
        d.release();
        self.commit(c, record);
        return;
      }
    }
    bytes b;
    try {
      b = to_wire(*p);
    } catch (...) {
      send_nothing(part, *p, to);
      throw;
    }
    p->~payload();
    d.form = wire::payload_form::refs;
    d.release();
    tell(self, to, routed, part.id(), 0, b);
  }

  // Its own call fails here.
  static void send_nothing(part_type& part, const payload& p, std::uint32_t to) {
    route_head h = p.head;
    h.call = 0;
    bytes b = head_to_wire(h, p.index, p.tag);
    const scheduler::handler* as = nullptr;
    if constexpr (requires { typename Operation::nothing; }) {
      as = &Operation::nothing::routed;
      Operation::pack_nothing(b, values(p.args));
    } else {
      as = &nothing_operation<T, Index, ordered>::message::routed;
    }
    part.begins();
    tell(part.self(), to, *as, part.id(), 0, b);
  }

  static void fail(part_type& part, scheduler::delivery& d, const route_head& h, std::exception_ptr why) {
    const activity_end end(&part);
    reject(part.self(), d, h, std::move(why));
  }
  static void reject(pe& self, scheduler::delivery& d, const route_head& h, std::exception_ptr why) {
    if (d.form == wire::payload_form::owned) {
      reinterpret_cast<payload*>(d.payload)->~payload();
      d.form = wire::payload_form::refs;
    }
    d.release();
    if constexpr (may_miss)
      if (h.call == 0 && is_process_gone(why)) return;
    answer_error(self, {h.origin, h.call}, &routed, std::move(why));
  }

  // --- at the element ----------------------------------------------------------------------------------------------

  template <std::size_t... I>
  static void invoke(pe& self, slot& s, const route_head& h, typename base::tuple& args, std::index_sequence<I...>) {
    if constexpr (answers_later) {
      Operation::run(self, s, caller{h.origin, h.call});
    } else {
      auto call = [&]() -> decltype(auto) { return Operation::run(self, s, nullptr, pass<P>(std::get<I>(args))...); };
      if constexpr (std::is_void_v<result>) {
        call();
        answer_value(self, {h.origin, h.call}, {});
      } else if (h.call == 0) {
        (void)call();
      } else {
        bytes b;
        pack_after(b, call());
        answer_value(self, {h.origin, h.call}, b);
      }
    }
  }
  template <class Q>
  static decltype(auto) pass(kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return static_cast<Q&&>(k);
    }
  }
  static void run_here(pe& self, slot& s, scheduler::delivery& d) {
    const activity_end end(part_at(self, s));
    if constexpr (answers_later) {
      static_assert(sizeof...(P) == 0);
      caller from;
      try {
        if (d.reply != 0)
          from = {self.id(), array_directory::of(self).expect(*reinterpret_cast<scheduler::sink*>(d.reply))};
        d.release();
        if (from.call != 0) {  // as who waits has it now: deadlock.cpp
          d.method = &routed;
          d.reply = from.call;
          d.source_pe = from.pe;
        }
        Operation::run(self, s, from);
      } catch (...) {
        answer_error(self, from, &here, std::current_exception());
      }
    } else {
      base::run(self, s, d);
    }
  }
  static array_core* part_at(pe& self, slot& s) noexcept {
    return s.has_object ? cell<T, Index>::of(s.where_apart()).part : array_directory::of(self).part_of_process(s);
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    const activity_end end(part_at(self, s));
    route_head h;
    try {
      if (d.form == wire::payload_form::owned) {
        auto* p = reinterpret_cast<payload*>(d.payload);
        h = p->head;
        owned args(std::move(p->args));
        p->~payload();
        d.form = wire::payload_form::refs;
        d.release();
        name_caller(d, h);
        if (!s.has_object) throw process_gone("an element that was never complete");
        invoke(self, s, h, values(args), std::index_sequence_for<P...>{});
        return;
      }
      orrery::reader r({d.payload, d.payload_bytes});
      h = orrery::read<route_head>(r);
      (void)orrery::read<Index>(r);
      (void)read_tag(r);
      orrery::reader from(after_section({d.payload, d.payload_bytes}, r));
      // Views are read as what they are kept as: the message need not outlive the call.
      typename base::tuple args = read_all(self, s, from);
      d.release();
      name_caller(d, h);
      if (!s.has_object) throw process_gone("an element that was never complete");
      invoke(self, s, h, args, std::index_sequence_for<P...>{});
    } catch (...) {
      reject(self, d, h, std::current_exception());
    }
  }
  static typename base::tuple read_all(pe& self, slot& s, orrery::reader& from) {
    [[maybe_unused]] const orrery::reader begin = from;
    try {
      return typename base::tuple{read_kept<P>(from)...};
    } catch (...) {
      if constexpr (requires { Operation::unreadable(self, s, begin); }) Operation::unreadable(self, s, begin);
      throw;
    }
  }
  // For who looks at what runs: deadlock.cpp.
  static void name_caller(scheduler::delivery& d, const route_head& h) noexcept {
    d.reply = h.call;
    d.source_pe = h.origin;
  }
  template <class Q>
  static kept_t<Q> read_kept(orrery::reader& r) {
    return kept_t<Q>(orrery::read<std::remove_cvref_t<Q>>(r));
  }

  // --- left behind -------------------------------------------------------------------------------------------------

  // The arguments, as a message on its way.
  static scheduler::message* make_routed(pe& self, std::uint32_t array, const route_head& h, const Index& i,
                                         std::uint16_t pages) {
    scheduler::message* m = self.allocate_message(sizeof(payload));
    m->source_pe = self.id();
    m->head.size.store(wire::record_bytes(sizeof(payload)), std::memory_order_relaxed);
    fill(m->head, {self.id(), array, 0}, routed, wire::payload_form::owned, nullptr, pages);
    auto* p = reinterpret_cast<payload*>(m->payload());
    new (&p->head) route_head(h);
    new (&p->index) Index(i);
    if constexpr (ordered) new (&p->tag) order_tag;
    return m;
  }
  static void forward_here(array_core& core, cell_base& c, scheduler::message* m) {
    pe& self = core.self();
    route_head h{0, 0, self.id(), 0, core.resends_failed() ? route_head::tried : std::uint16_t{0}};
    if (m->head.reply != 0)
      h.call = array_directory::of(self).expect(*reinterpret_cast<scheduler::sink*>(m->head.reply));
    scheduler::message* out = make_routed(self, core.id(), h, static_cast<cell<T, Index>&>(c).index, m->head.padding);
    auto* p = reinterpret_cast<payload*>(out->payload());
    base::relocate(&p->args, m->payload());
    self.release_message(m);
    dispatch(self, out);
  }
  static void forward_routed(array_core& core, cell_base&, scheduler::message* m) {
    route_head h = head_of(m->payload());
    if (core.resends_failed()) h.flags |= route_head::tried;
    if (h.hops > 1) h.hops = 1;  // it had arrived; what it goes now is another way
    std::memcpy(m->payload(), &h, sizeof h);
    dispatch(core.self(), m);
  }
  // Of one that is in a mailbox: in both forms the head comes first.
  static route_head head_of(const std::byte* payload) noexcept {
    route_head h;
    std::memcpy(&h, payload, sizeof h);
    return h;
  }
  static scheduler::hidden_caller::name caller_of(const scheduler::message& m) noexcept {
    const route_head h = head_of(const_cast<scheduler::message&>(m).payload());
    return {h.origin, h.call};
  }
  static void fail_caller(pe& self, slot& s, scheduler::delivery& d, std::exception_ptr why) noexcept {
    const activity_end end(part_at(self, s));
    if constexpr (ordered)  // else, if those around it go on their way again, it would be waited for
      if (s.apart && !s.dying) cell<T, Index>::of(s.where_apart()).order_of().in.failed(tag_of(*d.heap));
    reject(self, d, head_of(d.payload), std::move(why));
  }
  static constexpr scheduler::hidden_caller hidden{&caller_of, &fail_caller};
  static void fail_here(pe& self, slot& s, scheduler::delivery& d, std::exception_ptr why) noexcept {
    const activity_end end(part_at(self, s));
    self.fail(d, std::move(why));
  }
  static constexpr scheduler::hidden_caller counted{nullptr, &fail_here};
  static void relocate(void* to, void* from) {
    auto* old = static_cast<payload*>(from);
    new (to) payload{old->head, std::move(old->index), old->tag, std::move(old->args)};
    old->~payload();
  }
  static void drop(void* p) { static_cast<payload*>(p)->~payload(); }

  static void describe(wire::shape& types) {
    types.describe<Index>();
    base::describe(types);
  }

  struct name {};
  struct here_handler : array_handler {
    here_handler() noexcept
        : array_handler(Operation::class_name(), Operation::name(), type_name<void(name, element_message)>(), &run_here,
                        &base::relocate, &base::drop, static_cast<std::uint32_t>(sizeof(owned)), base::views,
                        &refuse_route, &forward_here) {
      caller = &counted;
    }
  };
  inline static const here_handler here;
  struct routed_handler : array_handler {
    routed_handler() noexcept
        : array_handler(Operation::class_name(), Operation::name(), type_name<element_message>(), &element_message::run,
                        &element_message::relocate, &element_message::drop, static_cast<std::uint32_t>(sizeof(payload)),
                        false, &element_message::route, &element_message::forward_routed, &element_message::describe) {
      lost = &lost_on_its_way;
      caller = &hidden;
      if constexpr (ordered) tag_of = &element_message::tag_of;
      if constexpr (closes) close = &Operation::close;
    }
  };
  inline static const routed_handler routed;
};

/// The last message of a stream: its sender has ended. After the others, which may have to go on their way again until they are executed.
template <class T, class Index>
struct close_operation {
  using object = void;
  using result = void;
  using message = element_message<T, Index, close_operation, std::uint64_t>;
  static constexpr bool may_miss = true;
  static constexpr bool ordered = true;
  static constexpr bool closes = true;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(end of a stream)"; }
  static void run(pe&, slot& s, void*, std::uint64_t stream) {
    auto& c = cell<T, Index>::of(s.where_apart());
    if (c.order != nullptr) c.order->in.end(stream);
  }
  static void close(pe& self, std::uint32_t array, std::string_view index, order_tag tag) {
    array_core* part = array_directory::of(self).find(array);
    if (part == nullptr) return;
    orrery::reader r(std::as_bytes(std::span(index)));
    const auto i = orrery::read<Index>(r);
    scheduler::message* m = message::make_routed(self, array, {0, 0, self.id(), 0, 0}, i, 0);
    auto* p = reinterpret_cast<typename message::payload*>(m->payload());
    p->tag = tag;
    message::base::make_owned(&p->args, tag.stream);
    part->begins();
    dispatch(self, m);
  }
};

// --- broadcasts ----------------------------------------------------------------------------------------------------

template <class T, class Index, class M, class R, class... P>
struct broadcast_message {
  using routed = element_message<T, Index, element_operation<T, Index, M, R>, P...>;
  using tuple = std::tuple<kept_t<P>...>;
  static_assert((std::is_copy_constructible_v<kept_t<P>> && ...),
                "orrery: each element needs arguments of its own: those of a broadcast must be copyable");
  struct record final : broadcast_record {
    tuple args;
    explicit record(tuple&& t) : args(std::move(t)) {}
    void append_arguments(bytes& b) const override {
      std::apply([&](const auto&... v) { pack_after(b, wire_form(v)...); }, args);
    }
  };

  static std::unique_ptr<broadcast_record> decode(std::span<const std::byte> from) {
    orrery::reader r(from);
    auto b = std::make_unique<record>(tuple{routed::template read_kept<P>(r)...});
    b->member = &member;
    b->cast = &broadcast_message::cast;
    return b;
  }
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      if (array_core* part = array_directory::of(self).find(e.slot))
        part->receive_broadcast(cast, wire_payload(d, e, size));
      d.release();
    } catch (...) {
      self.fail(d, std::current_exception());
    }
    return nullptr;
  }
  [[nodiscard]] static record* record_in(const void* payload) noexcept {
    broadcast_record* r = nullptr;
    std::memcpy(&r, payload, sizeof r);
    return static_cast<record*>(r);
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    record* r = record_in(d.payload);
    d.form = wire::payload_form::refs;
    d.release();
    try {
      if (s.has_object)
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          auto& whole = *static_cast<T*>(s.where_apart());
          auto& object = static_cast<typename M::object&>(whole);
          const load_scope measured(cell<T, Index>::of(&whole));
          if constexpr (requires { M::call(object, view<P>(std::get<I>(std::as_const(r->args)))...); }) {
            M::call(object, view<P>(std::get<I>(std::as_const(r->args)))...);
          } else {
            M::call(object, kept_t<P>(std::get<I>(std::as_const(r->args)))...);
          }
        }(std::index_sequence_for<P...>{});
    } catch (...) {
      self.report_failed_post(&member, std::current_exception());
    }
    r->part->executed(r);
  }
  template <class Q>
  static decltype(auto) view(const kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return (k);
    }
  }
  // The element has ended: it need not hear of it.
  static void forward(array_core& core, cell_base&, scheduler::message* m) {
    broadcast_record* r = record_in(m->payload());
    core.self().release_message(m);
    core.executed(r);
  }
  static void move_pointer(void* to, void* from) { std::memcpy(to, from, sizeof(void*)); }
  static void drop(void* payload) {
    record* r = record_in(payload);
    r->part->executed(r);
  }

  struct cast_handler : array_handler {
    cast_handler() noexcept
        : array_handler(type_name<T>(), M::name, type_name<broadcast_message>(), &control_handler::never_run,
                        &control_handler::never_relocate, &control_handler::never_drop, 0, false,
                        &broadcast_message::route, nullptr, &routed::describe) {
      decode = &broadcast_message::decode;
    }
  };
  struct member_handler : array_handler {
    member_handler() noexcept
        : array_handler(type_name<T>(), M::name, type_name<void(broadcast_message)>(), &broadcast_message::run,
                        &broadcast_message::move_pointer, &broadcast_message::drop, sizeof(void*), false, &refuse_route,
                        &broadcast_message::forward) {
      is_member = true;
    }
  };
  inline static const cast_handler cast;
  inline static const member_handler member;
};

}  // namespace orrery::detail
