// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/arguments_ref.hpp>
#include <orrery/process/check.hpp>
#include <orrery/process/class_info.hpp>
#include <orrery/process/kept.hpp>
#include <orrery/process/outgoing.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/serialize.hpp>
#include <orrery/wire/shape.hpp>

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

// The typed side of messages: how the arguments of a method become a payload and how a handler
// makes them arguments again, in each of the forms of an envelope. An `Operation` says what to run:
//   using result = R; static auto run(pe&, slot&, object, arguments...); names;
//   see method_operation.
namespace orrery::detail {

using scheduler::pe;
using scheduler::slot;

[[noreturn]] void throw_not_running();
[[noreturn]] void throw_gone(const scheduler::handler& h, address to);
/// True if it is a process_gone.
[[nodiscard]] bool is_process_gone(const std::exception_ptr& why) noexcept;
/// In a handler of what a method threw that ran inline: throws what its caller gets.
[[noreturn, gnu::cold]] void rethrow_as_received(const scheduler::handler& h, pe& self);
[[noreturn]] void throw_wrong_class(const scheduler::handler& h, const scheduler::class_info* is);

/// The PE of the caller. Throws usage_error outside of the runtime.
[[nodiscard]] inline pe& here_pe() {
  pe* p = scheduler::current_pe;
  if (p == nullptr) [[unlikely]]
    throw_not_running();
  return *p;
}

template <class R>
struct travelling {
  using type = R;
};
template <class T>
struct travelling<future<T>> {
  using type = T;
};
/// The value type of a result: what travels.
template <class R>
using value_t = typename travelling<std::remove_cvref_t<R>>::type;

/// Such a result travels inside the record that says it is there.
template <class R>
inline constexpr bool travels_small =
    std::is_trivially_copyable_v<value_t<R>> && sizeof(value_t<R>) <= wire::small_result;

/// For results that do not come from another node, and need no wire form.
struct stays_here {};

/// A sink with room for the result.
template <class R>
struct typed_sink : scheduler::sink {
  union {
    value_t<R> value;
  };
  explicit typed_sink(stays_here) noexcept {
    storage = &value;
    if constexpr (travels_small<R>) small = sizeof(value);
  }
  typed_sink() noexcept : typed_sink(stays_here{}) {
    decode = [](scheduler::sink& s, const std::byte* data, std::size_t bytes) {
      orrery::reader r({data, bytes});
      auto& self = static_cast<typed_sink&>(s);
      new (&self.value) value_t<R>(orrery::read<value_t<R>>(r));
    };
  }
  typed_sink(const typed_sink&) = delete;
  typed_sink& operator=(const typed_sink&) = delete;
  ~typed_sink() {
    if (state == status::value) value.~value_t<R>();
  }
  value_t<R> take() {
    if (state == status::error) std::rethrow_exception(error);
    return std::move(value);
  }
};
template <>
struct typed_sink<void> : scheduler::sink {
  typed_sink() noexcept = default;
  explicit typed_sink(stays_here) noexcept {}
  void take() {
    if (state == status::error) std::rethrow_exception(error);
  }
};

/// Sends the result of a method that has given a future, when it is there; in future.hpp.
template <class T>
void answer_later(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, future<T> f);

/// Runs `f` and sends its result to where the delivery wanted it.
template <class R, class F>
void answer(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, F&& f) {
  if constexpr (comes_later<std::remove_cvref_t<R>>::value) {
    answer_later(self, reply, source_pe, remote, f());
  } else if constexpr (std::is_void_v<R>) {
    f();
    if (reply == 0) return;
    if (!remote) {
      scheduler::reply_in_place(self, reply, source_pe);
    } else {
      outgoing out(self, self.channel_to(source_pe), 0);
      out.send_reply(reply);
    }
  } else {
    if (reply == 0) {
      (void)f();
    } else if (!remote) {
      if constexpr (travels_small<R>) {
        if (source_pe != self.id()) {
          alignas(wire::small_result) std::byte result[wire::small_result] = {};
          new (result) value_t<R>(f());
          scheduler::reply_small(self, reply, source_pe, result);
          return;
        }
      }
      new (reinterpret_cast<scheduler::sink*>(reply)->storage) value_t<R>(f());
      scheduler::reply_in_place(self, reply, source_pe);
    } else {
      decltype(auto) value = f();
      outgoing out(self, self.channel_to(source_pe), orrery::wire_size(value));
      orrery::writer w(out.payload());
      orrery::write(w, value);
      out.send_reply(reply);
    }
  }
}

// --- through the wire form -----------------------------------------------------------------------
// For scheduler::send_through_wire: what messages of this node do then.

/// For the class of an argument whose wire form has no meaning inside a node.
template <class P>
inline constexpr bool stays_as_it_is = requires { typename std::remove_cvref_t<P>::stays_as_it_is; };

/// Ends the message of the delivery, which goes on with another one that has its arguments in their
/// wire form. Throws std::bad_alloc; then nothing has changed.
[[gnu::cold]] void go_on_with(pe& self, scheduler::delivery& d, std::span<const std::byte> arguments);

template <class... V>
[[nodiscard, gnu::cold]] std::vector<std::byte> written(const V&... values) {
  std::vector<std::byte> b(orrery::wire_size(values...));
  orrery::writer w(b);
  (orrery::write(w, values), ...);
  return b;
}
/// The value as another node would receive it. Throws usage_error, bad_message, what its
/// serialize() throws.
template <class V>
[[nodiscard, gnu::cold]] V written_and_read(const V& value) {
  const std::vector<std::byte> b = written(value);
  orrery::reader r(b);
  V read = orrery::read<V>(r);
  r.finish();
  return read;
}

/// Runs a message whose arguments are in their wire form, and lets its result take that form before
/// it is given to the caller.
template <class R>
[[gnu::cold]] void run_and_write_result(pe& self, slot& s, scheduler::delivery& d,
                                        void (*run)(pe&, slot&, scheduler::delivery&)) {
  scheduler::delivery inner = d;  // d stays as it is for who looks at what runs: deadlock.cpp
  d.heap = nullptr;
  d.form = wire::payload_form::refs;
  typed_sink<R> k(stays_here{});
  k.home = self.id();
  if (d.reply != 0) {
    inner.reply = reinterpret_cast<std::uint64_t>(&k);
    inner.source_pe = self.id();
  }
  run(self, s, inner);
  if (d.reply == 0) return;
  try {
    if constexpr (std::is_void_v<R>) {
      k.take();
      scheduler::reply_in_place(self, d.reply, d.source_pe);
    } else {
      answer<R>(self, d.reply, d.source_pe, false, [&] { return written_and_read(k.take()); });
    }
  } catch (...) {
    scheduler::reply_error(self, d.reply, d.source_pe, false, d.method, std::current_exception());
  }
}

/// The class of an operation on a method that is not overloaded; empty: others may have other
/// arguments.
template <class Operation>
[[nodiscard]] std::string_view object_of_exact() noexcept {
  if constexpr (requires { requires Operation::exact; }) {
    return wire::type_key<typename Operation::object>();
  } else {
    return {};
  }
}

/// The handler of one operation with parameters P...: method, signature and forms.
template <class Operation, class... P>
struct typed_handler {
  using tuple = std::tuple<kept_t<P>...>;
  static constexpr bool boxed = sizeof(tuple) > 448 || alignof(tuple) > scheduler::payload_alignment;
  using owned = std::conditional_t<boxed, std::unique_ptr<tuple>, tuple>;
  static constexpr bool views = (orrery::is_view<std::remove_cvref_t<P>> || ...);
  static constexpr std::size_t refs_bytes = sizeof...(P) * sizeof(void*);

