// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/placement.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace orrery {
namespace detail {

void note_class(pe& self, const scheduler::class_info& cls) noexcept;
/// The current exception leaves the constructor of a process that is watched.
void note_failed_constructor(pe& self, const slot& s) noexcept;

template <class T, class... A>
concept constructible_from_kept =
    requires(travels_t<A>... a) { T{std::move(a)...}; } || std::is_constructible_v<T, travels_t<A>...>;

/// Constructing a T as a process.
template <class T>
struct spawn_operation {
  using object = void;
  using result = remote<T>;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(constructor)"; }
  template <class... A>
  static remote<T> run(pe& self, slot& s, void*, A&&... arguments) {
    if constexpr (constructible_from_kept<T, A...>) {  // else check_spawnable has said it
      s.class_number = class_of<T>::value.number;
      T* object = nullptr;
      try {
        object = make_object<T>(s, std::forward<A>(arguments)...);
      } catch (...) {
        if (s.watched) note_failed_constructor(self, s);
        throw;
      }
      note_class(self, class_of<T>::value);
      s.set_object(object);
    }
    return remote<T>(self.address_of(s));
  }
};

/// Runs the destructor of a process, as its last method.
inline void end_process(slot& s) noexcept {
  if (s.depth == 1) {
    scheduler::current_pe->end_object(s);
  } else {  // reentrant: when its other methods have ended
    s.dying = true;
  }
}

/// The destructor, run by destroy.
template <class T>
struct destroy_operation {
  using object = T;
  using result = void;
  static constexpr std::string_view class_name() noexcept { return type_name<T>(); }
  static constexpr std::string_view name() noexcept { return "(destructor)"; }
  static void run(pe&, slot& s, T*) noexcept { end_process(s); }
};

template <class T, class... A>
using spawn_handler = typed_handler<spawn_operation<T>, travels_t<A>...>;

inline address pe_address(std::uint32_t pe) noexcept { return {pe, wire::no_slot, 0}; }

template <class T, class... A>
void check_spawnable() {
  if constexpr (is_complete<T, spawn_operation<T>>) {
    static_assert(std::is_class_v<T> && !std::is_abstract_v<T>,
                  "orrery: spawn<T>: T must be a class that can be constructed");
  } else {
    static_assert(never<T>, "orrery: spawn<T>: T is only declared here: include its definition before");
  }
  static_assert(constructible_from_kept<T, A...>,
                "orrery: spawn<T>(placement, args...): T has no constructor that takes these arguments");
  (require_parameter<travels_t<A>>(), ...);
}

}  // namespace detail

/// Creates a process: constructs a T from the arguments on the PE that the placement means, and
/// returns a pointer to it when that is done. On the caller's own PE this is little more than
/// `new T`. Parks the caller otherwise. Throws what the constructor throws, usage_error (no such
/// place), node_lost, stopped.
///
///     auto device = orrery::spawn<PageDevice>(orrery::machine(1), "pagefile", 1024, 32 << 20);
template <class T, class... A>
  requires(!std::is_array_v<T>)
remote<T> spawn(placement where, A&&... arguments) {
  detail::check_spawnable<T, A...>();
  detail::pe& self = detail::here_pe();
  const std::uint32_t target = where.resolve();
  using handler = detail::spawn_handler<T, A...>;
  if (target == self.id() && self.room_on_stack()) {
    detail::slot& s = self.allocate_slot();
    struct guard {
      detail::pe& self;
      detail::slot& s;
      scheduler::activation a;
      guard(detail::pe& p, detail::slot& q) : self(p), s(q), a{&q, &handler::instance, nullptr} {
        self.push_activation(a);
        s.active = &a;
        s.depth = 1;
      }
      ~guard() {
        self.pop_activation(a);
        s.active = nullptr;
        s.depth = 0;
        if (!s.has_object) {
          self.free_slot(s);
        } else {
          self.settle(s);
        }
      }
    };
    try {
      const guard g(self, s);
      return detail::spawn_operation<T>::run(self, s, nullptr, std::forward<A>(arguments)...);
    } catch (...) {
      detail::rethrow_as_received(handler::instance, self);
    }
  }
  detail::typed_sink<remote<T>> k;
  detail::send_call<handler>(self, detail::pe_address(target), k, detail::travels_t<A>(std::forward<A>(arguments))...);
  return k.take();
}

/// As spawn, but returns at once: the future has the pointer when the object has been constructed.
template <class T, class... A>
  requires(!std::is_array_v<T>)
future<remote<T>> start_spawn(placement where, A&&... arguments) {
  detail::check_spawnable<T, A...>();
  return detail::start_message<detail::spawn_handler<T, A...>, remote<T>>(
      detail::here_pe(), detail::pe_address(where.resolve()), detail::travels_t<A>(std::forward<A>(arguments))...);
}

