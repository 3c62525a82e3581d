// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/placement.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace orrery {

/// The process that a `remote<function>` names: a function that runs as a process of its own, with
/// a stack of its own, and receives messages when it asks for them. (FG-MPI, Alam 2013, section 2:
/// a process mapped to a function.)
struct function {};

namespace detail {

extern const scheduler::class_info function_class;

template <>
struct class_of<function> {
  static const scheduler::class_info& info() noexcept { return function_class; }
};

/// A function object that says how much stack it needs.
template <class F>
concept asks_for_stack = requires(const F& f) {
  { f.stack_bytes } -> std::convertible_to<std::size_t>;
};

// A function process before it begins.
struct function_body {
  slot* process = nullptr;
  std::size_t stack_bytes = 0;  ///< at least; 0: the usual size
  virtual void run() = 0;
  virtual ~function_body() = default;
};
/// Makes the slot a function process that runs the body when it is scheduled.
void begin_function(pe& self, slot& s, wire::unique_ptr<function_body> body);

template <class F>
remote<function> start_function(pe& self, F f) {
  struct body final : function_body {
    F f;
    explicit body(F g) : f(std::move(g)) {
      if constexpr (asks_for_stack<F>) stack_bytes = f.stack_bytes;
    }
    void run() override { f(); }
  };
  slot& s = self.allocate_slot();
  begin_function(self, s, wire::make_unique<body>(std::move(f)));
  return remote<function>(self.address_of(s));
}

[[nodiscard]] std::uint64_t code_to_offset(const void* code);
/// Throws bad_message if the offset is one of another build of the program, or in no code.
[[nodiscard]] const void* offset_to_code(std::uint64_t offset, std::uint64_t build);
[[nodiscard]] std::uint64_t own_build() noexcept;

/// True of what can be called on another node: a captureless lambda is its type, a function pointer
/// its place in the program, anything else has to be serializable.
template <class F>
inline constexpr bool callable_travels =
    (std::is_empty_v<F> && std::is_default_constructible_v<F>) || std::is_pointer_v<F> || serializable<F>;

/// The callee, in a form that can travel.
template <class F>
struct callable {
  std::optional<F> f;
  template <class A>
  void serialize(A& a) {
    if constexpr (std::is_empty_v<F> && std::is_default_constructible_v<F>) {
      if (!f) f.emplace();
    } else if constexpr (std::is_pointer_v<F>) {
      std::uint64_t offset = f ? code_to_offset(reinterpret_cast<const void*>(*f)) : 0;
      std::uint64_t build = own_build();
      a & offset & build;
      f = reinterpret_cast<F>(const_cast<void*>(offset_to_code(offset, build)));
    } else if constexpr (callable_travels<F>) {  // else spawn has said it
      if (!f) f.emplace();
      a&* f;
    }
  }
};

template <class F>
inline constexpr bool is_callable = std::is_function_v<std::remove_pointer_t<F>>;
template <class F>
  requires requires { &F::operator(); }
inline constexpr bool is_callable<F> = !described<F>;

template <class F, class... A>
struct spawn_function_operation {
  using object = void;
  using result = remote<function>;
  static constexpr std::string_view class_name() noexcept { return "process function"; }
  static constexpr std::string_view name() noexcept { return type_name<F>(); }
  static remote<function> run(pe& self, slot& s, void*, callable<F> f, A... arguments) {
    struct body final : function_body {
      F f;
      std::tuple<A...> arguments;
      body(F g, A... a) : f(std::move(g)), arguments(std::move(a)...) {
        if constexpr (asks_for_stack<F>) stack_bytes = f.stack_bytes;
      }
      void run() override { std::apply(f, std::move(arguments)); }
    };
    const address a = self.address_of(s);
    begin_function(self, s, wire::make_unique<body>(std::move(*f.f), std::move(arguments)...));
    return remote<function>(a);
  }
};

}  // namespace detail

/// Runs `f(args...)` as a process of its own and returns a pointer to it at once, before f has
/// begun. The process ends when f returns; an exception that leaves f is reported on its PE. f is a
/// function, a captureless lambda, or a function object that is serializable; for others see
/// spawn_here. A function object with a member `stack_bytes` gets a stack of at least that size, at
/// most 1 GiB; others that of `--orrery-function-stack`. Parks the caller if the PE is another one.
/// Throws usage_error, node_lost, std::bad_alloc, stopped.
template <class F, class... A>
  requires std::invocable<std::decay_t<F>, detail::travels_t<A>...>
