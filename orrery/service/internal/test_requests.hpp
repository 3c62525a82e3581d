// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: the clients of histories.
#include <orrery/service/internal/test_history.hpp>

#include <cstdint>

#include <gtest/gtest.h>

namespace orrery::testing {

/// A friend of sessions.
struct session_parts {
  /// find(), with all that its reply says.
  template <class Session>
  static auto find(Session& s, int key) {
    return s.find_now(key);
  }
};

/// Makes the event's request; returns its number. `Session`: of an ordered or a walking list.
template <class Session>
std::uint64_t make_request(Session& s, const list_event& e) {
  using service::list_operation;
  switch (e.operation) {
    case list_operation::find:
      return s.start_find(e.key);
    case list_operation::insert:
      return s.start_insert(e.key, e.value);
    case list_operation::erase:
      return s.start_erase(e.key);
    case list_operation::update:
      return s.start_update(e.key, e.value);
    case list_operation::insert_or_update:
      return s.start_insert_or_update(e.key, e.value);
    case list_operation::after:
      return s.start_after(e.key);
    case list_operation::first:
      return s.start_first();
    case list_operation::last:
      return s.start_last();
    case list_operation::size:
      return s.start_size();
    default:
      return s.start_compare_and_update(e.key, e.expected, e.value);
  }
}

/// The items of a stream, two at a time, with the places of its ranges. `ticks`: the clock.
template <class Event, class Session, class Ticks>
Event take_snapshot(Session& s, std::uint32_t session, std::uint64_t number, Ticks& ticks) {
  Event e;
  e.session = session;
  e.number = number;
  e.snapshot = true;
  e.begun = ++ticks;
  auto all = s.stream({}, {}, 2);
  for (const auto& r : all.ranges()) e.parts.push_back({r.keys.from, r.keys.to, r.keys.version, r.executed});
  for (auto part = all.next(); !part.empty(); part = all.next()) {
    EXPECT_LE(part.size(), 2U);
    for (const auto& [k, v] : part) EXPECT_TRUE(e.seen.emplace(k, v).second);
  }
  e.ended = ++ticks;
  return e;
}

/// Enters the reply into the event of its request.
template <class Event, class Reply>
void note_reply(Event& e, const Reply& r) {
  e.done = r.done;
  e.found = r.value;
  e.key_found = r.key;
  e.size = r.size;
  e.moment = r.moment;
  e.version = r.version;
}

}  // namespace orrery::testing
