// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

// Receiving any of several types, in the order in which the messages have come:
//
//     receive(on<int>([&](int n) { sum += n; }),
//             on<std::string>([](const std::string& s) { return s == "urgent"; },  // a guard
//                             [&](std::string s) { ... }),
//             after(1s, [&] { late = true; }));
namespace orrery {

namespace detail {

/// The case of a message of type T that the guard lets pass.
template <class T, class Guard, class F>
struct message_case {
  using type = T;
  using result = std::invoke_result_t<F&, T>;
  Guard guard;
  F f;
  std::optional<T> taken{};
  result run() { return f(*std::move(taken)); }
};

/// The case that nothing has come for so long.
template <class F>
struct time_case {
  using result = std::invoke_result_t<F&>;
  time_limit limit;
  F f;
};

template <class C>
inline constexpr bool is_time_case = false;
template <class F>
inline constexpr bool is_time_case<time_case<F>> = true;

/// Says of the process that runs that it is in a guard.
class guarding {
 public:
  explicit guarding(const pe& self) noexcept : fiber_(*self.running()) { fiber_.in_guard = 1; }
  guarding(const guarding&) = delete;
  guarding& operator=(const guarding&) = delete;
  ~guarding() { fiber_.in_guard = 0; }

 private:
  scheduler::fiber& fiber_;
};

/// How many messages lie before this one.
[[nodiscard]] std::size_t messages_before(const slot& s, const scheduler::message* m) noexcept;

/// Takes the message if it is what the case is for. A guard may call and wait, and others put
/// messages into the mailbox meanwhile. `place`: so many messages lay before this one. `changed`:
/// an urgent one has come before it, and was not looked at.
template <class T, class Guard, class F>
bool take_for(pe& self, slot& s, scheduler::message* before, scheduler::message* m, message_case<T, Guard, F>& c,
              std::size_t place, bool& changed) {
  if (m->head.handler != reinterpret_cast<std::uint64_t>(&message_handler<T>::instance)) return false;
  if constexpr (std::is_same_v<Guard, no_guard>) {
    return take_this<T>(self, s, before, m, nullptr, c.taken);
  } else {
    const std::uint32_t charge = s.charge;
    const bool passed = take_this<T>(self, s, before, m, nullptr, c.taken, [&](const T& value) -> bool {
      const guarding in(self);
      return c.guard(value);
    });
    changed = !passed && s.charge != charge && messages_before(s, m) != place;
    return passed;
  }
}

/// The first message that one of the cases is for: the number of that case; -1: there is none.
template <class... Case>
int take_any(pe& self, slot& s, Case&... cases) {
  int taken = -1;
  bool changed = true;
  while (std::exchange(changed, false)) {
    std::size_t place = 0;
    s.search([&](scheduler::message* before, scheduler::message* m) {
      check_destroyed(self, s, before, m);
      int i = 0;
      return ([&] {
               if (take_for(self, s, before, m, cases, place, changed)) return taken = i, true;
               return ++i, changed;
             }() ||
              ...) ||
             (++place, false);
    });
  }
  return taken;
}

template <class R, class... Case>
R run_case(int which, Case&... cases) {
  int i = 0;
  if constexpr (std::is_void_v<R>) {
    (void)((i++ == which ? (static_cast<void>(cases.run()), true) : false) || ...);
  } else {
    std::optional<R> result;
    (void)((i++ == which ? (result.emplace(cases.run()), true) : false) || ...);
    return *std::move(result);
  }
}

template <class R, class Late, class... Case>
R receive_one_of(std::int64_t deadline_ns, Late&& late, Case&... cases) {
  pe& self = here_pe();
  slot& s = receiving_slot(self);
  for (bool there = true;;) {
    if (const int which = take_any(self, s, cases...); which >= 0) return run_case<R>(which, cases...);
    if (!there) return late();
    there = self.functions().await_message(s, deadline_ns);
  }
}

// The last case may be a time limit.
template <class... Done, class Last>
auto receive_cases(std::tuple<Done&...> before, Last& last) {
  if constexpr (is_time_case<Last>) {
    static_assert(sizeof...(Done) > 0, "orrery: receive(after(...)): nothing to receive: sleep_for waits for a time");
    using R = std::common_type_t<typename Done::result..., typename Last::result>;
    return std::apply(
        [&](auto&... cases) -> R {
          return receive_one_of<R>(deadline_after(last.limit), [&]() -> R { return last.f(); }, cases...);
        },
        before);
  } else {
    using R = std::common_type_t<typename Done::result..., typename Last::result>;
    return std::apply(
        [&](auto&... cases) -> R {
          return receive_one_of<R>(-1, [&]() -> R { throw stopped("receive"); }, cases..., last);
        },
        before);
  }
}

}  // namespace detail

/// A case of receive: f is called with a message of type T.
template <class T, std::invocable<T> F>
[[nodiscard]] auto on(F f) {
  detail::require_message<T>();
  return detail::message_case<T, detail::no_guard, F>{{}, std::move(f)};
}
/// The same for messages for which guard(message) is true; others wait on. The guard may be asked
/// more than once of a message. It may call and park, but not receive (usage_error).
template <class T, std::predicate<const T&> Guard, std::invocable<T> F>
[[nodiscard]] auto on(Guard guard, F f) {
  detail::require_message<T>();
  return detail::message_case<T, Guard, F>{std::move(guard), std::move(f)};
}
/// The last case of receive: f is called if nothing has come for `d`.
template <std::invocable<> F>
[[nodiscard]] auto after(time_limit d, F f) {
  return detail::time_case<F>{d, std::move(f)};
}

/// Waits for the first message, in the order in which they came, that one of the cases is for, and
/// calls that case: its result, converted to the type that all have in common. Other messages wait
/// on. If two cases fit one message, the first is called. Called in a process function only, and
/// not in a guard (usage_error else). Throws what the case and guards throw; else as receive<T>.
template <class First, class... More>
  requires requires { typename First::result; }
auto receive(First first, More... more) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    auto all = std::tie(first, more...);
    return detail::receive_cases(std::tie(std::get<I>(all)...), std::get<sizeof...(More)>(all));
  }(std::make_index_sequence<sizeof...(More)>{});
}

/// True if a message of type T is there. As receive, in a process function only.
template <class T>
[[nodiscard]] bool has_message() {
  detail::require_message<T>();
  detail::slot& s = detail::receiving_slot(detail::here_pe(), false);
  return s.search([](const scheduler::message*, const scheduler::message* m) {
    return m->head.handler == reinterpret_cast<std::uint64_t>(&detail::message_handler<T>::instance);
  });
}

}  // namespace orrery
