// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/detail/shared_id.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace orrery {

/// The writes of a release scope that have to travel: to elements on other machines, or, where
/// owners hold elements as objects, on other PEs. Those to memory of this machine are made at once.
struct release_outcome {
  std::uint64_t writes = 0;  ///< all that the scope made
  std::uint64_t written = 0;  ///< of these, those that their owners have
  bool left_by_exception = false;  ///< else the scope came to its end
};

/// How a release scope gathers.
struct release_options {
  /// Bytes of writes to one owner, and their places, that are gathered before they are sent; at
  /// least one write is. All buffers of a scope together have 4 MiB at most.
  std::size_t buffer_bytes = 32 << 10;
  /// Told when the scope has ended, also by an exception; must outlive it. Without it a line on
  /// stderr says what an exception has left behind.
  release_outcome* outcome = nullptr;
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
