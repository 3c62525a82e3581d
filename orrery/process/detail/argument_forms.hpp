// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/kept.hpp>
#include <orrery/process/detail/through_wire.hpp>
#include <orrery/wire/type_description.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <tuple>
#include <utility>

// How the arguments of a method become a payload, and arguments again, in each of the forms of an
// envelope. This part depends on the types of the parameters alone. Methods with the same ones
// share it, so that the compiler makes it once.
namespace orrery::detail {

/// An argument as it is read. (In an object, so that the braces around all of them give the order.)
template <class P>
struct wire_value {
  std::remove_cvref_t<P> value;
};

/// The arguments of a method with parameters P... in the forms of an envelope.
template <class... P>
struct argument_forms {
  using tuple = std::tuple<kept_t<P>...>;
  static constexpr bool boxed = sizeof(tuple) > 448 || alignof(tuple) > scheduler::payload_alignment;
  using owned = std::conditional_t<boxed, wire::unique_ptr<tuple>, tuple>;
  static constexpr bool views = (orrery::is_view<std::remove_cvref_t<P>> || ...);
  static constexpr std::size_t refs_bytes = sizeof...(P) * sizeof(void*);
  /// Where each argument lies.
  struct places {
    void* at[sizeof...(P) + 1];
  };

  template <class... A>
  static void make_owned(void* at, A&&... arguments) {
    static_assert((std::is_constructible_v<kept_t<P>, A> && ...),
                  "start and post keep each argument until the method runs, and this one cannot be copied: the method "
                  "must take it by value (Box b, not const Box& b)");
    if constexpr (boxed) {
      new (at) owned(wire::make_unique<tuple>(std::forward<A>(arguments)...));
    } else {
      new (at) owned(std::forward<A>(arguments)...);
    }
  }
  [[nodiscard]] static tuple& values(owned& a) noexcept {
    if constexpr (boxed) {
      return *a;
    } else {
      return a;
    }
  }
  [[nodiscard]] static const tuple& values(const owned& a) noexcept {
    if constexpr (boxed) {
      return *a;
    } else {
      return a;
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
    scheduler::message* m = self.messages().allocate(more == 0 ? sizeof(owned) : aligned_payload(sizeof(owned)) + more);
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
      self.messages().release(m);
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
  static void describe_arguments(wire::type_description& types) { (types.describe<std::remove_cvref_t<P>>(), ...); }

  /// The arguments of a sender that waits.
  [[nodiscard]] static places of_refs(const scheduler::delivery& d) noexcept {
    places p;
    if constexpr (refs_bytes != 0) {
      std::memcpy(p.at, d.payload, refs_bytes);
    } else {
      p.at[0] = nullptr;
    }
    return p;
  }
  /// Takes them out of their message, of which nothing is left.
  [[nodiscard]] static owned take(scheduler::delivery& d) {
    auto* const from = reinterpret_cast<owned*>(d.payload);
    owned arguments(std::move(*from));
    from->~owned();
    d.form = wire::payload_form::refs;  // nothing is left there to drop
    d.release();
    return arguments;
  }
  /// The arguments of a message from another node. Views look into it.
  using read_values = std::tuple<wire_value<P>...>;
  [[nodiscard]] static read_values read(const scheduler::delivery& d) {
    orrery::reader r({d.payload, d.payload_bytes});
    return read_values{wire_value<P>{orrery::read<std::remove_cvref_t<P>>(r)}...};
  }
  [[nodiscard]] static places of_read(read_values& v) noexcept {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return places{{const_cast<void*>(static_cast<const void*>(std::addressof(std::get<I>(v).value)))..., nullptr}};
    }(std::index_sequence_for<P...>{});
  }
  /// Arguments that stay in their message until the method has ended.
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

  /// The arguments of a message from this node as they would come from another one. Throws what
  /// prevents it; then nothing has changed.
  [[gnu::cold]] static void to_wire(pe& self, scheduler::delivery& d) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      if (d.form == wire::payload_form::refs) {
        [[maybe_unused]] const places refs = of_refs(d);
        go_on_with(self, d, written(*static_cast<const std::remove_cvref_t<P>*>(refs.at[I])...));
      } else if (d.form == wire::payload_form::owned) {
        [[maybe_unused]] const tuple& all = values(*reinterpret_cast<const owned*>(d.payload));
        go_on_with(self, d, written(wire_form(std::get<I>(all))...));
      }
    }(std::index_sequence_for<P...>{});
  }
  /// As `run`, the handler of a method with result R, for scheduler::send_through_wire.
  template <class R>
  [[gnu::cold]] static void run_through_wire(pe& self, slot& s, scheduler::delivery& d,
                                             void (*run)(pe&, slot&, scheduler::delivery&)) {
    if (!d.remote) {
      try {
        to_wire(self, d);
      } catch (...) {
        d.fail(std::current_exception());
        return;
      }
      if constexpr (comes_later<std::remove_cvref_t<R>>::value) {
        run(self, s, d);  // answer_later writes the result
      } else {
        run_and_write_result<value_t<R>>(self, s, d, run);
      }
    } else {
      run(self, s, d);
    }
  }
};

}  // namespace orrery::detail
