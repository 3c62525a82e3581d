// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: what clients of an ordered list of numbers did, and whether a level of
// consistency allows it.

#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/session_options.hpp>

#include <cstdint>
#include <map>
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
  std::optional<int> found;  ///< the value of find, first, last and after
  std::optional<int> key_found = {};  ///< of first, last and after
  std::uint64_t size = 0;
  std::uint64_t moment = 0;  ///< with `total`: its place in the order of all requests
  bool snapshot = false;     ///< instead of the operation: of all items
  std::map<int, int> seen = {};  ///< by a snapshot
  std::uint64_t version = 0;     ///< see session_options::places
  /// For a snapshot: what it saw of these keys comes behind the first `executed` requests of who
  /// owned them since `version`.
  struct part {
    std::optional<int> from;
    std::optional<int> to;
    std::uint64_t version = 0;
    std::uint64_t executed = 0;
  };
  std::vector<part> parts = {};
  /// A find that was read in the memory of its range: `moment` is the number of requests before it.
  bool one_sided = false;
};

/// Does the event to the contents; false if it would have had another reply.
[[nodiscard]] bool happens(const list_event& e, std::map<int, int>& all);
[[nodiscard]] std::string text_of(const list_event& e);

/// Whether there is an order of the events that explains all replies: each event lies between its
/// beginning and its end, and those of one session are in the order that the level promises. Empty
/// if there is one; else the events that have none.
///
/// Keys are independent of each other in the levels `unordered` and `per_key`, which are checked
/// key by key; `sequential`, and what has a snapshot in it, is checked as a whole. At most 64
/// events are checked together; throws std::length_error.
[[nodiscard]] std::string find_violation(const std::vector<list_event>& history, consistency level);

/// The same for `total`, where replies say the order: it is replayed, so histories may have any
/// length. Empty, or what is wrong first.
[[nodiscard]] std::string find_total_violation(std::vector<list_event> history);

}  // namespace orrery::testing
