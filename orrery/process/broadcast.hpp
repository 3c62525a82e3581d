// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/process/group_part.hpp>

#include <concepts>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// One operation for all members of a group. Life of a broadcast:
//   1. The caller sends one message with the arguments to each part, to that of its own PE directly.
//   2. The part (broadcast_handler) keeps the arguments, or, in a sequential call inside the node, pointers to the caller's. It puts a
//      small message into the mailbox of each of its members, in the order of their ranks.
//   3. The members (member_handler) run the operation in their own time, on the same arguments, and leave the result or the exception.
//   4. When the last one is done the part answers with all results of its PE at once, combined if it is a reduction.
//   5. The caller puts the parts' results in the order of the ranks.
//
// The `Operation` is that of a typed_handler, called with const references; the `Fold` says what becomes of the results.
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
  bool forgives = false;  // members that are gone do not count as failed
  bool ends_part = false;
  std::uint32_t left = 0;  // members that are not done
  std::uint32_t charged = 0;  // to the part's mailbox: so senders are held back while members are behind
  std::uint32_t failed = group_data::none;
  std::exception_ptr error;
  drop_sink dropped;
  scheduler::delivery kept;  // the message, while views look into it

  broadcast_base(group_part& p, const scheduler::handler& h, const scheduler::handler& member) noexcept;
  broadcast_base(const broadcast_base&) = delete;
  broadcast_base& operator=(const broadcast_base&) = delete;
  virtual ~broadcast_base();
  virtual void answer(pe& self) noexcept = 0;  // and end

  /// Sends the messages to the members. Does not park.
  void fan_out(pe& self, std::uint32_t argument_bytes, bool constructs) noexcept;
  void fail(std::size_t index, std::exception_ptr why) noexcept;
  void one_done(pe& self) noexcept;
  /// Takes the messages that have not been executed out of the mailboxes.
  void forget_messages(pe& self) noexcept;
  /// Takes over a delivery whose payload is read in place.
  void keep(scheduler::delivery& d) noexcept;
};

/// Throws deadlock_error if a method of a member of the group waits for the running fiber: it would wait for itself.
void check_not_inside(pe& self, const group_data& d, const scheduler::handler& h);
/// Before a one-way or asynchronous broadcast: parks while the members of this PE are too far behind. False if the part is gone. Throws
/// mailbox_full (a member waits for itself), stopped.
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

template <class Operation, class Fold, class... P>
struct broadcast final : broadcast_base {
  using R = value_t<typename Operation::result>;
  using result_type = part_result<R>;
  using handler = typed_handler<Operation, P...>;  // for its forms of the arguments
  using values = std::tuple<std::remove_cvref_t<P>...>;
  static constexpr bool constructs = requires { &Operation::run_at; };
  static constexpr std::uint32_t argument_bytes = sizeof(values);

  std::optional<typename handler::tuple> owners;  // of what views look at
  std::optional<values> arguments;
  const void* refs[sizeof...(P) + 1] = {};  // to the arguments, here or at the caller
  result_table<R> results;

  broadcast(group_part& p, const scheduler::handler& h)
      : broadcast_base(p, h, member_instance), results(p.members().size()) {
    forgives = ends_part = requires { typename Operation::ends; };
  }

  void refer() noexcept {
    [this]<std::size_t... I>(std::index_sequence<I...>) {
      (void)((refs[I] = std::addressof(std::get<I>(*arguments))), ...);
    }(std::index_sequence_for<P...>{});
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

  void answer(pe& self) noexcept override {
    if (reply == 0) {
      if (error != nullptr) self.report_failed_post(method, error);
      delete this;
      return;
    }
    late l{take_result(), method, reply, source_pe};
    const bool far = remote;
    delete this;
    if (far) {
      answer_remote(self, std::move(l));
      return;
    }
    auto* k = reinterpret_cast<scheduler::sink*>(l.reply);
    new (k->storage) result_type(std::move(l.result));
    if (l.source_pe == self.id()) {
      k->state = scheduler::sink::status::value;
      self.complete(*k);
      return;
    }
    try {
      self.send_control(self.channel_to(l.source_pe), wire::record_kind::reply, 0, 0, l.reply);
    } catch (const orrery::error&) {  // only while shutting down
    }
  }

 private:
  // An answer that has to leave the node.
  struct late {
    result_type result;
    const scheduler::handler* method;
    std::uint64_t reply;
    std::uint32_t source_pe;
  };

  template <class Q>
  static decltype(auto) view_or_move(kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return std::move(k);
    }
  }

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

