// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/element_message.hpp>
#include <orrery/array/detail/load_scope.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <tuple>

namespace orrery::detail {

/// A method of all elements as a message: on its way, and in their mailboxes.
template <class T, class Index, class M, class R, class... P>
struct broadcast_message {
  using routed = element_message<T, Index, element_operation<T, Index, M, R>, P...>;
  using tuple = std::tuple<kept_t<P>...>;
  static_assert((std::is_copy_constructible_v<kept_t<P>> && ...),
                "orrery: each element needs arguments of its own: those of a broadcast must be copyable");
  struct record final : broadcast_record {
    tuple args;
    explicit record(tuple&& t) : args(std::move(t)) {}
    void append_arguments(bytes& b) const override {
      std::apply([&](const auto&... v) { pack_after(b, wire_form(v)...); }, args);
    }
  };

  static wire::unique_ptr<broadcast_record> decode(std::span<const std::byte> from) {
    orrery::reader r(from);
    auto b = wire::make_unique<record>(routed::forms::read_kept(r));
    b->member = &member;
    b->method = &instance;
    return b;
  }
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) {
    try {
      if (array_core* part = array_directory::of(self).find(e.slot))
        part->receive_broadcast(instance, wire_payload(d, e, size));
      d.release();
    } catch (...) {
      d.fail(std::current_exception());
    }
    return nullptr;
  }
  [[nodiscard]] static record* record_in(const void* payload) noexcept {
    broadcast_record* r = nullptr;
    std::memcpy(&r, payload, sizeof r);
    return static_cast<record*>(r);
  }
  static void run(pe& self, slot& s, scheduler::delivery& d) {
    record* r = record_in(d.payload);
    d.form = wire::payload_form::refs;
    d.release();
    try {
      if (s.has_object)
        [&]<std::size_t... I>(std::index_sequence<I...>) {
          auto& object = static_cast<typename M::object&>(element_in<T, Index>(s));
          const load_scope measured(cell<T, Index>::of(s.where_apart()));
          if constexpr (requires { M::call(object, view<P>(std::get<I>(std::as_const(r->args)))...); }) {
            M::call(object, view<P>(std::get<I>(std::as_const(r->args)))...);
          } else {
            M::call(object, kept_t<P>(std::get<I>(std::as_const(r->args)))...);
          }
        }(std::index_sequence_for<P...>{});
    } catch (...) {
      self.failures().report_post(&member, std::current_exception());
    }
    r->part->executed(r);
  }
  template <class Q>
  static decltype(auto) view(const kept_t<Q>& k) {
    if constexpr (orrery::is_view<std::remove_cvref_t<Q>>) {
      return std::remove_cvref_t<Q>(k);
    } else {
      return (k);
    }
  }
  // The element has ended: it need not hear of it.
  static void forward(array_core& core, cell_base&, scheduler::message* m) {
    broadcast_record* r = record_in(m->payload());
    core.self().messages().release(m);
    core.executed(r);
  }
  static void move_pointer(void* to, void* from) { std::memcpy(to, from, sizeof(void*)); }
  static void drop(void* payload) {
    record* r = record_in(payload);
    r->part->executed(r);
  }

  struct tree_handler : array_handler {
    tree_handler() noexcept
        : array_handler(type_name<T>(), M::name, wire::type_key<broadcast_message>(), &control_handler::never_run,
                        &control_handler::never_relocate, &control_handler::never_drop, 0, false,
                        &broadcast_message::route, nullptr, &routed::describe) {
      decode = &broadcast_message::decode;
      lost = &lost_broadcast;
    }
  };
  struct member_handler : array_handler {
    member_handler() noexcept
        : array_handler(type_name<T>(), M::name, wire::type_key<void(broadcast_message)>(), &broadcast_message::run,
                        &broadcast_message::move_pointer, &broadcast_message::drop, sizeof(void*), false, &refuse_route,
                        &broadcast_message::forward) {
      is_member = true;
    }
  };
  inline static const tree_handler instance;
  inline static const member_handler member;
};

}  // namespace orrery::detail
