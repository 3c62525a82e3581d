// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/class_info.hpp>
#include <orrery/process/detail/call_errors.hpp>
#include <orrery/process/detail/kept.hpp>
#include <orrery/process/detail/through_wire.hpp>
#include <orrery/wire/type_description.hpp>

#include <cstring>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>

// How the arguments of a method become a payload, and how a handler makes them arguments again, in
// each of the forms of an envelope. An `Operation` says what to run:
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

/// The handler of one operation with parameters P...: method, signature and forms.
template <class Operation, class... P>
struct typed_handler {
  using tuple = std::tuple<kept_t<P>...>;
  static constexpr bool boxed = sizeof(tuple) > 448 || alignof(tuple) > scheduler::payload_alignment;
  using owned = std::conditional_t<boxed, std::unique_ptr<tuple>, tuple>;
  static constexpr bool views = (orrery::is_view<std::remove_cvref_t<P>> || ...);
  static constexpr std::size_t refs_bytes = sizeof...(P) * sizeof(void*);

  template <class... A>
  static void make_owned(void* at, A&&... arguments) {
    if constexpr (boxed) {
      new (at) owned(std::make_unique<tuple>(std::forward<A>(arguments)...));
    } else {
      new (at) owned(std::forward<A>(arguments)...);
    }
  }

  /// The elements of spans can lie behind the arguments of a message to a process of the same PE.
  static constexpr bool has_behind = !boxed && (fits_behind<P> || ...);
  template <class... A>
  static std::size_t behind(const A&... arguments) noexcept {
    std::size_t sum = 0;
    if constexpr (has_behind) sum = (std::size_t{0} + ... + bytes_behind<P>(arguments));
    return aligned_payload(sizeof(owned)) + sum <= scheduler::message_pool::largest ? sum : 0;
  }
  /// A message to a process of this PE with its arguments; all but them is to be filled in.
  template <class... A>
  static scheduler::message* make_message(pe& self, A&&... arguments) {
    const std::size_t more = behind(arguments...);
    scheduler::message* m = self.allocate_message(more == 0 ? sizeof(owned) : aligned_payload(sizeof(owned)) + more);
    try {
      if constexpr (has_behind) {
        if (more != 0) {
          std::byte* room = m->payload() + aligned_payload(sizeof(owned));
          new (m->payload()) owned(put_behind<P>(room, std::forward<A>(arguments))...);
          return m;
        }
      }
      make_owned(m->payload(), std::forward<A>(arguments)...);
    } catch (...) {
      self.release_message(m);
      throw;
    }
    return m;
  }

