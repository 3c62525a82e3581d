// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/activity.hpp>
#include <orrery/array/detail/array_part.hpp>
#include <orrery/array/detail/element_forms.hpp>
#include <orrery/array/detail/load_scope.hpp>
#include <orrery/process/detail/later_answer.hpp>

#include <cstring>
#include <new>
#include <tuple>

// A method of an element as a message, in its four forms:
//   here     in the mailbox of an element of this PE: the arguments, as for any process
//   routed   on its way, behind its route: what the element is found by
//   instance a broadcast on its way
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
    auto& object = element_in<T, Index>(s);
    const load_scope measured(cell<T, Index>::of(s.where_apart()));
    return M::call(static_cast<typename M::object&>(object), std::forward<A>(args)...);
  }
};

template <class T, class Index, class Operation, class... P>
struct element_message;
template <class T, class Index>
struct close_operation;

/// In the place of a message whose arguments cannot be written: what waits for it goes on, as who
/// asks where the element is, and what was sent after it.
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

/// The common part of all messages to the elements of one class.
template <class T, class Index>
struct element_messages : index_messages<Index> {
  using by_index = index_messages<Index>;
  static array_core* part_at(pe& self, slot& s) noexcept {
    return s.has_object ? cell<T, Index>::of(s.where_apart()).part : array_directory::of(self).part_of_process(s);
  }
  static void fail_caller(pe& self, slot& s, scheduler::delivery& d, std::exception_ptr why) noexcept {
    cell_base* const c = s.apart && !s.dying ? &cell<T, Index>::of(s.where_apart()) : nullptr;
    by_index::fail_caller(self, part_at(self, s), c, d, std::move(why));
  }
  static constexpr scheduler::hidden_caller hidden{&by_index::caller_of, &fail_caller};
  static void fail_here(pe& self, slot& s, scheduler::delivery& d, std::exception_ptr why) noexcept {
    const activity_end end(part_at(self, s));
    d.fail(std::move(why));
  }
  static constexpr scheduler::hidden_caller counted{nullptr, &fail_here};
};

template <class T, class Index, class Operation, class... P>
struct element_message : element_messages<T, Index> {
  using common = element_messages<T, Index>;
  using base = typed_handler<Operation, P...>;
  using result = typename Operation::result;
  // A collective does not miss an element that has been destroyed meanwhile.
  static constexpr bool may_miss = requires { Operation::may_miss; };
  static constexpr early policy = may_miss ? early::refuse : early_policy<T>(Operation::name());
  // Its order is kept, whoever migrates: then it is a routed one in mailboxes, too.
  static constexpr bool ordered = [] {
    if constexpr (requires { Operation::ordered; }) return Operation::ordered;
    return false;
  }();
  static constexpr bool counts = true;
  static constexpr bool closes = requires { Operation::closes; };
  // it is told whom, and does so itself
  static constexpr bool answers_later = requires { Operation::answers_later; };
  static_assert((policy != early::create_at_home && policy != early::create_at_sender) ||
                    std::is_default_constructible_v<T>,
                "orrery: when_early() of this class creates elements on demand: it needs a default constructor");

  using forms = element_forms<Index, ordered, P...>;
  using owned = typename forms::owned;
  using payload = typename forms::payload;
  using tuple = typename forms::tuple;

  static constexpr const array_handler* closer() noexcept {
    if constexpr (ordered) return &close_operation<T, Index>::message::routed;
    return nullptr;
  }

  // --- on its way --------------------------------------------------------------------------------

  // Its own call fails here.
  static void send_nothing(array_core& part, const std::byte* at, std::uint32_t to) {
    const auto& p = *reinterpret_cast<const payload*>(at);
    route_head h = p.head;
    h.call = 0;
    bytes b = forms::head_to_wire(h, p.index, p.tag);
    const scheduler::handler* as = nullptr;
    if constexpr (requires { typename Operation::nothing; }) {
      as = &Operation::nothing::routed;
      Operation::pack_nothing(b, forms::values(p.args));
    } else {
      as = &nothing_operation<T, Index, ordered>::message::routed;
    }
    part.begins();
    tell(part.self(), to, *as, part.id(), 0, b);
  }

  static constexpr const scheduler::handler* creation() noexcept {
    if constexpr (policy == early::create_at_home || policy == early::create_at_sender)
      return &create_message<T, Index>::instance;
    return nullptr;
  }
  static constexpr routed_kind kind{policy, counts, closes, may_miss, true, creation(), &forms::to_wire, &send_nothing};

  // --- at the element ----------------------------------------------------------------------------