  template <class... A>
  static void make_owned(void* at, A&&... arguments) {
    if constexpr (boxed) {
      new (at) owned(std::make_unique<tuple>(std::forward<A>(arguments)...));
    } else {
      new (at) owned(std::forward<A>(arguments)...);
    }
  }

  /// The elements of spans can lie behind the arguments of a message to a process of the same PE.
  static constexpr bool has_behind = !boxed && (fits_behind<P> || ...);
  template <class... A>
  static std::size_t behind(const A&... arguments) noexcept {
    std::size_t bytes = 0;
    if constexpr (has_behind) bytes = (std::size_t{0} + ... + bytes_behind<P>(arguments));
    return aligned_payload(sizeof(owned)) + bytes <= scheduler::message_pool::largest ? bytes : 0;
  }
  /// A message to a process of this PE with its arguments; all but them is to be filled in.
  template <class... A>
  static scheduler::message* make_message(pe& self, A&&... arguments) {
    const std::size_t more = behind(arguments...);
    scheduler::message* m = self.allocate_message(more == 0 ? sizeof(owned) : aligned_payload(sizeof(owned)) + more);
    try {
      if constexpr (has_behind) {
        if (more != 0) {
          std::byte* room = m->payload() + aligned_payload(sizeof(owned));
          new (m->payload()) owned(put_behind<P>(room, std::forward<A>(arguments))...);
          return m;
        }
      }
      make_owned(m->payload(), std::forward<A>(arguments)...);
    } catch (...) {
      self.release_message(m);
      throw;
    }
    return m;
  }

