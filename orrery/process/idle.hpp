// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/scheduler/idle_queue.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <utility>

namespace orrery {

namespace detail {
template <class F>
struct typed_idle_task final : scheduler::idle_task {
  F f;
  explicit typed_idle_task(F g) : f(std::move(g)) {}
  void run() override { f(); }
};
}  // namespace detail

/// Runs f() on this PE when it has nothing else to do: no message that waits or has come, no
/// process that can go on. Waiting work runs in the order of the calls, one after the other;
/// messages that come meanwhile go first. On a PE that always has something to do it never runs.
///
/// For work that can wait, and to decide what stays in the cache: where a PE has more than fits
/// into it, who has gone some way can step back until the others have come as far, instead of being
/// thrown out and fetched again in every step (`examples/arrays/jacobi`). The process that calls
/// this, and `memory` (up to 64 KiB of it, which f will need), are fetched into the cache while
/// others run. It is only asked for, so it may be freed or moved meanwhile.
///
///     orrery::when_idle([me = this_array()[this_index()]] { post(me)->go_on(); },
///                       std::as_bytes(std::span(cells_)));
///
/// f runs as a process of its own, which may call others and wait. An exception of `f` is reported
/// and counted like that of a post. Waiting work counts as work: the world is not quiescent, and if
/// an element of an array called this, neither is the array. When the program ends it runs as
/// messages do that are waiting then, or is dropped. The destructor of f runs on this PE, outside
/// of any process: it must not call or wait. An element that it is about may have moved meanwhile:
/// messages find it. Parks only to throw stopped, when the program ends.
template <std::invocable F>
void when_idle(F f, std::span<const std::byte> memory = {}) {
  auto t = wire::make_unique<detail::typed_idle_task<F>>(std::move(f));
  t->memory = memory;
  detail::here_pe().run_when_idle(std::move(t));
}

}  // namespace orrery
