// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/address.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

// For tools that look at a world from outside; see transport/shm/board.hpp.
namespace orrery::detail {

/// The names that a node shows.
struct name_on_board {
  std::string name;
  address process;
  std::uint32_t cls = 0;  ///< index in `classes`
};
struct names_on_board {
  std::uint64_t total = 0;  ///< also those that did not fit
  std::vector<std::string> classes;
  std::vector<name_on_board> names;
};
/// The content of a node's board, checked. Throws bad_message.
[[nodiscard]] names_on_board decode_names(std::span<const std::byte> text);
[[nodiscard]] std::vector<std::byte> encode_names(const names_on_board& names);

}  // namespace orrery::detail