  static void relocate(void* to, void* from) {
    auto* old = static_cast<owned*>(from);
    new (to) owned(std::move(*old));
    old->~owned();
  }
  static void drop(void* payload) { static_cast<owned*>(payload)->~owned(); }
  static void describe(wire::shape& types) {
    types.describe<value_t<typename Operation::result>>();
    (types.describe<std::remove_cvref_t<P>>(), ...);
  }

  static void run(pe& self, slot& s, scheduler::delivery& d) {
    const std::uint64_t reply = d.reply;
    const std::uint32_t source = d.source_pe;
    const bool remote = d.remote;
    const scheduler::handler* const method = d.method;
    try {
      typename Operation::object* object = nullptr;
      if constexpr (!std::is_void_v<typename Operation::object>) {
        object = object_in<typename Operation::object>(s);
        if (object == nullptr) [[unlikely]]
          throw_wrong_class(*method, s.cls());
      }
      switch (d.form) {
        case wire::payload_form::refs: {
          void* refs[sizeof...(P) + 1];
          std::memcpy(refs, d.payload, refs_bytes);
          d.release();
          run_refs(self, s, object, d, refs, std::index_sequence_for<P...>{});
          return;
        }
        case wire::payload_form::owned: {
          if constexpr (has_behind) {
            if (d.heap != nullptr) {  // else others read the ring while the method is parked
              const read_in_place arguments(d);
              run_owned(self, s, object, reply, source, arguments.all, std::index_sequence_for<P...>{});
              return;
            }
          }
          owned arguments(std::move(*reinterpret_cast<owned*>(d.payload)));
          reinterpret_cast<owned*>(d.payload)->~owned();
          d.form = wire::payload_form::refs;  // nothing is left there to drop
          d.release();
          run_owned(self, s, object, reply, source, arguments, std::index_sequence_for<P...>{});
          return;
        }
        default: {
          orrery::reader r({d.payload, d.payload_bytes});
          std::tuple<wire_value<P>...> arguments{wire_value<P>{orrery::read<std::remove_cvref_t<P>>(r)}...};
          if constexpr (views) {
            d.leave_ring();  // the method may park, and then others read the ring
          } else {
            d.release();
          }
          std::apply(
              [&](auto&... a) {
                answer<typename Operation::result>(self, reply, source, remote, [&]() -> decltype(auto) {
                  return Operation::run(self, s, object, static_cast<P&&>(a.value)...);
                });
              },
              arguments);
          d.release();
          return;
        }
      }
    } catch (...) {
      if (d.form == wire::payload_form::owned) {
        drop(d.payload);
        d.form = wire::payload_form::refs;
      }
      d.release();
      if (reply != 0) {
        scheduler::reply_error(self, reply, source, remote, method, std::current_exception());
      } else {
        self.failures().report_post(method, std::current_exception());
      }
    }
  }

