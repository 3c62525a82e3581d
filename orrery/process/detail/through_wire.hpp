// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/detail/result_sink.hpp>

#include <span>
#include <vector>

// For scheduler::send_through_wire: arguments and results of messages of this node take their wire
// form all the same, as between nodes.
namespace orrery::detail {

/// For the class of an argument whose wire form has no meaning inside a node.
template <class P>
inline constexpr bool stays_as_it_is = requires { typename std::remove_cvref_t<P>::stays_as_it_is; };

/// Ends the message of the delivery, which goes on with another one that has its arguments in their
/// wire form. Throws std::bad_alloc; then nothing has changed.
[[gnu::cold]] void go_on_with(pe& self, scheduler::delivery& d, std::span<const std::byte> arguments);

template <class... V>
[[nodiscard, gnu::cold]] std::vector<std::byte> written(const V&... values) {
  std::vector<std::byte> b(orrery::wire_size(values...));
  orrery::writer w(b);
  (orrery::write(w, values), ...);
  return b;
}
/// The value as another node would receive it. Throws usage_error, bad_message, what its
/// serialize() throws.
template <class V>
[[nodiscard, gnu::cold]] V written_and_read(const V& value) {
  const std::vector<std::byte> b = written(value);
  orrery::reader r(b);
  V read = orrery::read<V>(r);
  r.finish();
  return read;
}

/// Runs a message whose arguments are in their wire form, and lets its result take that form before
/// it is given to the caller.
template <class R>
[[gnu::cold]] void run_and_write_result(pe& self, slot& s, scheduler::delivery& d,
                                        void (*run)(pe&, slot&, scheduler::delivery&)) {
  scheduler::delivery inner = d;  // d stays as it is for who looks at what runs: deadlock.cpp
  d.heap = nullptr;
  d.form = wire::payload_form::refs;
  typed_sink<R> k(stays_here{});
  k.home = self.id();
  if (d.reply != 0) {
    inner.reply = reinterpret_cast<std::uint64_t>(&k);
    inner.source_pe = self.id();
  }
  run(self, s, inner);
  if (d.reply == 0) return;
  try {
    if constexpr (std::is_void_v<R>) {
      k.take();
      scheduler::reply_in_place(self, d.reply, d.source_pe);
    } else {
      answer<R>(self, d.reply, d.source_pe, false, [&] { return written_and_read(k.take()); });
    }
  } catch (...) {
    scheduler::reply_error(self, d.reply, d.source_pe, false, d.method, std::current_exception());
  }
}

}  // namespace orrery::detail