remote<function> spawn(placement where, F&& f, A&&... arguments) {
  (detail::require_parameter<detail::travels_t<A>>(), ...);
  using Fn = std::decay_t<F>;
  static_assert(
      detail::callable_travels<Fn>,
      "orrery: spawn(placement, f, args...): f cannot be sent to another node, as it is a lambda with captures or has "
      "state without serialize(): pass what it needs as arguments behind it, or use spawn_here(placement, f), "
      "which stays inside the node");
  using operation = detail::spawn_function_operation<Fn, detail::travels_t<A>...>;
  detail::pe& self = detail::here_pe();
  const std::uint32_t target = where.resolve();
  if (target == self.id() && self.room_on_stack()) {
    detail::slot& s = self.allocate_slot();
    try {
      return operation::run(self, s, nullptr, detail::callable<Fn>{std::forward<F>(f)},
                            detail::travels_t<A>(std::forward<A>(arguments))...);
    } catch (...) {
      self.free_slot(s);
      throw;
    }
  }
  using handler = detail::typed_handler<operation, detail::callable<Fn>, detail::travels_t<A>...>;
  detail::typed_sink<remote<function>> k;
  detail::send_call<handler>(self, detail::pe_address(target), k, detail::callable<Fn>{std::forward<F>(f)},
                             detail::travels_t<A>(std::forward<A>(arguments))...);
  return k.take();
}

/// A function that cannot be called with these arguments, which travel as values.
template <class F, class... A>
  requires(!std::invocable<std::decay_t<F>, detail::travels_t<A>...> && detail::is_callable<std::decay_t<F>>)
void spawn(placement, F&&, A&&...) {
  static_assert(
      detail::never<F>,
      "orrery: spawn(placement, f, args...): f cannot be called with these arguments; they travel as values, so that f "
      "cannot take them by non-const reference");
}

// --- messages to functions -----------------------------------------------------------------------

namespace detail {

/// A message of type T: it waits in the mailbox until the function receives it.
template <class T>
struct message_operation {
  using object = function;
  using result = void;
  static constexpr std::string_view class_name() noexcept { return "message"; }
  static constexpr std::string_view name() noexcept { return type_name<T>(); }
  static void run(pe&, slot&, function*, std::uint64_t, T) {}
};
template <class T>
using message_handler = typed_handler<message_operation<T>, std::uint64_t, T>;

/// The process function that calls; throws usage_error in a method.
[[nodiscard]] slot& receiving_slot(pe& self, bool takes = true);
/// Takes a message out of the mailbox. `before` is one that was there before it, as search gave it.
void unlink(pe& self, slot& s, scheduler::message* before, scheduler::message* m) noexcept;
/// Takes it out, and throws bad_message: it has no tag.
[[noreturn]] void refuse_message(pe& self, slot& s, scheduler::message* before, scheduler::message* m);
/// A message that is not what is waited for: throws `stopped` if it asks the function to end.
void check_destroyed(pe& self, slot& s, scheduler::message* before, scheduler::message* m);

struct no_guard {
  template <class T>
  constexpr bool operator()(const T&) const noexcept {
    return true;
  }
};

/// Takes a message out of the mailbox at the end, also if its value cannot be read: it would be the
/// next one again.
struct unlinked_at_end {
  pe& self;
  slot& s;
  scheduler::message* before;
  scheduler::message* m;
  ~unlinked_at_end() { unlink(self, s, before, m); }
};

/// Takes this message of type T, if it has the tag (null: any), and the guard lets it pass. Where
/// the guard throws the message stays. A guard may add messages to the mailbox.
template <class T, class Guard = no_guard>
[[gnu::always_inline]] inline bool take_this(pe& self, slot& s, scheduler::message* before, scheduler::message* m,
                                             const std::uint64_t* tag, std::optional<T>& value, Guard&& guard = {}) {
  using handler = message_handler<T>;
  constexpr bool guarded = !std::is_same_v<std::remove_cvref_t<Guard>, no_guard>;
  if (m->head.form == wire::payload_form::owned) {
    auto& owned = *reinterpret_cast<typename handler::owned*>(m->payload());
    auto& payload = [&]() -> auto& {
      if constexpr (handler::boxed) {
        return *owned;
      } else {
        return owned;
      }
    }();
    if (tag != nullptr && std::get<0>(payload) != *tag) return false;
    if (!guard(std::as_const(std::get<1>(payload)))) return false;
    if constexpr (guarded) before = s.last;
    const unlinked_at_end end{self, s, before, m};
    const struct dropped_at_end {
      typename handler::owned& all;
      ~dropped_at_end() { handler::drop(&all); }
    } drop{owned};
    value.emplace(std::move(std::get<1>(payload)));
    if (scheduler::through_wire) [[unlikely]]
      value.emplace(written_and_read(*value));
    return true;
  }
  scheduler::delivery d;
  d.load(self, *m);
  orrery::reader r({d.payload, d.payload_bytes});
  if (d.payload_bytes < sizeof(std::uint64_t)) [[unlikely]]
    refuse_message(self, s, before, m);
  if (const auto t = orrery::read<std::uint64_t>(r); tag != nullptr && t != *tag) return false;
  if constexpr (guarded) {
    try {
      value.emplace(orrery::read<T>(r));
    } catch (...) {
      unlink(self, s, before, m);
      throw;
    }
    if (!guard(std::as_const(*value))) {
      value.reset();
      return false;
    }
    unlink(self, s, s.last, m);
  } else {
    const unlinked_at_end end{self, s, before, m};
    value.emplace(orrery::read<T>(r));
  }
  return true;
}

template <class T>
std::optional<T> take_message(pe& self, slot& s, const std::uint64_t* tag) {
  std::optional<T> value;
  s.search([&](scheduler::message* before, scheduler::message* m) {
    if (m->head.handler != reinterpret_cast<std::uint64_t>(&message_handler<T>::instance)) [[unlikely]] {
      check_destroyed(self, s, before, m);
      return false;
    }
    return take_this<T>(self, s, before, m, tag, value);
  });
  return value;
}

template <class T>
std::optional<T> receive_until(const std::uint64_t* tag, std::int64_t deadline_ns) {
  pe& self = here_pe();
  slot& s = receiving_slot(self);
  for (;;) {
    if (auto value = take_message<T>(self, s, tag)) return value;
    if (!self.functions().await_message(s, deadline_ns)) return take_message<T>(self, s, tag);
  }
}

}  // namespace detail

