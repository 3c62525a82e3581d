// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/serialize.hpp>

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

// Indices address the elements of an array (Lawlor and Kale 2001, "Indexing"): integers, index<2>
// to index<6>, strings, bit_path, and any class that is serializable, has == and std::hash.

namespace orrery {

/// The index of an N-dimensional array: `grid[x, y]`, `index<2>{x, y}`. Any values, negative ones
/// too.
template <std::size_t N>
  requires(N >= 1 && N <= 6)
using index = std::array<std::int32_t, N>;

/// A string of bits, such as the directions taken from the root of a quadtree to a node of it. It
/// may have any length; an empty one is the root.
///
///     auto child = node.child(0b10, 2);      // two bits for each level
///     child.parent(2) == node;
class bit_path {
 public:
  bit_path() = default;
  /// As many bits as the text has characters, each '0' or '1'. Throws usage_error for others.
  explicit bit_path(std::string_view bits);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  /// Bit i; i < size().
  [[nodiscard]] bool operator[](std::size_t i) const noexcept { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  /// The path with one more bit.
  void push_back(bool bit);
  /// This path and `bits` more, the lowest of `value` last. `bits` at most 64.
  [[nodiscard]] bit_path child(std::uint64_t value, std::size_t bits) const;
  /// This path without its last `bits`. Throws usage_error if it has fewer.
  [[nodiscard]] bit_path parent(std::size_t bits) const;
  /// The last `bits` of it as a number. Throws usage_error if it has fewer.
  [[nodiscard]] std::uint64_t last(std::size_t bits) const;
  /// The bits from the root on, as "0110".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const bit_path&, const bit_path&) = default;
  friend auto operator<=>(const bit_path&, const bit_path&) = default;

  [[nodiscard]] std::uint64_t hash() const noexcept;
  template <class A>
  void serialize(A& a) {
    a & size_ & words_;
    if constexpr (A::is_loading::value) check();
  }

 private:
  void check() const;  // throws bad_message unless words_ fits size_

  std::uint32_t size_ = 0;
  std::vector<std::uint64_t> words_;  // bits beyond size_ are zero
};

namespace detail {

/// Spreads the bits of a number over all of its bits (the finalizer of SplitMix64: Steele, Lea and
/// Flood 2014), so that strided indices have well distributed homes.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <class T>
inline constexpr bool is_coordinates = false;
template <std::integral I, std::size_t N>
inline constexpr bool is_coordinates<std::array<I, N>> = true;

[[nodiscard]] std::uint64_t hash_of_text(std::string_view text) noexcept;
[[nodiscard]] std::string text_of_coordinates(std::span<const std::int64_t> at);
/// At most some hundred characters of it, and how long it is then.
[[nodiscard]] std::string shortened(std::string text);
[[nodiscard]] std::string text_of_string(std::string_view index);
[[nodiscard]] std::string text_of_hash(std::uint64_t hash);

/// The hash of an index: the same on all nodes of a world.
template <class Index>
struct index_hash {
  using is_avalanching = void;  // Boost.Unordered need not mix it again
  [[nodiscard]] std::size_t operator()(const Index& i) const noexcept {
    if constexpr (std::is_integral_v<Index> || std::is_enum_v<Index>) {
      return mix(static_cast<std::uint64_t>(i) + 0x9e3779b97f4a7c15ULL);
    } else if constexpr (is_coordinates<Index>) {
      // in 64 bits
      constexpr std::size_t at_once = sizeof(typename Index::value_type) <= 4 ? 2 : 1;
      std::uint64_t h = 0;
      for (std::size_t d = 0; d < i.size(); d += at_once) {
        auto x = static_cast<std::uint64_t>(i[d]);
        if (at_once == 2 && d + 1 < i.size())
          x = static_cast<std::uint32_t>(i[d]) | std::uint64_t{static_cast<std::uint32_t>(i[d + 1])} << 32;
        h = mix(h + 0x9e3779b97f4a7c15ULL + x);
      }
      return h;
    } else if constexpr (std::is_convertible_v<const Index&, std::string_view>) {
      return hash_of_text(i);
    } else if constexpr (requires {
                           { i.hash() } -> std::convertible_to<std::uint64_t>;
                         }) {
      return mix(i.hash());
    } else {
      return mix(std::hash<Index>{}(i));
    }
  }
};

/// Whether two indices are the same. Comparing a few coordinates is less work than the call of
/// memcmp that == of an array is.
template <class Index>
struct index_equal {
  [[nodiscard]] bool operator()(const Index& a, const Index& b) const noexcept(noexcept(a == b)) {
    if constexpr (is_coordinates<Index>) {
      bool same = true;
      for (std::size_t d = 0; d < a.size(); ++d) same &= a[d] == b[d];
      return same;
    } else {
      return a == b;
    }
  }
};

template <class Index>
concept hashable_index = std::is_integral_v<Index> || std::is_enum_v<Index> || is_coordinates<Index> ||
                         std::is_convertible_v<const Index&, std::string_view> || requires(const Index& i) {
                           { i.hash() } -> std::convertible_to<std::uint64_t>;
                         } || requires(const Index& i) { std::hash<Index>{}(i); };

}  // namespace detail

/// A type that can be the index of an array: it travels, can be compared, copied and
/// default-constructed, and has a hash that depends on its value only.
template <class T>
concept array_index = std::equality_comparable<T> && std::copyable<T> && std::default_initializable<T> &&
                      serializable<T> && detail::hashable_index<T>;

/// How an index is written in errors: "7", "[3, 4]", "\"word\"", "0110"; by its hash if it is of a
/// class without to_string().
template <array_index Index>
[[nodiscard]] std::string index_text(const Index& i) {
  if constexpr (std::is_integral_v<Index>) {
    return std::to_string(i);
  } else if constexpr (std::is_enum_v<Index>) {
    return std::to_string(static_cast<std::underlying_type_t<Index>>(i));
  } else if constexpr (detail::is_coordinates<Index>) {
    std::array<std::int64_t, std::tuple_size_v<Index>> at{};
    for (std::size_t d = 0; d < at.size(); ++d) at[d] = static_cast<std::int64_t>(i[d]);
    return detail::text_of_coordinates(at);
  } else if constexpr (std::is_convertible_v<const Index&, std::string_view>) {
    return detail::text_of_string(i);
  } else if constexpr (requires {
                         { i.to_string() } -> std::convertible_to<std::string>;
                       }) {
    return detail::shortened(i.to_string());
  } else {
    return detail::text_of_hash(detail::index_hash<Index>{}(i));
  }
}

}  // namespace orrery

template <>
struct std::hash<orrery::bit_path> {
  [[nodiscard]] std::size_t operator()(const orrery::bit_path& p) const noexcept { return p.hash(); }
};
