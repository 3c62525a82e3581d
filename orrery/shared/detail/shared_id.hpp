// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace orrery::detail {

/// Names a shared object for ever: the PE that made it, and a number there. 0: none.
struct shared_id {
  std::uint32_t maker = 0;
  std::uint32_t number = 0;

  [[nodiscard]] explicit operator bool() const noexcept { return number != 0; }
  friend auto operator<=>(const shared_id&, const shared_id&) = default;

  template <class A>
  void serialize(A& a) {
    a & maker & number;
  }
};

}  // namespace orrery::detail

template <>
struct std::hash<orrery::detail::shared_id> {
  [[nodiscard]] std::size_t operator()(const orrery::detail::shared_id& id) const noexcept {
    return std::hash<std::uint64_t>{}(std::uint64_t{id.maker} << 32 | id.number);
  }
};