  static void relocate(void* to, void* from) {
    auto* old = static_cast<owned*>(from);
    new (to) owned(std::move(*old));
    old->~owned();
  }
  static void drop(void* payload) { static_cast<owned*>(payload)->~owned(); }
  static void describe(wire::type_description& types) {
    types.describe<value_t<typename Operation::result>>();
    (types.describe<std::remove_cvref_t<P>>(), ...);
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
          run_refs(self, s, object, d, std::index_sequence_for<P...>{});
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
        drop(d.payload);
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

  // The arguments of a message from this node as they would come from another one. Throws what
  // prevents it; then nothing has changed.
  [[gnu::cold]] static void to_wire(pe& self, scheduler::delivery& d) {
    if (d.form == wire::payload_form::refs) {
      void* refs[sizeof...(P) + 1];
      std::memcpy(refs, d.payload, refs_bytes);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        go_on_with(self, d, written(*static_cast<const std::remove_cvref_t<P>*>(refs[I])...));
      }(std::index_sequence_for<P...>{});
    } else if (d.form == wire::payload_form::owned) {
      const auto& arguments = *reinterpret_cast<const owned*>(d.payload);
      const tuple* values = nullptr;
      if constexpr (boxed) {
        values = arguments.get();
      } else {
        values = &arguments;
      }
      go_on_with(self, d, std::apply([](const auto&... v) { return written(wire_form(v)...); }, *values));
    }
  }
  /// As run, for scheduler::send_through_wire.
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d) {
    if (!d.remote) {
      try {
        to_wire(self, d);
      } catch (...) {
        d.fail(std::current_exception());
        return;
      }
      if constexpr (comes_later<std::remove_cvref_t<typename Operation::result>>::value) {
        run(self, s, d);  // answer_later writes the result
      } else {
        run_and_write_result<value_t<typename Operation::result>>(self, s, d, &run);
      }
    } else {
      run(self, s, d);
    }
  }
  static constexpr void (*through_wire)(pe&, slot&, scheduler::delivery&) = (stays_as_it_is<P> || ...)
                                                                                ? nullptr
                                                                                : &run_through_wire;

  inline static const scheduler::handler instance{Operation::class_name(),
                                                  Operation::name(),
                                                  wire::type_key<typed_handler>(),
                                                  &run,
                                                  &relocate,
                                                  &drop,
                                                  static_cast<std::uint32_t>(sizeof(owned)),
                                                  views,
                                                  &describe,
                                                  object_of_exact<Operation>(),
                                                  through_wire};

 private:
  // Arguments that stay in their message until the method has ended.
  struct read_in_place {
    explicit read_in_place(scheduler::delivery& d) noexcept : of(d), all(*reinterpret_cast<owned*>(d.payload)) {
      d.form = wire::payload_form::refs;  // nobody else is to drop them
    }
    read_in_place(const read_in_place&) = delete;
    read_in_place& operator=(const read_in_place&) = delete;
    ~read_in_place() {
      all.~owned();
      of.release();
    }
    scheduler::delivery& of;
    owned& all;
  };
  template <class Q>
  struct wire_value {  // read in the order of the braces
    std::remove_cvref_t<Q> value;
  };
  template <std::size_t... I>
  static void run_refs(pe& self, slot& s, typename Operation::object* object, scheduler::delivery& d,
                       std::index_sequence<I...>) {
    [[maybe_unused]] void* refs[sizeof...(P) + 1];
    std::memcpy(refs, d.payload, refs_bytes);
    d.release();
    answer<typename Operation::result>(self, d.reply, d.source_pe, false, [&]() -> decltype(auto) {
      return Operation::run(self, s, object, static_cast<P&&>(*static_cast<std::remove_reference_t<P>*>(refs[I]))...);
    });
  }
  static void run_moved(pe& self, slot& s, typename Operation::object* object, scheduler::delivery& d) {
    const std::uint64_t reply = d.reply;
    const std::uint32_t source = d.source_pe;
    if constexpr (has_behind) {
      if (d.heap != nullptr) {  // else others read the ring while the method is parked
        const read_in_place arguments(d);
        run_owned(self, s, object, reply, source, arguments.all, std::index_sequence_for<P...>{});
        return;
      }
    }
    owned arguments(std::move(*reinterpret_cast<owned*>(d.payload)));
    reinterpret_cast<owned*>(d.payload)->~owned();
    d.form = wire::payload_form::refs;  // nothing is left there to drop
    d.release();
    run_owned(self, s, object, reply, source, arguments, std::index_sequence_for<P...>{});
  }
  static void run_wire(pe& self, slot& s, typename Operation::object* object, scheduler::delivery& d) {
    orrery::reader r({d.payload, d.payload_bytes});
    std::tuple<wire_value<P>...> arguments{wire_value<P>{orrery::read<std::remove_cvref_t<P>>(r)}...};
    if constexpr (views) {
      d.leave_ring();  // the method may park, and then others read the ring
    } else {
      d.release();
    }
    std::apply(
        [&](auto&... a) {
          answer<typename Operation::result>(self, d.reply, d.source_pe, d.remote, [&]() -> decltype(auto) {
            return Operation::run(self, s, object, static_cast<P&&>(a.value)...);
          });
        },
        arguments);
    d.release();
  }
  template <std::size_t... I>
  static void run_owned(pe& self, slot& s, typename Operation::object* object, std::uint64_t reply,
                        std::uint32_t source, owned& arguments, std::index_sequence<I...>) {
    answer<typename Operation::result>(self, reply, source, false, [&]() -> decltype(auto) {
      if constexpr (boxed) {
        return Operation::run(self, s, object, as_parameter<P>(std::get<I>(*arguments))...);
      } else {
        return Operation::run(self, s, object, as_parameter<P>(std::get<I>(arguments))...);
      }
    });
  }
};

}  // namespace orrery::detail
