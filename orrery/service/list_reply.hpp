// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/reply.hpp>

#include <cstdint>
#include <optional>

namespace orrery {

/// The reply to a request of a session of a list. `done`: found, inserted, erased, updated; of
/// insert_or_update: inserted.
template <class Key, class Value>
struct list_reply : service_reply {
  std::optional<Key> key;  ///< of first, last and after, if there is such an item
  std::optional<Value> value;  ///< of find, first, last and after
  std::uint64_t size = 0;  ///< of size
  std::uint64_t moment = 0;  ///< with `consistency::total`: its place in the order of all requests
  /// With session_options::places: requests for one key took effect in the order of (version,
  /// moment).
  std::uint64_t version = 0;
};

}  // namespace orrery
