// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/time_limit.hpp>
#include <orrery/scheduler/pe.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace orrery {

namespace detail {

[[noreturn]] void throw_no_method();
/// The PE, in a method of an object; throws usage_error elsewhere.
[[nodiscard]] inline scheduler::pe& pe_of_method() {
  scheduler::pe* const self = scheduler::current_pe;
  const scheduler::activation* const a = self != nullptr ? self->active() : nullptr;
  if (a == nullptr || !a->process->has_object || a->process->is_function) [[unlikely]]
    throw_no_method();
  return *self;
}

[[nodiscard]] std::int64_t deadline_after(time_limit d) noexcept;

/// In a method that has waited. Throws node_lost if its caller's node has gone meanwhile.
void require_caller();

/// The bytes that tell two conditions of one kind apart.
template <class F>
inline constexpr std::size_t bytes_of_condition = std::is_trivially_copyable_v<F> ? sizeof(F) : 0;

template <class F>
bool condition_holds(void* f) {
  return static_cast<bool>((*static_cast<F*>(f))());
}
template <class F>
scheduler::predicate condition_of(F& holds) noexcept {
  return {&condition_holds<F>, std::addressof(holds), bytes_of_condition<F>};
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
  scheduler::pe& self = detail::pe_of_method();
  if (!holds()) (void)self.conditions().wait(detail::condition_of(holds));
}

namespace detail {

/// As wait_until, in a method that takes something for its caller then. If the caller's node has
/// gone meanwhile, nobody would get it: throws node_lost, so that the next one that waits does.
template <std::predicate F>
void wait_for_caller(F holds) {
  scheduler::pe& self = pe_of_method();
  if (holds()) return;
  (void)self.conditions().wait(condition_of(holds));
  require_caller();
}

}  // namespace detail

/// As wait_until, but at most for `d`; false if it does not hold then.
template <std::predicate F>
[[nodiscard]] bool wait_until(time_limit d, F holds) {
  scheduler::pe& self = detail::pe_of_method();
  return holds() || self.conditions().wait(detail::condition_of(holds), detail::deadline_after(d));
}

}  // namespace orrery
