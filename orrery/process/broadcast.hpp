// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/process/group_part.hpp>
#include <orrery/process/later_answer.hpp>

#include <concepts>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// One operation for all members of a group. Life of a broadcast:
//   1. The caller sends one message with the arguments to each part, to that of its own PE
//      directly.
//   2. The part (broadcast_handler) keeps the arguments, or, in a sequential call inside the node,
//      pointers to the caller's. It puts a small message into the mailbox of each of its members,
//      in the order of their ranks.
//   3. The members (member_handler) run the operation in their own time, on the same arguments, and
//      leave the result or the exception.
//   4. When the last one is done the part answers with all results of its PE at once, combined if
//      it is a reduction.
//   5. The caller puts the parts' results in the order of the ranks.
//
// The `Operation` is that of a typed_handler, called with const references; its level_of, if it has
// one, reads the level of the members' messages from its arguments. The `Fold` says what becomes of
// the results.
namespace orrery::detail {

/// A broadcast at one part, until its last member is done. Owned by itself; in the part's list.
struct broadcast_base {
  struct message_payload {
    broadcast_base* of;
    std::uint64_t index;
  };
  // Answered for a message that a member did not live to execute.
  struct drop_sink : scheduler::sink {
    broadcast_base* of = nullptr;
  };

  group_part* part;
  broadcast_base* previous = nullptr;
  broadcast_base* next = nullptr;
  const scheduler::handler* method;  // of the broadcast
  const scheduler::handler* member_method;  // of the messages to the members
  std::uint64_t reply = 0;  // as in the delivery
  std::uint32_t source_pe = 0;
  bool remote = false;
  bool by_wire = false;  // the arguments have come in their wire form, and so is the answer to go
  bool forgives = false;  // members that are gone do not count as failed
  bool births = false;  // it constructs the members
  bool ends_part = false;
  wire::record_kind level = wire::record_kind::message;  // of the messages to the members
  std::uint32_t left = 0;  // members that are not done
  // to the part's mailbox: so senders are held back while members are behind
  std::uint32_t charged = 0;
  std::uint32_t failed = group_data::none;
  std::exception_ptr error;
  drop_sink dropped;
  scheduler::delivery kept;  // the message, while views look into it

  broadcast_base(group_part& p, const scheduler::handler& h, const scheduler::handler& member) noexcept;
  broadcast_base(const broadcast_base&) = delete;
  broadcast_base& operator=(const broadcast_base&) = delete;
  virtual ~broadcast_base();
  /// Runs the operation at one member. Throws what that throws. False: the member is done later,
  /// and says so by one_done.
  virtual bool run(pe& self, slot& s, std::size_t index) = 0;
  virtual void answer(pe& self) noexcept = 0;  // and end

  /// Sends the messages to the members. Does not park.
  void fan_out(pe& self, std::uint32_t argument_bytes, bool constructs) noexcept;
  void fail(std::size_t index, std::exception_ptr why) noexcept;
  void one_done(pe& self) noexcept;
  /// Takes the messages that have not been executed out of the mailboxes.
  void forget_messages(pe& self) noexcept;
  /// Takes over a delivery whose payload is read in place.
  void keep(scheduler::delivery& d) noexcept;

  // The handler of the messages to members; what they carry is a message_payload.
  static void run_member(pe& self, slot& s, scheduler::delivery& d);
  static void move_payload(void* to, void* from) noexcept { std::memcpy(to, from, sizeof(message_payload)); }
};

/// An answer that has to leave the node. It may have to wait for space on its way, so a process of
/// its own sends it.
struct late_answer {
  const scheduler::handler* method = nullptr;
  std::uint64_t reply = 0;
  std::uint32_t source_pe = 0;

