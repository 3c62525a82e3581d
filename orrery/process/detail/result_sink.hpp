// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/check.hpp>
#include <orrery/process/detail/here_pe.hpp>
#include <orrery/process/detail/outgoing.hpp>
#include <orrery/wire/serialize.hpp>

#include <exception>
#include <new>
#include <type_traits>
#include <utility>

// Results: how they travel, where a caller waits for one, and how a method's result gets there.
namespace orrery::detail {

template <class R>
struct travelling {
  using type = R;
};
template <class T>
struct travelling<future<T>> {
  using type = T;
};
/// The value type of a result: what travels.
template <class R>
using value_t = typename travelling<std::remove_cvref_t<R>>::type;

/// Such a result travels inside the record that says it is there.
template <class R>
inline constexpr bool travels_small =
    std::is_trivially_copyable_v<value_t<R>> && sizeof(value_t<R>) <= wire::small_result;

/// For results that do not come from another node, and need no wire form.
struct stays_here {};

/// A sink with room for the result.
template <class R>
struct typed_sink : scheduler::sink {
  union {
    value_t<R> value;
  };
  explicit typed_sink(stays_here) noexcept {
    storage = &value;
    if constexpr (travels_small<R>) small = sizeof(value);
  }
  typed_sink() noexcept : typed_sink(stays_here{}) {
    decode = [](scheduler::sink& s, const std::byte* data, std::size_t bytes) {
      orrery::reader r({data, bytes});
      auto& self = static_cast<typed_sink&>(s);
      new (&self.value) value_t<R>(orrery::read<value_t<R>>(r));
    };
  }
  typed_sink(const typed_sink&) = delete;
  typed_sink& operator=(const typed_sink&) = delete;
  ~typed_sink() {
    if (state == status::value) value.~value_t<R>();
  }
  value_t<R> take() {
    if (state == status::error) std::rethrow_exception(error);
    return std::move(value);
  }
};
template <>
struct typed_sink<void> : scheduler::sink {
  typed_sink() noexcept = default;
  explicit typed_sink(stays_here) noexcept {}
  void take() {
    if (state == status::error) std::rethrow_exception(error);
  }
};

/// Sends the result of a method that has given a future, when it is there; in future.hpp.
template <class T>
void answer_later(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, future<T> f);

/// Runs `f` and sends its result to where the delivery wanted it.
template <class R, class F>
void answer(pe& self, std::uint64_t reply, std::uint32_t source_pe, bool remote, F&& f) {
  if constexpr (comes_later<std::remove_cvref_t<R>>::value) {
    answer_later(self, reply, source_pe, remote, f());
  } else if constexpr (std::is_void_v<R>) {
    f();
    if (reply == 0) return;
    if (!remote) {
      scheduler::reply_in_place(self, reply, source_pe);
    } else {
      outgoing out(self, self.outbound_to(source_pe), 0);
      out.send_reply(reply);
    }
  } else {
    if (reply == 0) {
      (void)f();
    } else if (!remote) {
      if constexpr (travels_small<R>) {
        if (source_pe != self.id()) {
          alignas(wire::small_result) std::byte result[wire::small_result] = {};
          new (result) value_t<R>(f());
          scheduler::reply_small(self, reply, source_pe, result);
          return;
        }
      }
      new (reinterpret_cast<scheduler::sink*>(reply)->storage) value_t<R>(f());
      scheduler::reply_in_place(self, reply, source_pe);
    } else {
      decltype(auto) value = f();
      outgoing out(self, self.outbound_to(source_pe), orrery::wire_size(value));
      orrery::writer w(out.payload());
      orrery::write(w, value);
      out.send_reply(reply);
    }
  }
}

}  // namespace orrery::detail