  // The arguments of a message from this node as they would come from another one. Throws what
  // prevents it; then nothing has changed.
  [[gnu::cold]] static void to_wire(pe& self, scheduler::delivery& d) {
    if (d.form == wire::payload_form::refs) {
      void* refs[sizeof...(P) + 1];
      std::memcpy(refs, d.payload, refs_bytes);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        go_on_with(self, d, written(*static_cast<const std::remove_cvref_t<P>*>(refs[I])...));
      }(std::index_sequence_for<P...>{});
    } else if (d.form == wire::payload_form::owned) {
      const auto& arguments = *reinterpret_cast<const owned*>(d.payload);
      const tuple* values = nullptr;
      if constexpr (boxed) {
        values = arguments.get();
      } else {
        values = &arguments;
      }
      go_on_with(self, d, std::apply([](const auto&... v) { return written(wire_form(v)...); }, *values));
    }
  }
  /// As run, for scheduler::send_through_wire.
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d) {
    if (!d.remote) {
      try {
        to_wire(self, d);
      } catch (...) {
        d.fail(std::current_exception());
        return;
      }
      if constexpr (comes_later<std::remove_cvref_t<typename Operation::result>>::value) {
        run(self, s, d);  // answer_later writes the result
      } else {
        run_and_write_result<value_t<typename Operation::result>>(self, s, d, &run);
      }
    } else {
      run(self, s, d);
    }
  }
  static constexpr void (*through_wire)(pe&, slot&, scheduler::delivery&) = (stays_as_it_is<P> || ...)
                                                                                ? nullptr
                                                                                : &run_through_wire;

  inline static const scheduler::handler instance{Operation::class_name(),
                                                  Operation::name(),
                                                  wire::type_key<typed_handler>(),
                                                  &run,
                                                  &relocate,
                                                  &drop,
                                                  static_cast<std::uint32_t>(sizeof(owned)),
                                                  views,
                                                  &describe,
                                                  object_of_exact<Operation>(),
                                                  through_wire};

 private:
  // Arguments that stay in their message until the method has ended.
  struct read_in_place {
    explicit read_in_place(scheduler::delivery& d) noexcept : of(d), all(*reinterpret_cast<owned*>(d.payload)) {
      d.form = wire::payload_form::refs;  // nobody else is to drop them
    }
    read_in_place(const read_in_place&) = delete;
    read_in_place& operator=(const read_in_place&) = delete;
    ~read_in_place() {
      all.~owned();
      of.release();
    }
    scheduler::delivery& of;
    owned& all;
  };
  template <class Q>
  struct wire_value {  // read in the order of the braces
    std::remove_cvref_t<Q> value;
  };
  template <std::size_t... I>
  static void run_refs(pe& self, slot& s, typename Operation::object* object, scheduler::delivery& d, void** refs,
                       std::index_sequence<I...>) {
    (void)refs;
    answer<typename Operation::result>(self, d.reply, d.source_pe, false, [&]() -> decltype(auto) {
      return Operation::run(self, s, object, static_cast<P&&>(*static_cast<std::remove_reference_t<P>*>(refs[I]))...);
    });
  }
  template <std::size_t... I>
  static void run_owned(pe& self, slot& s, typename Operation::object* object, std::uint64_t reply,
                        std::uint32_t source, owned& arguments, std::index_sequence<I...>) {
    answer<typename Operation::result>(self, reply, source, false, [&]() -> decltype(auto) {
      if constexpr (boxed) {
        return Operation::run(self, s, object, pass<P>(std::get<I>(*arguments))...);
      } else {
        return Operation::run(self, s, object, pass<P>(std::get<I>(arguments))...);
      }
    });
  }
  template <class Q>
  static decltype(auto) pass(kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return static_cast<Q&&>(k);
    }
  }
};

/// Calling a method of an object.
template <class M, class R>
struct method_operation {
  using object = typename M::object;
  using result = R;
  static constexpr std::string_view class_name() noexcept { return type_name<object>(); }
  static constexpr std::string_view name() noexcept { return M::name; }
  static constexpr bool exact = [] {
    if constexpr (requires { M::template pointer<object>(0); }) {
      return !std::is_same_v<decltype(M::template pointer<object>(0)), overloaded>;
    } else {
      return false;
    }
  }();
  template <class... A>
  static decltype(auto) run(pe&, slot&, object* o, A&&... arguments) {
    return M::call(*o, std::forward<A>(arguments)...);
  }
};

// The part that does not depend on types; in invoke.cpp.
[[nodiscard]] bool on_this_node(pe& self, std::uint32_t target) noexcept;
/// A slot for a message to the PE itself.
[[nodiscard]] slot& fresh_slot(pe& self);
void fail_gone(const scheduler::handler& h, address to, scheduler::sink* sink, pe& self);
/// Appends a call to the mailbox of a process of this PE; throws deadlock_error instead if it could
/// never be executed.
void push_call(pe& self, slot& s, scheduler::message* m, wire::record_kind level = wire::record_kind::message);
/// Room for a message to another node with a payload of `bytes`.
[[nodiscard]] bool has_space(scheduler::channel& c, std::size_t bytes) noexcept;