  // It may have to wait for space on its way: it is sent by a process of its own.
  static void answer_remote(pe& self, late l) noexcept {
    auto* p = new late(std::move(l));
    scheduler::message* m = self.allocate_message(sizeof p);
    std::memcpy(m->payload(), &p, sizeof p);
    m->source_pe = self.id();
    slot& s = fresh_slot(self);
    fill(m->head, self.address_of(s), answer_instance, wire::payload_form::owned, nullptr, 0);
    self.push(s, m);
  }
  static void run_answer(pe& self, slot&, scheduler::delivery& d) {
    if (d.remote) {
      self.fail(d, std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE")));
      return;
    }
    const std::unique_ptr<late> l(pointer_in<late>(d.payload));
    d.form = wire::payload_form::refs;  // nothing is left there to drop
    d.release();
    try {
      detail::answer<result_type>(self, l->reply, l->source_pe, true,
                                  [&]() -> result_type&& { return std::move(l->result); });
    } catch (...) {
      self.reply_error(l->reply, l->source_pe, true, l->method, std::current_exception());
    }
  }
  template <class X>
  static X* pointer_in(const void* payload) noexcept {
    X* p = nullptr;
    std::memcpy(&p, payload, sizeof p);
    return p;
  }
  static void drop_answer(void* payload) { delete pointer_in<late>(payload); }
  static void move_pointer(void* to, void* from) { std::memcpy(to, from, sizeof(void*)); }

  static void run_member(pe& self, slot& s, scheduler::delivery& d) {
    if (d.remote) {
      self.fail(d, std::make_exception_ptr(bad_message(errc::unknown_handler, "a message that does not leave its PE")));
      return;
    }
    message_payload payload;
    std::memcpy(&payload, d.payload, sizeof payload);
    d.release();
    auto& b = static_cast<broadcast&>(*payload.of);
    try {
      b.run(self, s, payload.index, std::index_sequence_for<P...>{});
    } catch (...) {
      b.fail(payload.index, std::current_exception());
    }
    b.one_done(self);
  }
  template <std::size_t... I>
  void run(pe& self, slot& s, std::size_t index, std::index_sequence<I...>) {
    if constexpr (constructs) {
      Operation::run_at(self, s, *part, index, *static_cast<const std::remove_cvref_t<P>*>(refs[I])...);
    } else {
      auto* object = object_in<typename Operation::object>(s);
      if (object == nullptr) [[unlikely]]
        throw_wrong_class(*method, s.cls());
      auto f = [&]() -> decltype(auto) {
        return Operation::run(self, s, object, *static_cast<const std::remove_cvref_t<P>*>(refs[I])...);
      };
      if constexpr (std::is_void_v<R>) {
        f();
      } else {
        results.set(index, f);
      }
    }
  }

  inline static const scheduler::handler member_instance{Operation::class_name(),
                                                         Operation::name(),
                                                         type_name<member_signature<Fold, P...>>(),
                                                         &run_member,
                                                         &move_pointer,
                                                         [](void*) {},
                                                         sizeof(message_payload),
                                                         false};
  inline static const scheduler::handler answer_instance{Operation::class_name(),
                                                         Operation::name(),
                                                         type_name<broadcast_signature<broadcast, Fold, P...>>(),
                                                         &run_answer,
                                                         &move_pointer,
                                                         &drop_answer,
                                                         sizeof(late*),
                                                         false};
};

/// The handler of a broadcast at a part: typed_handler's forms, handed on to the members instead of run.
template <class Operation, class Fold, class... P>
struct broadcast_handler : typed_handler<Operation, P...> {
  using base = typed_handler<Operation, P...>;
  using state = broadcast<Operation, Fold, P...>;
  using result = typename state::result_type;

