// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/broadcast.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

// The caller's side of an operation for all members of a group (broadcast.hpp): it asks each part,
// and puts together what they answer.
namespace orrery::detail {

/// A call to all parts, whatever the operation. `refs` point to the caller's arguments.
struct part_call {
  const scheduler::handler& method;
  const void* const* refs;
  std::uint32_t arguments;
  bool constructs;
  void (*to_other_node)(pe&, scheduler::outbound&, address, scheduler::sink&, const void* const* refs);
  broadcast_base* (*make)(group_part&, const void* const* refs);
};
/// Sends it to each part and returns when each has answered, into the sink that sink_of(sinks,
/// part) gives. Parks.
void call_each_part(const group_data& d, const part_call& c, scheduler::sink& (*sink_of)(void* sinks, std::size_t part),
                    void* sinks);

/// Throws deadlock_error if a method of a member of the group waits for the running fiber: it would
/// wait for itself.
void check_not_inside(pe& self, const group_data& d, const scheduler::handler& h);
/// Before a one-way or asynchronous broadcast: parks while the members of this PE are too far
/// behind. False if the part is gone. Throws stopped.
[[nodiscard]] bool wait_for_members(pe& self, address part);

template <class R>
using broadcast_result_t =
    std::conditional_t<std::is_void_v<R>, void, std::vector<std::conditional_t<std::is_void_v<R>, char, R>>>;

/// The results of all parts in the order of the ranks. Throws the exception of the lowest rank that
/// has one.
template <class R>
broadcast_result_t<R> merge(const group_data& d, std::vector<part_result<R>>& results) {
  rethrow_first(results);
  if constexpr (!std::is_void_v<R>) {
    if (results.size() == 1) return std::move(results[0].values);
    std::vector<R> all;
    all.reserve(d.members.size());
    std::vector<std::size_t> next(results.size());
    for (const std::uint32_t p : d.part_of) all.push_back(std::move(results[p].values.at(next[p]++)));
    return all;
  }
}

template <class R, class F>
part_result<R> part_result_of(const group_data::part& p, F&& take) {
  try {
    return take();
  } catch (...) {  // the part is gone, or its node
    part_result<R> r;
    r.failed = p.first;
    r.error = std::current_exception();
    return r;
  }
}

template <class R>
std::vector<part_result<R>> call_parts_for(const group_data& d, const part_call& c) {
  using sink = typed_sink<part_result<R>>;
  const auto sinks = wire::make_unique<sink[]>(d.parts.size());
  call_each_part(
      d, c, [](void* all, std::size_t i) -> scheduler::sink& { return static_cast<sink*>(all)[i]; }, sinks.get());
  std::vector<part_result<R>> results;
  results.reserve(d.parts.size());
  for (std::size_t i = 0; i < d.parts.size(); ++i)
    results.push_back(part_result_of<R>(d.parts[i], [&] { return sinks[i].take(); }));
  return results;
}

/// Calls the operation at all members; returns when all have ended: the parts' results. Arguments
/// are not copied inside the node.
template <class Operation, class Fold, class... P>
auto call_parts(const group_data& d, const std::remove_cvref_t<P>&... arguments) {
  using handler = broadcast_handler<Operation, Fold, P...>;
  const void* const refs[] = {static_cast<const void*>(std::addressof(arguments))..., nullptr};
  return call_parts_for<typename handler::state::R>(
      d, {handler::instance, refs, sizeof...(P), handler::state::constructs, &handler::send_to_other_node,
          &handler::make});
}

/// Sends the operation to one part with arguments of its own. `sink` null: one way.
template <class Handler, class... A>
void send_to_part(pe& self, address to, scheduler::sink* sink, const A&... arguments) {
  static_assert((std::is_copy_constructible_v<A> && ...),
                "orrery: an argument of a broadcast is copied to each PE: it must be copyable");
  if (to.pe != self.id()) {
    send_owned<Handler>(self, to, sink, true, arguments...);
    return;
  }
  group_part* part = find_part(self, to.slot, to.generation);
  if (part == nullptr) {
    fail_gone(Handler::instance, to, sink, self);
    return;
  }
  if (!wait_for_members(self, to)) {
    fail_gone(Handler::instance, to, sink, self);
    return;
  }
  wire::unique_ptr<broadcast_base> owner;
  if (scheduler::through_wire) [[unlikely]] {
    const void* const refs[] = {static_cast<const void*>(std::addressof(arguments))..., nullptr};
    owner.reset(Handler::make(*part, refs));
  } else {
    auto* b = new typename Handler::state(*part, Handler::instance);
    owner.reset(b);
    b->own(typename Handler::tuple(arguments...));
  }
  owner->reply = reinterpret_cast<std::uint64_t>(sink);
  owner->source_pe = self.id();
  owner.release()->fan_out(self, Handler::state::argument_bytes, Handler::state::constructs);
}

// The answers to an asynchronous broadcast, on their way.
template <class R, class Out, class Finish>
struct gathering {
  std::size_t left;
  group_handle group;
  Finish finish;
  std::vector<future<part_result<R>>> futures;
  future_state<Out>* target;

