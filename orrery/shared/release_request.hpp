// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/shared_id.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace orrery {

/// How a release scope gathers.
struct release_options {
  /// Bytes of writes to one owner, and their places, that are gathered before they are sent; at
  /// least one write is. All buffers of a scope together have 4 MiB at most.
  std::size_t buffer_bytes = 32 << 10;
};

namespace detail {

struct release_request {
  shared_id id;
  std::uint64_t row;
  std::uint64_t rows;
  std::uint64_t column;
  std::uint64_t columns;
  std::source_location where;
  bool checked = true;  ///< false: another scope stands for it
  release_options options = {};
};

}  // namespace detail

}  // namespace orrery