/// Ends a process: runs the destructor where it lives, after the messages that were sent before;
/// returns when that is done. Messages behind it fail with process_gone, and so do later calls.
/// Throws process_gone if it was gone already, node_lost, deadlock_error (a process that destroys
/// itself: use start_destroy). A reentrant process ends when its other methods have ended; destroy
/// does not wait for that.
template <class T>
void destroy(const remote<T>& p) {
  using handler = detail::typed_handler<detail::destroy_operation<T>>;
  detail::typed_sink<void> k;
  detail::send_call<handler>(detail::here_pe(), p.address(), k);
  k.take();
}

/// As destroy, but returns at once.
template <class T>
future<void> start_destroy(const remote<T>& p) {
  return detail::start_message<detail::typed_handler<detail::destroy_operation<T>>, void>(detail::here_pe(),
                                                                                          p.address());
}

// --- remote functions ----------------------------------------------------------------------------

namespace detail {

template <auto F>
struct function_traits {
  static_assert(
      never<std::integral_constant<decltype(F), F>>,
      "orrery: call<&f>(placement, args...): f is a function or a static method; for a method of a process write "
      "p->m(arguments...)");
  using result = void;
  template <template <class...> class X, class Op>
  using with_parameters = X<Op>;
};
template <class R, class... P, R (*F)(P...)>  // a noexcept one is converted
struct function_traits<F> {
  using result = R;
  template <template <class...> class X, class Op>
  using with_parameters = X<Op, P...>;
};
template <auto F>
struct function_name {  // its type carries the function's name into type_name
  static constexpr std::string_view get() noexcept { return __PRETTY_FUNCTION__; }
};

template <auto F>
struct function_operation {
  using object = void;
  using result = typename function_traits<F>::result;
  static constexpr std::string_view class_name() noexcept { return "function"; }
  static constexpr std::string_view name() noexcept {
    std::string_view s = type_name<function_name<F>>();
    std::size_t begin = s.find('<') + 1;
    if (s[begin] == '&') ++begin;  // as Clang writes it
    return s.substr(begin, s.rfind('>') - begin);
  }
  template <class... A>
  static result run(pe&, slot&, void*, A&&... arguments) {
    return F(std::forward<A>(arguments)...);
  }
};

template <auto F>
using function_handler = typename function_traits<F>::template with_parameters<typed_handler, function_operation<F>>;

/// For what the runtime tells itself, one way: that it was lost with a node is no failed post.
template <auto F>
using told_handler = typename function_traits<F>::template with_parameters<typed_handler, told<function_operation<F>>>;

// Converts the arguments to the parameters, so that wrong ones are errors at the caller's line.
template <class Op, class... P>
struct parameters_of {
  template <class Handler, class R>
  static value_t<R> call(address to, P... arguments) {
    typed_sink<value_t<R>> k;
    send_call<Handler>(here_pe(), to, k, std::forward<P>(arguments)...);
    return k.take();
  }
  template <class Handler, class R>
  static future<value_t<R>> start(address to, P... arguments) {
    return start_message<Handler, value_t<R>>(here_pe(), to, std::forward<P>(arguments)...);
  }
  template <class Handler>
  static void post(address to, P... arguments) {
    send_owned<Handler>(here_pe(), to, nullptr, true, std::forward<P>(arguments)...);
  }
};
template <class Op, class... P>
struct check_function {
  static consteval void require() {
    (require_parameter<P>(), ...);
    require_result<typename Op::result>();
  }
};
template <auto F>
using function_check = typename function_traits<F>::template with_parameters<check_function, function_operation<F>>;
template <auto F>
using parameters = typename function_traits<F>::template with_parameters<parameters_of, void>;

}  // namespace detail

/// Runs a function on another PE and returns its result: `double e = call<&energy>(pe(2), box);`.
/// Parks the caller. Throws what f throws, usage_error, node_lost, stopped.
template <auto F, class... A>
auto call(placement where, A&&... arguments) {
  detail::function_check<F>::require();
  using R = typename detail::function_traits<F>::result;
  return detail::parameters<F>::template call<detail::function_handler<F>, R>(detail::pe_address(where.resolve()),
                                                                              std::forward<A>(arguments)...);
}
/// As call, but returns a future at once.
template <auto F, class... A>
auto start_call(placement where, A&&... arguments) {
  detail::function_check<F>::require();
  using R = typename detail::function_traits<F>::result;
  return detail::parameters<F>::template start<detail::function_handler<F>, R>(detail::pe_address(where.resolve()),
                                                                               std::forward<A>(arguments)...);
}
/// As call, one way.
template <auto F, class... A>
void post_call(placement where, A&&... arguments) {
  detail::function_check<F>::require();
  detail::parameters<F>::template post<detail::function_handler<F>>(detail::pe_address(where.resolve()),
                                                                    std::forward<A>(arguments)...);
}

namespace detail {

/// As post_call, of what nobody misses where the node of the receiver is lost.
template <auto F, class... A>
void tell_call(placement where, A&&... arguments) {
  function_check<F>::require();
  parameters<F>::template post<told_handler<F>>(pe_address(where.resolve()), std::forward<A>(arguments)...);
}

}  // namespace detail
}  // namespace orrery