  late_answer() = default;
  late_answer(const late_answer&) = delete;
  late_answer& operator=(const late_answer&) = delete;
  virtual ~late_answer() = default;
  /// May park. Throws what prevents it.
  virtual void send(pe& self) = 0;
};
void answer_later(pe& self, std::unique_ptr<late_answer> l) noexcept;

/// The work of a broadcast's handler that does not depend on the operation: `make` takes the
/// arguments out of the delivery.
struct broadcast_kind {
  const scheduler::handler& method;
  broadcast_base* (*make)(group_part&, scheduler::delivery&);
  std::uint32_t argument_bytes;
  bool constructs;
};
void run_broadcast(pe& self, slot& s, scheduler::delivery& d, const broadcast_kind& kind);

/// A call to all parts, whatever the operation. `refs` point to the caller's arguments.
struct part_call {
  const scheduler::handler& method;
  const void* const* refs;
  std::uint32_t arguments;
  bool constructs;
  void (*to_other_node)(pe&, scheduler::channel&, address, scheduler::sink&, const void* const* refs);
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

// Results as they come, in any order.
template <class R>
class result_table {
  static constexpr bool direct = std::is_default_constructible_v<R> && std::is_move_assignable_v<R>;

 public:
  explicit result_table(std::size_t n) : values_(n) {}
  template <class F>
  void set(std::size_t i, F&& f) {
    if constexpr (direct) {
      values_[i] = f();
    } else {
      values_[i].emplace(f());
    }
  }
  R take(std::size_t i) {
    if constexpr (direct) {
      return std::move(values_[i]);
    } else {
      return std::move(*values_[i]);
    }
  }
  std::vector<R> take_all() {
    if constexpr (direct) {
      return std::move(values_);
    } else {
      std::vector<R> all;
      all.reserve(values_.size());
      for (auto& v : values_) all.push_back(std::move(*v));
      return all;
    }
  }

 private:
  std::vector<std::conditional_t<direct, R, std::optional<R>>> values_;
};
template <>
class result_table<void> {
 public:
  explicit result_table(std::size_t) {}
};

/// All results.
struct gather_fold {
  template <class R>
  static void finish(group_part&, result_table<R>& table, part_result<R>& result) {
    if constexpr (!std::is_void_v<R>) result.values = table.take_all();
  }
};
/// The results of consecutive ranks, combined.
template <class Op>
struct reduce_fold {
  template <class R>
  static void finish(group_part& part, result_table<R>& table, part_result<R>& result) {
    const auto& members = part.members();
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (part.begins_run(i)) {
        result.values.push_back(table.take(i));
      } else {
        result.values.back() = Op{}(std::move(result.values.back()), table.take(i));
      }
    }
  }
};

template <class Fold, class... P>
struct broadcast_signature;
template <class Fold, class... P>
struct member_signature;

/// The results of a broadcast at one part, and its answer.
template <class R, class Fold>
struct broadcast_results : broadcast_base {
  using result_type = part_result<R>;

  result_table<R> results;

  broadcast_results(group_part& p, const scheduler::handler& h, const scheduler::handler& member)
      : broadcast_base(p, h, member), results(p.members().size()) {}

  void answer(pe& self) noexcept final {
    if (reply == 0) {
      if (error != nullptr) self.failures().report_post(method, error);
      delete this;
      return;
    }
    auto l = std::make_unique<late>(take_result());
    l->method = method;
    l->reply = reply;
    l->source_pe = source_pe;
    const bool far = by_wire;
    delete this;
    if (far) {
      answer_later(self, std::move(l));
      return;
    }
    auto* k = reinterpret_cast<scheduler::sink*>(l->reply);
    new (k->storage) result_type(std::move(l->result));
    if (l->source_pe == self.id()) {
      k->state = scheduler::sink::status::value;
      self.complete(*k);
      return;
    }
    try {
      self.links().send_control(self.channel_to(l->source_pe), wire::record_kind::reply, 0, 0, l->reply);
    } catch (const orrery::error&) {  // only while shutting down
    }
  }

