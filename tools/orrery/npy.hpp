// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/domain.hpp>
#include <orrery/storage/element_type.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace orrery::tool {

/// What the header of a file in NumPy's format (.npy, versions 1 to 3) says.
struct npy_header {
  storage::index3 shape{1, 1, 1};  ///< arrays of one or two dimensions have leading sides of 1
  storage::element_type type = storage::element_type::float64;
  bool fortran = false;  ///< the first dimension is the one that is contiguous
  std::uint64_t data_offset = 0;
};

/// The most bytes that `parse_npy` wants to see.
inline constexpr std::size_t longest_npy_header = 64 << 10;

/// Reads it from the file's first bytes. Throws std::invalid_argument that says what is wrong, or which type is not supported and what to do.
[[nodiscard]] npy_header parse_npy(std::span<const std::byte> begin);
/// The header of a file of that shape and type, in C order, version 1.
[[nodiscard]] std::string make_npy(const storage::index3& shape, storage::element_type type);

}  // namespace orrery::tool
