// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// How shared data is loaded from files and stored in them.
struct file_options {
  /// Bytes of memory for buffers, of all PEs together.
  std::uint64_t memory = 64 << 20;
};

/// The outcome of a load or a store.
struct file_traffic {
  std::uint64_t bytes = 0;  ///< of elements
  /// The most that buffers had, of all PEs together; never above file_options::memory.
  std::uint64_t memory = 0;
};

}  // namespace orrery
