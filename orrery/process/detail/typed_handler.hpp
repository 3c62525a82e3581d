// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/class_info.hpp>
#include <orrery/process/detail/argument_forms.hpp>
#include <orrery/process/detail/call_errors.hpp>
#include <orrery/wire/type_description.hpp>

#include <string_view>
#include <utility>

// The handler of a method. An `Operation` says what to run:
//   using result = R; static auto run(pe&, slot&, object, arguments...); names;
//   see method_operation.
namespace orrery::detail {

/// The class of an operation on a method that is not overloaded; empty: others may have other
/// arguments.
template <class Operation>
[[nodiscard]] std::string_view object_of_exact() noexcept {
  if constexpr (requires { requires Operation::exact; }) {
    return wire::type_key<typename Operation::object>();
  } else {
    return {};
  }
}

/// An operation of a message, one way, that nobody misses where its process or node is gone.
template <class Operation>
struct told : Operation {
  static constexpr bool nobody_misses = true;
};

/// The handler of one operation with parameters P...: method, signature and forms.
template <class Operation, class... P>
struct typed_handler : argument_forms<P...> {
  using forms = argument_forms<P...>;
  using forms::views;
  using typename forms::owned;
  using object_type = typename Operation::object;

  static void describe(wire::type_description& types) {
    types.describe<value_t<typename Operation::result>>();
    forms::describe_arguments(types);
  }

  static void run(pe& self, slot& s, scheduler::delivery& d) {
    const std::uint64_t reply = d.reply;
    const std::uint32_t source = d.source_pe;
    const bool remote = d.remote;
    const scheduler::handler* const method = d.method;
    try {
      typename Operation::object* object = nullptr;
      if constexpr (!std::is_void_v<typename Operation::object>) {
        object = object_in<typename Operation::object>(s);
        if (object == nullptr) [[unlikely]]
          throw_wrong_class(*method, s.cls());
      }
      switch (d.form) {
        case wire::payload_form::refs:
          run_refs(self, s, object, d);
          return;
        case wire::payload_form::owned:
          run_moved(self, s, object, d);
          return;
        default:
          run_wire(self, s, object, d);
          return;
      }
    } catch (...) {
      if (d.form == wire::payload_form::owned) {
        forms::drop(d.payload);
        d.form = wire::payload_form::refs;
      }
      d.release();
      if (reply != 0) {
        scheduler::reply_error(self, reply, source, remote, method, std::current_exception());
      } else {
        self.failures().report_post(method, std::current_exception());
      }
    }
  }

  static constexpr auto nobody_misses = requires { Operation::nobody_misses; } ? &scheduler::nobody_misses : nullptr;

  /// As run, for scheduler::send_through_wire.
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d) {
    forms::template run_through_wire<typename Operation::result>(self, s, d, &run);
  }
  static constexpr void (*through_wire)(pe&, slot&, scheduler::delivery&) = (stays_as_it_is<P> || ...)
                                                                                ? nullptr
                                                                                : &run_through_wire;

  inline static const scheduler::handler instance{Operation::class_name(),
                                                  Operation::name(),
                                                  wire::type_key<typed_handler>(),
                                                  &run,
                                                  &forms::relocate,
                                                  &forms::drop,
                                                  static_cast<std::uint32_t>(sizeof(owned)),
                                                  views,
                                                  &describe,
                                                  object_of_exact<Operation>(),
                                                  through_wire,
                                                  nobody_misses};

 private:
  // With arguments that lie there.
  static void run_with(pe& self, slot& s, object_type* object, std::uint64_t reply, std::uint32_t source, bool remote,
                       [[maybe_unused]] const typename forms::places& p) {
    answer<typename Operation::result>(self, reply, source, remote, [&]() -> decltype(auto) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
        return Operation::run(self, s, object, static_cast<P&&>(*static_cast<std::remove_reference_t<P>*>(p.at[I]))...);
      }(std::index_sequence_for<P...>{});
    });
  }
  static void run_refs(pe& self, slot& s, object_type* object, scheduler::delivery& d) {
    const auto p = forms::of_refs(d);
    d.release();
    run_with(self, s, object, d.reply, d.source_pe, false, p);
  }
  static void run_moved(pe& self, slot& s, object_type* object, scheduler::delivery& d) {
    const std::uint64_t reply = d.reply;
    const std::uint32_t source = d.source_pe;
    if constexpr (forms::has_behind) {
      if (d.heap != nullptr) {  // else others read the ring while the method is parked
        const typename forms::read_in_place arguments(d);
        run_owned(self, s, object, reply, source, arguments.all);
        return;
      }
    }
    owned arguments = forms::take(d);
    run_owned(self, s, object, reply, source, arguments);
  }
  // Posts come this way: without a detour over places.
  static void run_owned(pe& self, slot& s, object_type* object, std::uint64_t reply, std::uint32_t source,
                        owned& arguments) {
    answer<typename Operation::result>(self, reply, source, false, [&]() -> decltype(auto) {
      return [&]<std::size_t... I>(std::index_sequence<I...>) -> decltype(auto) {
        return Operation::run(self, s, object, as_parameter<P>(std::get<I>(forms::values(arguments)))...);
      }(std::index_sequence_for<P...>{});
    });
  }
  static void run_wire(pe& self, slot& s, object_type* object, scheduler::delivery& d) {
    auto arguments = forms::read(d);
    if constexpr (views) {
      d.leave_ring();  // the method may park, and then others read the ring
    } else {
      d.release();
    }
    run_with(self, s, object, d.reply, d.source_pe, d.remote, forms::of_read(arguments));
    d.release();
  }
};

}  // namespace orrery::detail
