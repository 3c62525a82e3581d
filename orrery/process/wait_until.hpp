// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/time_limit.hpp>
#include <orrery/scheduler/pe.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace orrery {

namespace detail {

/// True in a method of an object; elsewhere wait_for_condition says what is wrong.
[[nodiscard]] inline bool in_object() noexcept {
  const scheduler::pe* const self = scheduler::current_pe;
  const scheduler::activation* const a = self != nullptr ? self->active() : nullptr;
  return a != nullptr && a->process->has_object && !a->process->is_function;
}

void wait_for_condition(bool (*holds)(void*), void* what, std::size_t bytes);
[[nodiscard]] bool wait_for_condition(bool (*holds)(void*), void* what, std::size_t bytes, time_limit d);

/// The bytes that tell two conditions of one kind apart.
template <class F>
inline constexpr std::size_t bytes_of_condition = std::is_trivially_copyable_v<F> ? sizeof(F) : 0;

template <class F>
bool condition_holds(void* f) {
  return static_cast<bool>((*static_cast<F*>(f))());
}

}  // namespace detail

/// In a method of a process: parks it until `holds()`, a condition on the object. The process takes
/// other messages meanwhile; after each of their methods the conditions of those that wait are
/// looked at, and one that holds goes on at once: nothing comes between. If several methods wait
/// for the same (equal captures, such as [this]), the oldest goes on. A condition is looked at when
/// another method ends, so it is short, calls nobody and does not park; what it throws, the method
/// that waits throws.
///
///     void Buffer::put(int x) {
///       wait_until([&] { return items_.size() < 10; });
///       items_.push_back(x);
///     }
///
/// Changes that no method of the process makes are not seen. A method that waits costs its stack;
/// one that returns the future of a promise does not. No probe looks for cycles through conditions:
/// a world in which nobody makes one true ends as a dead one, whose report lists it. An element
/// whose method waits stays on its PE. Throws process_gone if the process is destroyed meanwhile,
/// usage_error outside of a method, stopped.
template <std::predicate F>
void wait_until(F holds) {
  if (detail::in_object() && holds()) return;
  detail::wait_for_condition(&detail::condition_holds<F>, std::addressof(holds), detail::bytes_of_condition<F>);
}

/// As wait_until, but at most for `d`; false if it does not hold then.
template <std::predicate F>
[[nodiscard]] bool wait_until(time_limit d, F holds) {
  if (detail::in_object() && holds()) return true;
  return detail::wait_for_condition(&detail::condition_holds<F>, std::addressof(holds), detail::bytes_of_condition<F>,
                                    d);
}

}  // namespace orrery
