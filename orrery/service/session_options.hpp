// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace orrery {

/// In which order the outstanding requests of one session take effect. In all levels each request
/// takes effect at one moment between its beginning and its reply, so with a window of 1 they are
/// the same.
enum class consistency : std::uint8_t {
  unordered,   ///< in any order
  per_key,     ///< those for one key in the order in which they were made
  sequential,  ///< all in the order in which they were made
  /// For a walking_list: as Alam, Kamal and Wagner have it, which is less than `sequential` with
  /// windows above 1.
  sequential_of_the_paper,
  /// All of all sessions of this level in one order: that in which they reach the head of the list.
  total,
};

/// In which order a session gives replies to its client.
enum class reply_order : std::uint8_t {
  any,  ///< as they come
  as_requested  ///< in the order of the requests
};

namespace tuning {
/// For the window of a session, the size of ranges, and what lists that walk are made with: it is
/// found while the service runs.
inline constexpr std::uint32_t automatic = 0xffff'ffffU;
}  // namespace tuning

/// How a client uses a service.
struct session_options {
  /// Requests that may be outstanding; one more parks the client.
  std::uint32_t window = tuning::automatic;
  consistency order = consistency::per_key;
  reply_order replies = reply_order::any;
  /// Replies of lists say when they took effect (`version`, `moment`), for those who check that.
  bool places = false;
  /// find() may read the memory of a list of another OS process of this machine, without a message.
  bool one_sided = true;
  /// Replies that the client may leave in the session; one more is a usage_error.
  std::uint32_t unfetched = 1U << 20U;
};

}  // namespace orrery