 private:
  struct late final : late_answer {
    result_type result;
    explicit late(result_type&& r) noexcept : result(std::move(r)) {}
    void send(pe& self) override {
      if (on_this_node(self, source_pe)) {  // see send_through_wire
        detail::answer<result_type>(self, reply, source_pe, false, [&] { return written_and_read(result); });
      } else {
        detail::answer<result_type>(self, reply, source_pe, true, [&]() -> result_type&& { return std::move(result); });
      }
    }
  };

  result_type take_result() noexcept {
    result_type r;
    r.method = method;
    if (error == nullptr) {
      try {
        Fold::template finish<R>(*part, results, r);
      } catch (...) {
        fail(0, std::current_exception());
      }
    }
    r.failed = failed;
    r.error = std::move(error);
    return r;
  }
};

template <class Operation, class Fold, class... P>
struct broadcast final : broadcast_results<value_t<typename Operation::result>, Fold> {
  using R = value_t<typename Operation::result>;
  using handler = typed_handler<Operation, P...>;  // for its forms of the arguments
  using values = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr bool constructs = requires { &Operation::run_at; };
  static constexpr std::uint32_t argument_bytes = sizeof(values);

  std::optional<typename handler::tuple> owners;  // of what views look at
  std::optional<values> arguments;
  const void* refs[sizeof...(P) + 1] = {};  // to the arguments, here or at the caller

  broadcast(group_part& p, const scheduler::handler& h) : broadcast_results<R, Fold>(p, h, member_instance) {
    this->forgives = this->ends_part = requires { typename Operation::ends; };
  }

  void refer() noexcept {
    [this]<std::size_t... I>(std::index_sequence<I...>) {
      (void)((refs[I] = std::addressof(std::get<I>(*arguments))), ...);
    }(std::index_sequence_for<P...>{});
    take_level();
  }
  /// The pointers to the arguments are known.
  void take_level() noexcept {
    if constexpr (requires { Operation::level_of(refs); }) this->level = Operation::level_of(refs);
  }
  void own(typename handler::tuple&& t) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if constexpr (handler::views) {
        owners.emplace(std::move(t));
        arguments.emplace(view_or_move<P>(std::get<I>(*owners))...);
      } else {
        arguments.emplace(std::get<I>(std::move(t))...);
      }
    }(std::index_sequence_for<P...>{});
    refer();
  }

  bool run(pe& self, slot& s, std::size_t index) override {
    return run_with(self, s, index, std::index_sequence_for<P...>{});
  }

 private:
  template <class Q>
  static decltype(auto) view_or_move(kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return std::move(k);
    }
  }
  template <std::size_t... I>
  bool run_with(pe& self, slot& s, std::size_t index, std::index_sequence<I...>) {
    if constexpr (constructs) {
      Operation::run_at(self, s, *this->part, index, *static_cast<const std::remove_cvref_t<P>*>(refs[I])...);
    } else {
      auto* object = object_in<typename Operation::object>(s);
      if (object == nullptr) [[unlikely]]
        throw_wrong_class(*this->method, s.cls());
      auto f = [&]() -> decltype(auto) {
        return Operation::run(self, s, object, *static_cast<const std::remove_cvref_t<P>*>(refs[I])...);
      };
      if constexpr (comes_later<std::remove_cvref_t<typename Operation::result>>::value) {
        give_later(self, f(), [this, index](pe& at, future_state<R>& from) noexcept {
          try {
            if constexpr (std::is_void_v<R>) {
              from.take();
            } else {
              this->results.set(index, [&] { return from.take(); });
            }
          } catch (...) {
            this->fail(index, std::current_exception());
          }
          this->one_done(at);
        });
        return false;
      } else if constexpr (std::is_void_v<R>) {
        f();
      } else {
        this->results.set(index, f);
      }
    }
    return true;
  }

  inline static const scheduler::handler member_instance{Operation::class_name(),
                                                         Operation::name(),
                                                         wire::type_key<member_signature<broadcast>>(),
                                                         &broadcast_base::run_member,
                                                         &broadcast_base::move_payload,
                                                         [](void*) {},
                                                         sizeof(broadcast_base::message_payload),
                                                         false};
};