  void one(pe& self) {
    if (--left != 0) return;
    const wire::unique_ptr<gathering> owned(this);
    resolve<Out>(self, target, [&]() -> Out {
      const group_data& d = group.data();
      std::vector<part_result<R>> results;
      results.reserve(futures.size());
      for (std::size_t i = 0; i < futures.size(); ++i)
        results.push_back(part_result_of<R>(d.parts[i], [&] { return futures[i].get(); }));
      return finish(d, results);
    });
  }
};

/// As call_parts, but asynchronous: a future of `finish(data, results)`.
template <class Operation, class Fold, class... P, class Finish>
auto start_parts(const group_handle& g, Finish finish, const std::remove_cvref_t<P>&... arguments) {
  using handler = broadcast_handler<Operation, Fold, P...>;
  using R = typename handler::state::R;
  using result = part_result<R>;
  using Out = std::invoke_result_t<Finish, const group_data&, std::vector<result>&>;
  const group_data& d = g.data();
  pe& self = here_pe();
  auto all = future_access<Out>::make_local(self);
  std::vector<future<result>> futures;
  futures.reserve(d.parts.size());
  for (const auto& p : d.parts) {
    auto state = future_access<result>::make(self, p.at, handler::instance);
    // given up to the reply, if the message was sent
    auto travelling = future_access<result>::make_hold(state);
    try {
      send_to_part<handler>(self, p.at, state.get(), arguments...);
      (void)travelling.release();
    } catch (...) {  // not sent
      state->error = std::current_exception();
      state->scheduler::sink::state = scheduler::sink::status::error;
    }
    futures.push_back(future_access<result>::wrap(std::move(state)));
  }
  all->hold();
  auto* gather = new gathering<R, Out, Finish>{futures.size() + 1, g, std::move(finish), std::move(futures), all.get()};
  for (auto& f : gather->futures) {
    if (f.ready()) {
      --gather->left;
      continue;
    }
    auto* s = future_access<result>::get(f);
    s->continuation_data = gather;
    s->continuation = [](pe& at, future_state_base& base) {
      static_cast<gathering<R, Out, Finish>*>(base.continuation_data)->one(at);
    };
  }
  gather->one(self);
  return future_access<Out>::wrap(std::move(all));
}

/// As call_parts, but one way. All parts are sent to, whatever happens; then the first exception is
/// thrown.
template <class Operation, class Fold, class... P>
void post_parts(const group_data& d, const std::remove_cvref_t<P>&... arguments) {
  pe& self = here_pe();
  std::exception_ptr first;
  for (const auto& p : d.parts) {
    try {
      send_to_part<broadcast_handler<Operation, Fold, P...>>(self, p.at, nullptr, arguments...);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace orrery::detail
