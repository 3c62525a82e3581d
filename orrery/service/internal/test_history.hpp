// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: what clients of an ordered list of numbers did, and whether a level of consistency allows it.

#include <orrery/service/list_messages.hpp>
#include <orrery/service/options.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace orrery::testing {

/// One request and its reply. Times are of one clock, and different.
struct list_event {
  std::uint32_t session = 0;
  std::uint64_t number = 0;  ///< in its session
  service::list_operation operation = service::list_operation::find;
  int key = 0;
  int value = 0;
  int expected = 0;
  std::uint64_t begun = 0;
  std::uint64_t ended = 0;
  bool done = false;
  std::optional<int> found;  ///< the value of find
};

/// Whether there is an order of the events that explains all replies: each event lies between its beginning and
/// its end, and those of one session are in the order that the level promises. Empty if there is one; else the
/// events that have none.
///
/// Keys are independent of each other in the levels `unordered` and `per_key`, which are checked key by key;
/// `sequential` is checked as a whole. At most 64 events are checked together; throws std::length_error.
[[nodiscard]] std::string find_violation(const std::vector<list_event>& history, consistency level);

}  // namespace orrery::testing