inline void fill(wire::envelope& e, address to, const scheduler::handler& h, wire::payload_form form,
                 scheduler::sink* sink, std::uint16_t padding,
                 wire::record_kind level = wire::record_kind::message) noexcept {
  e.kind = level;
  e.form = form;
  e.padding = padding;
  // Kept in a register: GCC 12 would store `to` on the stack in parts, and load two of them as one
  // to store them here; a load that spans two stores waits until both have left the store buffer, 5
  // ns.
  std::uint32_t slot_number = to.slot;
  asm("" : "+r"(slot_number));
  e.slot = slot_number;
  e.generation = to.generation;
  e.handler = reinterpret_cast<std::uint64_t>(&h);
  e.reply = reinterpret_cast<std::uint64_t>(sink);
}
inline void prepare(scheduler::sink& k, pe& self, address to, const scheduler::handler& h) noexcept {
  k.home = self.id();
  k.target = to;
  k.method = &h;
  k.caller = self.active() != nullptr ? self.active()->process : nullptr;
}

/// The pages that arguments hold in memory of their own, as their wire form says; 0 for what has
/// none or is not known.
template <class P>
[[nodiscard]] std::size_t bytes_beside(const P& argument) {
  if constexpr (std::is_trivially_copyable_v<P> || !orrery::serializable<P>) {
    return 0;
  } else {
    return orrery::wire_size(argument);
  }
}
template <class... P>
[[nodiscard]] std::uint16_t pages_beside(const P&... arguments) {
  return wire::pages_beside((std::size_t{0} + ... + bytes_beside(arguments)));
}

/// Stops the compiler with a sentence if an argument cannot travel.
template <class... P>
consteval void require_sendable() {
  static_assert((orrery::serializable<P> && ...),
                "orrery: an argument of this call cannot be sent to another node: give its class "
                "`template <class A> void serialize(A& a)`");
}
/// Sends a message to another node, for code that does not know the arguments' types. May park.
/// Throws node_lost, what a serialize() throws.
void send_wire(pe& self, scheduler::channel& c, address to, const scheduler::handler& h, scheduler::sink* sink,
               const arguments_ref& arguments);
/// The same where a post must be fast.
template <class... P>
void send_wire(pe& self, scheduler::channel& c, address to, const scheduler::handler& h, scheduler::sink* sink,
               const P&... arguments) {
  require_sendable<P...>();
  outgoing out(self, c, orrery::wire_size(arguments...));
  orrery::writer w(out.payload());
  (orrery::write(w, arguments), ...);
  out.send_message(to, h, sink);
}

/// The part of send_owned for other PEs. Throws node_lost.
template <class Handler, class... P>
bool send_owned_away(const scheduler::handler& h, pe& self, address to, scheduler::sink* sink, bool may_wait,
                     P&&... arguments) {
  if (may_wait) {
    self.wait_while_stopped(to);
  } else if (self.is_stopped(to)) {
    return false;
  }
  scheduler::channel& c = self.channel_to(to.pe);
  if (c.remote) {
    if (!may_wait && !has_space(c, orrery::wire_size(arguments...))) return false;
    send_wire(self, c, to, h, sink, std::as_const(arguments)...);
    return true;
  }
  const std::uint16_t pages = pages_beside(arguments...);
  const std::uint32_t bytes =
      wire::record_bytes(sizeof(typename Handler::owned)) + wire::ring_surcharge(pages, c.ring.capacity());
  wire::envelope* e = may_wait ? self.reserve(c, bytes) : c.try_reserve(bytes);
  if (e == nullptr) return false;
  Handler::make_owned(e->payload(), std::forward<P>(arguments)...);
  fill(*e, to, h, wire::payload_form::owned, sink, pages);
  self.commit(c, bytes);
  return true;
}

/// begin_call when all is known: `refs` point to the arguments.
void begin_call_with(pe& self, address to, scheduler::sink& k, const scheduler::handler& h, const void* const* refs,
                     std::size_t payload, const arguments_ref& arguments);

