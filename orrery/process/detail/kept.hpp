// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/scheduler/message.hpp>
#include <orrery/wire/kinds.hpp>

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// The form in which an argument is kept while its message waits: views own what they look at.
namespace orrery::detail {

/// The elements of a span that is kept behind the arguments of its message, in the same memory.
template <class E>
struct behind_arguments {
  std::span<const E> elements;
};

/// A span, kept with its elements: in memory of its own, or behind the arguments of its message,
/// which then must not end before it. When it is moved it takes them along into memory of its own:
/// who does so leaves the message.
template <class E>
class kept_span {
 public:
  kept_span(std::span<const E> s) : own_(s.begin(), s.end()), all_(own_) {}  // NOLINT(google-explicit-constructor)
  kept_span(behind_arguments<E> b) noexcept : all_(b.elements) {}  // NOLINT(google-explicit-constructor)
  kept_span(kept_span&& o) : own_(o.leave()), all_(own_) {}  // NOLINT(performance-noexcept-move-constructor)
  kept_span& operator=(kept_span&&) = delete;
  ~kept_span() = default;

  operator std::span<const E>() const noexcept { return all_; }  // NOLINT(google-explicit-constructor)

 private:
  std::vector<E> leave() {
    if (own_.empty()) return {all_.begin(), all_.end()};
    return std::move(own_);
  }

  std::vector<E> own_;
  std::span<const E> all_;
};

template <class P>
struct kept {
  using type = std::remove_cvref_t<P>;
};
template <class P>
  requires std::is_same_v<std::remove_cvref_t<P>, std::string_view>
struct kept<P> {
  using type = std::string;
};
template <class P>
struct span_element {};
template <class E>
struct span_element<std::span<const E>> {
  using type = E;
};
template <class P>
concept span_parameter = requires { typename span_element<std::remove_cvref_t<P>>::type; };
template <span_parameter P>
struct kept<P> {
  using type = kept_span<typename span_element<std::remove_cvref_t<P>>::type>;
};
template <class P>
using kept_t = typename kept<P>::type;

/// A kept argument as its method takes it.
template <class P>
[[nodiscard]] decltype(auto) as_parameter(kept_t<P>& k) {
  if constexpr (orrery::is_view<std::remove_cvref_t<P>>) {
    return std::remove_cvref_t<P>(k);
  } else {
    return static_cast<P&&>(k);
  }
}

/// The written form of an argument that is kept.
template <class K>
[[nodiscard]] const K& wire_form(const K& k) noexcept {
  return k;
}
template <class E>
[[nodiscard]] std::span<const E> wire_form(const kept_span<E>& k) noexcept {
  return k;
}

// --- behind the arguments ------------------------------------------------------------------------

/// True if elements of such a parameter can lie behind the arguments of a message.
template <class P>
inline constexpr bool fits_behind = false;
template <span_parameter P>
inline constexpr bool fits_behind<P> =
    std::is_trivially_copyable_v<typename span_element<std::remove_cvref_t<P>>::type> &&
    alignof(typename span_element<std::remove_cvref_t<P>>::type) <= scheduler::payload_alignment;

[[nodiscard]] constexpr std::size_t aligned_payload(std::size_t size) noexcept {
  return (size + scheduler::payload_alignment - 1) / scheduler::payload_alignment * scheduler::payload_alignment;
}

/// The bytes that an argument for P needs there.
template <class P, class A>
[[nodiscard]] std::size_t bytes_behind([[maybe_unused]] const A& argument) noexcept {
  if constexpr (fits_behind<P>) {
    return aligned_payload(std::remove_cvref_t<P>(argument).size_bytes());
  } else {
    return 0;
  }
}

/// Copies the elements of an argument for P to `room`, which moves on, and says what the argument
/// is to be made of.
template <class P, class A>
[[nodiscard]] decltype(auto) put_behind([[maybe_unused]] std::byte*& room, A&& argument) noexcept {
  if constexpr (fits_behind<P>) {
    using element = typename span_element<std::remove_cvref_t<P>>::type;
    const std::remove_cvref_t<P> from(argument);
    std::byte* const at = room;
    if (!from.empty()) std::memcpy(at, from.data(), from.size_bytes());
    room += aligned_payload(from.size_bytes());
    return behind_arguments<element>{{reinterpret_cast<const element*>(at), from.size()}};
  } else {
    return std::forward<A>(argument);
  }
}

}  // namespace orrery::detail
