// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/broadcast_results.hpp>
#include <orrery/process/detail/later_answer.hpp>
#include <orrery/process/future.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

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

template <class Fold, class... P>
struct broadcast_signature;
template <class Fold, class... P>
struct member_signature;
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
    wire::unique_ptr<broadcast_base> owner(b);
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
  static void send_to_other_node(pe& self, scheduler::outbound& c, address to, scheduler::sink& k,
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

}  // namespace orrery::detail