/// Sends a one-way or asynchronous message whose payload owns its arguments. `sink` null: one way.
/// May park while the destination is full; with `may_wait` false it returns false instead, having
/// sent nothing. A one-way message to a lost node is reported, as are those whose process is gone;
/// others throw node_lost. `h`: Handler::instance, or another one with the functions of Handler.
template <class Handler, class... P>
bool send_owned_as(const scheduler::handler& h, pe& self, address to, scheduler::sink* sink, bool may_wait,
                   P&&... arguments) {
  if (to.pe == self.id()) {
    slot* s = to.slot == wire::no_slot ? &fresh_slot(self) : self.find(to.slot, to.generation);
    if (s == nullptr) [[unlikely]] {
      fail_gone(h, to, sink, self);
      return true;
    }
    if (self.flow().over_limit(*s)) [[unlikely]] {
      if (!may_wait) return false;
      // before anything is sent: what it throws means that nothing was
      self.flow().wait_for_room(*s);
      s = self.find(to.slot, to.generation);
      if (s == nullptr) {
        fail_gone(h, to, sink, self);
        return true;
      }
    }
    const std::uint16_t pages = pages_beside(arguments...);
    scheduler::message* m = nullptr;
    try {
      m = Handler::make_message(self, std::forward<P>(arguments)...);
    } catch (...) {
      if (to.slot == wire::no_slot) self.free_slot(*s);
      throw;
    }
    m->source_pe = to.pe;
    fill(m->head, to, h, wire::payload_form::owned, sink, pages);
    self.push(*s, m, scheduler::message::charge_of(m->bytes, pages));
    return true;
  }
  try {
    return send_owned_away<Handler>(h, self, to, sink, may_wait, std::forward<P>(arguments)...);
  } catch (const node_lost&) {
    if (sink != nullptr) throw;
    self.failures().report_unsent(h, to.pe, std::current_exception());
    return true;
  }
}

template <class Handler, class... P>
bool send_owned(pe& self, address to, scheduler::sink* sink, bool may_wait, P&&... arguments) {
  return send_owned_as<Handler>(Handler::instance, self, to, sink, may_wait, std::forward<P>(arguments)...);
}

/// Sends a call whose caller waits for it before the arguments end: inside the node only pointers
/// to them travel.
template <class... P>
void begin_call_at(wire::record_kind level, const scheduler::handler& h, pe& self, address to, scheduler::sink& k,
                   P&&... arguments) {
  const void* const refs[sizeof...(P) + 1] = {static_cast<const void*>(std::addressof(arguments))...};
  require_sendable<std::remove_cvref_t<P>...>();
  const auto size = [&] { return orrery::wire_size(std::as_const(arguments)...); };
  const auto write = [&](orrery::writer& w) { (orrery::write(w, std::as_const(arguments)), ...); };
  const auto stays = [](void*) {};
  begin_call_with(self, to, k, h, refs, sizeof...(P) * sizeof(void*), arguments_ref(size, write, stays, 0, 0, level));
}
template <class Handler, class... P>
void begin_call(pe& self, address to, scheduler::sink& k, P&&... arguments) {
  begin_call_at(wire::record_kind::message, Handler::instance, self, to, k, std::forward<P>(arguments)...);
}

/// Sends a call and returns when the result has arrived in `k`.
template <class Handler, class... P>
void send_call(pe& self, address to, scheduler::sink& k, P&&... arguments) {
  self.require_process();
  begin_call<Handler>(self, to, k, std::forward<P>(arguments)...);
  self.wait(k);
}

/// The frame of a method that runs inline, on its caller's stack.
class inline_frame {
 public:
  inline_frame(pe& self, slot& s, const scheduler::handler& h) noexcept : self_(self), frame_{&s, &h, nullptr} {
    self.push_activation(frame_);
    s.state = scheduler::process_state::running;
    s.active = &frame_;
    ++s.depth;
    ++self.count().inline_calls;
  }
  inline_frame(const inline_frame&) = delete;
  inline_frame& operator=(const inline_frame&) = delete;
  ~inline_frame() {
    slot& s = *frame_.process;
    self_.pop_activation(frame_);
    s.active = nullptr;
    --s.depth;
    if (s.dying) [[unlikely]] {
      if (s.depth == 0) self_.destroy(s);
    } else if (s.state == scheduler::process_state::running) [[likely]] {
      if (s.depth != 0) [[unlikely]]
        if (self_.conditions().grant(s)) return;
      self_.settle(s);
    }
  }

 private:
  pe& self_;
  scheduler::activation frame_;
};

}  // namespace orrery::detail