  static void run(pe& self, slot& s, scheduler::delivery& d) {
    try {
      auto* part = object_in<group_part>(s);
      if (part == nullptr || !part->group()) [[unlikely]]
        throw_wrong_class(instance, s.cls());
      auto b = std::make_unique<state>(*part, instance);
      b->reply = d.reply;
      b->source_pe = d.source_pe;
      b->remote = d.remote;
      switch (d.form) {
        case wire::payload_form::refs:
          std::memcpy(b->refs, d.payload, base::refs_bytes);
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
      const std::uint32_t source = b->source_pe;
      b.release()->fan_out(self, state::argument_bytes, state::constructs);
      if (source != self.id() && s.state != scheduler::process_state::free && self.over_limit(s)) [[unlikely]]
        self.hold_back(s, source);
    } catch (...) {
      self.fail(d, std::current_exception());
    }
  }

  inline static const scheduler::handler instance{Operation::class_name(),
                                                  Operation::name(),
                                                  type_name<broadcast_signature<Fold, P...>>(),
                                                  &run,
                                                  &base::relocate,
                                                  &base::drop,
                                                  static_cast<std::uint32_t>(sizeof(typename base::owned)),
                                                  base::views,
                                                  &base::describe};
};

// --- the caller ----------------------------------------------------------------------------------------------------

template <class R>
using broadcast_result_t =
    std::conditional_t<std::is_void_v<R>, void, std::vector<std::conditional_t<std::is_void_v<R>, char, R>>>;

/// The results of all parts in the order of the ranks. Throws the exception of the lowest rank that has one.
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

/// Calls the operation at all members; returns when all have ended: the parts' results. Arguments are not copied inside the node.
template <class Operation, class Fold, class... P>
auto call_parts(const group_data& d, const std::remove_cvref_t<P>&... args) {
  using handler = broadcast_handler<Operation, Fold, P...>;
  using R = typename handler::state::R;
  pe& self = here_pe();
  self.require_process();
  check_not_inside(self, d, handler::instance);
  const std::size_t n = d.parts.size();
  const auto sinks = std::make_unique<typed_sink<part_result<R>>[]>(n);
  auto send = [&](std::size_t i) {
    const address to = d.parts[i].at;
    typed_sink<part_result<R>>& k = sinks[i];
    try {
      if (to.pe != self.id()) {
        begin_call<handler>(self, to, k, args...);
        return;
      }
      prepare(k, self, to, handler::instance);
      group_part* part = find_part(self, to.slot, to.generation);
      if (part == nullptr) throw_gone(handler::instance, to);
      auto b = std::make_unique<typename handler::state>(*part, handler::instance);
      b->reply = reinterpret_cast<std::uint64_t>(static_cast<scheduler::sink*>(&k));
      b->source_pe = self.id();
      const void* const refs[] = {static_cast<const void*>(std::addressof(args))..., nullptr};
      std::memcpy(b->refs, refs, sizeof...(P) * sizeof(void*));
      b.release()->fan_out(self, 0, handler::state::constructs);
    } catch (...) {  // the others use our arguments: they have to be waited for
      k.error = std::current_exception();
      k.state = scheduler::sink::status::error;
    }
  };
  std::size_t mine = n;  // last, so that the others begin sooner
  for (std::size_t i = 0; i < n; ++i) {
    if (d.parts[i].at.pe == self.id()) {
      mine = i;
    } else {
      send(i);
    }
  }
  if (mine != n) send(mine);
  for (std::size_t i = 0; i < n; ++i) self.wait(sinks[i]);
  std::vector<part_result<R>> results;
  results.reserve(n);
  for (std::size_t i = 0; i < n; ++i) results.push_back(part_result_of<R>(d.parts[i], [&] { return sinks[i].take(); }));
  return results;
}

/// Sends the operation to one part with arguments of its own. `sink` null: one way.
template <class Handler, class... A>
void send_to_part(pe& self, address to, scheduler::sink* sink, const A&... args) {
  static_assert((std::is_copy_constructible_v<A> && ...),
                "orrery: an argument of a broadcast is copied to each PE: it must be copyable");
  if (to.pe != self.id()) {
    send_owned<Handler>(self, to, sink, true, args...);
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
  auto b = std::make_unique<typename Handler::state>(*part, Handler::instance);
  b->reply = reinterpret_cast<std::uint64_t>(sink);
  b->source_pe = self.id();
  b->own(typename Handler::tuple(args...));
  b.release()->fan_out(self, Handler::state::argument_bytes, Handler::state::constructs);
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
auto start_parts(const group_handle& g, Finish finish, const std::remove_cvref_t<P>&... args) {
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
    auto travelling = future_access<result>::make_hold(state);  // given up to the reply, if the message was sent
    try {
      send_to_part<handler>(self, p.at, state.get(), args...);
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

/// As call_parts, but one way. All parts are sent to, whatever happens; then the first exception is thrown.
template <class Operation, class Fold, class... P>
void post_parts(const group_data& d, const std::remove_cvref_t<P>&... args) {
  pe& self = here_pe();
  std::exception_ptr first;
  for (const auto& p : d.parts) {
    try {
      send_to_part<broadcast_handler<Operation, Fold, P...>>(self, p.at, nullptr, args...);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace orrery::detail
