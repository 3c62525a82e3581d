// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/address.hpp>

#include <cstdint>

namespace orrery {

template <class T>
class remote;

/// Where a process is to live. A value; it is resolved when it is used.
struct placement {
  /// How `index` is to be read; only `pe`, `node` and `machine` have one.
  enum class kind : std::uint8_t { pe, node, machine, here, anywhere, nowhere };
  kind what = kind::here;
  std::uint32_t index = 0;

  /// The PE meant, seen from the calling process. Throws usage_error if there is no such place,
  /// node_lost if it has gone.
  [[nodiscard]] std::uint32_t resolve() const;
};

/// The PE with this number: 0 to world_pes() - 1, or one of reachable_pes() in a named world whose
/// programs come and go.
[[nodiscard]] constexpr placement pe(std::uint32_t i) noexcept { return {placement::kind::pe, i}; }
/// Some PE of the node with this number; successive uses take its PEs in turn.
[[nodiscard]] constexpr placement node(std::uint32_t i) noexcept { return {placement::kind::node, i}; }
/// Some PE of the machine with this number; successive uses take its PEs in turn.
[[nodiscard]] constexpr placement machine(std::uint32_t i) noexcept { return {placement::kind::machine, i}; }
/// The caller's own PE.
[[nodiscard]] constexpr placement here() noexcept { return {}; }
/// All PEs of the world in turn.
[[nodiscard]] constexpr placement anywhere() noexcept { return {placement::kind::anywhere, 0}; }
/// The PE on which that process lives. Using it throws usage_error if the pointer is null.
template <class T>
[[nodiscard]] constexpr placement near(const remote<T>& p) noexcept {
  return {p.address() ? placement::kind::pe : placement::kind::nowhere, p.address().pe};
}

}  // namespace orrery
