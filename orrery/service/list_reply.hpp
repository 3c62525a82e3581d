// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

namespace orrery {

/// The reply to a request of a session.
template <class Key, class Value>
struct list_reply {
  std::uint64_t request = 0;  ///< the number that the session gave it
  bool done = false;  ///< found, inserted, erased, updated; of insert_or_update: inserted
  std::optional<Key> key;  ///< of first, last and after, if there is such an item
  std::optional<Value> value;  ///< of find, first, last and after
  std::uint64_t size = 0;  ///< of size
  std::uint64_t moment = 0;  ///< with `consistency::total`: its place in the order of all requests
  std::uint64_t version =
      0;  ///< with session_options::places: requests for one key took effect in the order of (version, moment)
  std::exception_ptr error;  ///< why the request failed: node_lost

  /// Throws the error, if there is one.
  void check() const {
    if (error != nullptr) [[unlikely]]
      std::rethrow_exception(error);
  }
};

}  // namespace orrery
