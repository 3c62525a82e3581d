// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>

namespace orrery {

/// The common part of the replies to requests of all sessions.
struct service_reply {
  std::uint64_t request = 0;  ///< the number that the session gave it
  bool done = false;          ///< the reply of each service says what that means
  std::exception_ptr error;   ///< why the request failed: process_gone, node_lost

  /// Throws the error, if there is one.
  void check() const {
    if (error != nullptr) [[unlikely]]
      std::rethrow_exception(error);
  }
};

}  // namespace orrery