/// The handler of a broadcast at a part: typed_handler's forms, handed on to the members instead of
/// run.
template <class Operation, class Fold, class... P>
struct broadcast_handler : typed_handler<Operation, P...> {
  using base = typed_handler<Operation, P...>;
  using state = broadcast<Operation, Fold, P...>;
  using result = part_result<typename state::R>;

  /// For a caller inside the node, who waits.
  static broadcast_base* make(group_part& part, const void* const* refs) {
    if (scheduler::through_wire) [[unlikely]]
      return make_through_wire(part, refs);
    auto* b = new state(part, instance);
    std::memcpy(b->refs, refs, sizeof...(P) * sizeof(void*));
    b->take_level();
    return b;
  }
  [[gnu::cold]] static broadcast_base* make_through_wire(group_part& part, const void* const* refs) {
    void* copy[sizeof...(P) + 1] = {};
    std::memcpy(copy, refs, base::refs_bytes);
    scheduler::delivery d;
    d.method = &instance;
    d.form = wire::payload_form::refs;
    d.payload = reinterpret_cast<std::byte*>(copy);
    base::to_wire(here_pe(), d);
    return make_from(part, d);
  }
  static broadcast_base* make_from(group_part& part, scheduler::delivery& d) {
    auto* b = new state(part, instance);
    std::unique_ptr<broadcast_base> owner(b);
    switch (d.form) {
      case wire::payload_form::refs:
        std::memcpy(b->refs, d.payload, base::refs_bytes);
        b->take_level();
        d.release();
        break;
      case wire::payload_form::owned: {
        auto& payload = *reinterpret_cast<typename base::owned*>(d.payload);
        if constexpr (base::boxed) {
          b->own(std::move(*payload));
        } else {
          b->own(std::move(payload));
        }
        base::drop(&payload);
        d.form = wire::payload_form::refs;  // nothing is left there to drop
        d.release();
        break;
      }
      default: {
        b->by_wire = true;
        orrery::reader r({d.payload, d.payload_bytes});
        b->arguments.emplace(typename state::values{orrery::read<std::remove_cvref_t<P>>(r)...});
        b->refer();
        if constexpr (base::views) {
          b->keep(d);
        } else {
          d.release();
        }
      }
    }
    return owner.release();
  }
  static void send_to_other_node(pe& self, scheduler::channel& c, address to, scheduler::sink& k,
                                 const void* const* refs) {
    (void)refs;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      require_sendable<std::remove_cvref_t<P>...>();
      const auto size = [&] { return orrery::wire_size(*static_cast<const std::remove_cvref_t<P>*>(refs[I])...); };
      const auto write = [&](orrery::writer& w) {
        (orrery::write(w, *static_cast<const std::remove_cvref_t<P>*>(refs[I])), ...);
      };
      const auto stays = [](void*) {};
      send_wire(self, c, to, instance, &k, arguments_ref(size, write, stays, 0, 0));
    }(std::index_sequence_for<P...>{});
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    run_broadcast(self, s, d, {instance, &make_from, state::argument_bytes, state::constructs});
  }
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d) {
    try {
      base::to_wire(self, d);
    } catch (...) {
      d.fail(std::current_exception());
      return;
    }
    run(self, s, d);
  }

  inline static const scheduler::handler instance{Operation::class_name(),
                                                  Operation::name(),
                                                  wire::type_key<broadcast_signature<broadcast_handler>>(),
                                                  &run,
                                                  &base::relocate,
                                                  &base::drop,
                                                  static_cast<std::uint32_t>(sizeof(typename base::owned)),
                                                  base::views,
                                                  &base::describe,
                                                  {},
                                                  &run_through_wire};
};

// --- the caller ----------------------------------------------------------------------------------

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
  const auto sinks = std::make_unique<sink[]>(d.parts.size());
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
  std::unique_ptr<broadcast_base> owner;
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
    const std::unique_ptr<gathering> owned(this);
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