/// Sends a value to a function. Messages of one sender arrive in the order sent; `receive` chooses
/// by type and tag. Parks only while the mailbox is full. Throws stopped; what else goes wrong is
/// reported and counted.
template <class T>
void send(const remote<function>& to, T value, std::uint64_t tag = 0) {
  detail::require_message<T>();
  detail::send_owned<detail::message_handler<T>>(detail::here_pe(), to.address(), nullptr, true, std::move(tag),
                                                 std::move(value));
}
/// As send, but returns false, having sent nothing, where send would have to wait. Yield before you
/// try again: the receiver, or what gives memory back, may need this PE.
template <class T>
[[nodiscard]] bool try_send(const remote<function>& to, T value, std::uint64_t tag = 0) {
  detail::require_message<T>();
  return detail::send_owned<detail::message_handler<T>>(detail::here_pe(), to.address(), nullptr, false, std::move(tag),
                                                        std::move(value));
}

/// Waits for a message of type T and returns it; messages of other types and tags wait on. Called
/// in a process function only (usage_error else). Throws stopped when the runtime shuts down or the
/// process is destroyed: let it pass, so that the stack unwinds. A message of another node that
/// cannot be read is gone, and receive throws why: bad_message, or what its serialize() throws.
template <class T>
[[nodiscard]] T receive() {
  detail::require_message<T>();
  return *detail::receive_until<T>(nullptr, -1);
}
/// The same for messages with this tag.
template <class T>
[[nodiscard]] T receive(std::uint64_t tag) {
  detail::require_message<T>();
  return *detail::receive_until<T>(&tag, -1);
}
/// As receive, but nothing after `d`.
template <class T>
[[nodiscard]] std::optional<T> receive_for(time_limit d) {
  detail::require_message<T>();
  return detail::receive_until<T>(nullptr, detail::deadline_after(d));
}
template <class T>
[[nodiscard]] std::optional<T> receive_for(time_limit d, std::uint64_t tag) {
  detail::require_message<T>();
  return detail::receive_until<T>(&tag, detail::deadline_after(d));
}
/// A message of type T if one is there.
template <class T>
[[nodiscard]] std::optional<T> try_receive() {
  detail::require_message<T>();
  detail::pe& self = detail::here_pe();
  return detail::take_message<T>(self, detail::receiving_slot(self), nullptr);
}
template <class T>
[[nodiscard]] std::optional<T> try_receive(std::uint64_t tag) {
  detail::require_message<T>();
  detail::pe& self = detail::here_pe();
  return detail::take_message<T>(self, detail::receiving_slot(self), &tag);
}

/// The process that calls, as the class or function that it is. Throws usage_error if T is not
/// that.
template <class T>
[[nodiscard]] remote<T> this_process() {
  detail::pe& self = detail::here_pe();
  self.require_process();
  detail::slot& s = *self.active()->process;
  bool is_this = std::is_same_v<T, function> == s.is_function;
  if constexpr (!std::is_same_v<T, function>) {
    // A constructor has no object yet, and is believed.
    if (is_this && s.cls() != nullptr && s.has_object) is_this = detail::object_in<T>(s) != nullptr;
  }
  if (!is_this) throw usage_error(errc::bad_argument, "this_process<T>: the calling process is of another class");
  return remote<T>(self.address_of(s));
}

}  // namespace orrery