  // The caller of a method that gives a future gets the value when it is there.
  template <class T2>
  static void answer_from_afar(pe& self, const route_head& h, future<T2> f) {
    if (h.call == 0) return;
    give_later(self, std::move(f),
               [to = caller{h.origin, h.call}](pe& at, future_state<T2>& s) noexcept {
                 try {
                   bytes b;
                   if constexpr (std::is_void_v<T2>) {
                     s.take();
                   } else {
                     pack_after(b, s.take());
                   }
                   answer_value(at, to, b);
                 } catch (...) {
                   answer_error(at, to, &routed, std::current_exception());
                 }
               },
               {h.origin, h.call, true});
  }
  template <std::size_t... I>
  static void invoke(pe& self, slot& s, const route_head& h, [[maybe_unused]] tuple& args, std::index_sequence<I...>) {
    if constexpr (answers_later) {
      Operation::run(self, s, caller{h.origin, h.call});
    } else {
      auto call = [&]() -> decltype(auto) {
        return Operation::run(self, s, nullptr, as_parameter<P>(std::get<I>(args))...);
      };
      if constexpr (comes_later<std::remove_cvref_t<result>>::value) {
        answer_from_afar(self, h, call());
      } else if constexpr (std::is_void_v<result>) {
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
  template <bool ThroughWire>
  static void run_here(pe& self, slot& s, scheduler::delivery& d) {
    array_core* const core = common::part_at(self, s);
    const activity_end end(core);
    if constexpr (answers_later) {
      static_assert(sizeof...(P) == 0);
      const std::uint32_t core_id = core != nullptr ? core->id() : 0;
      caller from;
      try {
        if (d.reply != 0)
          from = {self.id(),
                  array_directory::of(self).waits().expect(*reinterpret_cast<scheduler::sink*>(d.reply), core_id)};
        d.release();
        if (from.call != 0) {  // as who waits has it now: deadlock_detector.cpp
          d.method = &routed;
          d.reply = from.call;
          d.source_pe = from.pe;
        }
        Operation::run(self, s, from);
      } catch (...) {
        answer_error(self, from, &here, std::current_exception());
      }
    } else if constexpr (ThroughWire) {
      base::run_through_wire(self, s, d);
    } else {
      base::run(self, s, d);
    }
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    array_core* const core = common::part_at(self, s);
    const activity_end end(core);
    route_head h;
    try {
      if (d.form == wire::payload_form::owned) {
        auto* p = reinterpret_cast<payload*>(d.payload);
        h = p->head;
        common::end_turn(core, h, p->index);
        owned args(std::move(p->args));
        p->~payload();
        d.form = wire::payload_form::refs;
        d.release();
        name_caller(d, h);
        if (!s.has_object) throw process_gone("an element that was never complete");
        invoke(self, s, h, forms::values(args), std::index_sequence_for<P...>{});
        return;
      }
      orrery::reader r({d.payload, d.payload_bytes});
      h = orrery::read<route_head>(r);
      common::end_turn(core, h, orrery::read<Index>(r));
      (void)common::by_index::template read_tag<ordered>(r);
      orrery::reader from(after_section({d.payload, d.payload_bytes}, r));
      tuple args = read_all(self, s, from);
      d.release();
      name_caller(d, h);
      if (!s.has_object) throw process_gone("an element that was never complete");
      invoke(self, s, h, args, std::index_sequence_for<P...>{});
    } catch (...) {
      reject_routed(self, routed, kind, d, h, std::current_exception());
    }
  }
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d) {
    if (d.form == wire::payload_form::owned) try {
        go_on_with(self, d, forms::to_wire(d.payload));
      } catch (...) {
        // else its number must not be missing
        if constexpr (!requires { typename Operation::nothing; }) {
          common::fail_caller(self, s, d, std::current_exception());
          return;
        }
      }
    run(self, s, d);
  }
  static tuple read_all(pe& self, slot& s, orrery::reader& from) {
    if constexpr (requires { Operation::unreadable(self, s, from); }) {
      const orrery::reader begin = from;
      try {
        return forms::read_kept(from);
      } catch (...) {
        Operation::unreadable(self, s, begin);
        throw;
      }
    } else {
      return forms::read_kept(from);
    }
  }
  // For who looks at what runs: deadlock_detector.cpp.
  static void name_caller(scheduler::delivery& d, const route_head& h) noexcept {
    d.reply = h.call;
    d.source_pe = h.origin;
  }
  // --- left behind -------------------------------------------------------------------------------

  static void forward_here(array_core& core, cell_base& c, scheduler::message* m) {
    forms::forward_here(core, c, m, form);
  }

  static void describe(wire::type_description& types) {
    types.describe<Index>();
    base::describe(types);
  }

  struct name {};
  struct here_handler : array_handler {
    here_handler() noexcept
        : array_handler(Operation::class_name(), Operation::name(), wire::type_key<void(name, element_message)>(),
                        &run_here<false>, &base::relocate, &base::drop, static_cast<std::uint32_t>(sizeof(owned)),
                        base::views, &refuse_route, &forward_here) {
      caller = &common::counted;
      if constexpr (!answers_later) through_wire = &run_here<true>;
    }
  };
  inline static const here_handler here;
  struct routed_handler : array_handler {
    routed_handler() noexcept
        : array_handler(Operation::class_name(), Operation::name(), wire::type_key<element_message>(),
                        &element_message::run, &forms::relocate_routed, &forms::drop_routed,
                        static_cast<std::uint32_t>(sizeof(payload)), false, &common::template route<ordered>,
                        &forward_routed, &element_message::describe) {
      lost = &lost_on_its_way;
      caller = &common::hidden;
      through_wire = &run_through_wire;
      kind = &element_message::kind;
      if constexpr (ordered) tag_of = &forms::tag_of;
      if constexpr (closes) close = &Operation::close;
    }
  };
  inline static const routed_handler routed;

  static constexpr message_form form{routed, here, static_cast<std::uint32_t>(sizeof(payload)), ordered, closer()};
};

/// The last message of a stream: its sender has ended. After the others, which may have to go on
/// their way again until they are executed.
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
    orrery::reader r(std::as_bytes(std::span(index)));
    const auto i = orrery::read<Index>(r);
    if (part == nullptr) {
      if (!is_guest_of(self, array)) return;
      bytes b = message::forms::head_to_wire({0, 0, self.id(), 0, 0}, i, tag);
      pack_after(b, tag.stream);
      send_as_guest(self, array, guest_request::message, message::routed, b);
      return;
    }
    scheduler::message* m =
        index_messages<Index>::make_routed(self, message::form, array, {0, 0, self.id(), 0, 0}, i, 0);
    auto* p = reinterpret_cast<typename message::payload*>(m->payload());
    p->tag = tag;
    message::forms::make_owned(&p->args, tag.stream);
    part->begins();
    dispatch(self, m);
  }
};

}  // namespace orrery::detail
