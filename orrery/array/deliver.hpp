// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/target.hpp>
#include <orrery/process/detail/bound_target.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/spawn.hpp>

#include <string_view>
#include <utility>

// Callbacks: whoever has a target can fire it, and a target can name anything that takes a value.
//
//     void Search::find(Key k, const result_target& found) { ...; deliver(found, place); }
//
// The target can be a process; an element, an array, a section or a group; a process function,
// which receives the value; a function that is run on a PE; a future:
//
//     post(search)->find(k, result_to<&Main::found>(main));
//     post(search)->find(k, result_to<&Block::found>(grid[3, 4]));
//     post(search)->find(k, result_to<int>(me));
//     post(search)->find(k, result_to<&report>(pe(0)));
//     auto [target, place] = expect_result<int>();
namespace orrery {

namespace detail {

void deliver_value(pe& self, const reduction_target& t, std::uint32_t mark, std::string_view type,
                   std::span<const std::byte> value);

/// Hands a value on to what the first section of the message names, on the PE where it is
/// delivered: Send::to(target, value).
template <class To, class P, class Send>
struct forward_message {
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    return d.heap != nullptr ? &fresh_slot(self) : refuse_route(self, d, e, size);
  }
  static void run(pe& self, slot&, scheduler::delivery& d) {
    try {
      const std::span<const std::byte> all{d.payload, d.payload_bytes};
      orrery::reader r(all);
      const auto to = orrery::read<To>(r);
      orrery::reader from(after_section(all, r));
      kept_t<P> value(orrery::read<std::remove_cvref_t<P>>(from));
      d.release();
      Send::to(to, value);
    } catch (...) {
      d.release();
      self.failures().report_post(&instance, std::current_exception());
    }
  }
  static void describe(wire::type_description& types) { types.describe<std::remove_cvref_t<P>>(); }
  struct forward_handler : scheduler::handler {
    forward_handler() noexcept
        : scheduler::handler("orrery", "deliver", wire::type_key<forward_message>(), &forward_message::run,
                             &control_handler::never_relocate, &control_handler::never_drop, 0, false,
                             &forward_message::describe) {
      route = &forward_message::route;
    }
  };
  inline static const forward_handler instance;

  [[nodiscard]] static reduction_target target(const To& to) {
    reduction_target t;
    t.what = reduction_target::kind::forward;
    t.handler = instance.index;
    t.type = type_taken<P>();
    t.head = pack(0, to);
    return t;
  }
};

/// Posts it to the method of whatever has a post.
template <class T, auto F, class R, class P>
struct send_to_method {
  template <class To>
  static void to(const To& to, kept_t<P>& value) {
    auto now = post(to);
    using mode = typename bound_parts<decltype(now)>::mode;
    const auto& target = target_of<typename mode::target>(now.operator->());
    if constexpr (orrery::is_view<std::remove_cvref_t<P>>) {
      mode::template invoke<pointed_method<T, F>, R, P>(target, std::remove_cvref_t<P>(value));
    } else {
      mode::template invoke<pointed_method<T, F>, R, P>(target, static_cast<P&&>(value));
    }
  }
};
template <auto F, class To>
[[nodiscard]] result_target target_of_many(const To& to) {
  using parts = method_parts<decltype(F)>;
  using P = typename parts::parameter;
  using sends = send_to_method<typename To::element_type, F, typename parts::result, P>;
  return forward_message<To, P, sends>::target(to);
}

struct send_to_function {
  template <class V>
  static void to(const remote<function>& f, V& value) {
    send(f, std::move(value));
  }
};

template <auto F>
struct function_parts {
  static_assert(never<std::integral_constant<decltype(F), F>>,
                "orrery: result_to<&f>(place): f is a function with one parameter");
};
template <class R, class P, R (*F)(P)>
struct function_parts<F> {
  using parameter = P;
  static void to(std::uint32_t pe, kept_t<P>& value) { post_call<F>(orrery::pe(pe), std::remove_cvref_t<P>(value)); }
};

}  // namespace detail

/// The result as a broadcast to a section.
template <auto F, class T, class Index>
[[nodiscard]] result_target result_to(const section<T, Index>& s) {
  if (!s) detail::throw_no_target("section");
  return detail::target_of_many<F>(s);
}
/// The same to all members of a group.
template <auto F, class T>
[[nodiscard]] result_target result_to(const group<T>& g) {
  if (!g) detail::throw_no_target("group");
  return detail::target_of_many<F>(g);
}
/// The result as a message to a process function, which receives a V.
template <class V>
[[nodiscard]] result_target result_to(const remote<function>& f) {
  detail::require_message<V>();
  if (!f) detail::throw_no_target("function");
  return detail::forward_message<remote<function>, V, detail::send_to_function>::target(f);
}
/// The result as the argument of a function that runs on that PE: `result_to<&report>(pe(0))`.
template <auto F>
[[nodiscard]] result_target result_to(placement where) {
  using parts = detail::function_parts<F>;
  return detail::forward_message<std::uint32_t, typename parts::parameter, parts>::target(where.resolve());
}

/// Sends a value to where a target says: anybody may, also more than once, as a message. The future
/// of expect_result takes the first one. Parks only on the way to an array of another program.
/// Throws usage_error (a target without a destination, or of another type), process_gone (the array
/// was destroyed); what else goes wrong there is reported as of a post.
template <class V>
void deliver(const result_target& target, const V& value) {
  using sent = detail::travels_t<V>;
  detail::bytes b;
  detail::pack_after(b, sent(value));
  detail::deliver_value(detail::here_pe(), target, detail::type_mark<sent>(), detail::type_name<sent>(), b);
}

}  // namespace orrery
