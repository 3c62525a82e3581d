// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: whether a history has an order that explains its replies (Wing and Gong 1993,
// with Lowe's memory of what was tried).

#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

namespace orrery::testing {

/// The end of an event that may never have happened, as nobody has heard of its end.
inline constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

/// Tries all orders of the events in which each lies between its `begun` and its `ended`, and
/// `before(a, b)` puts a before b. A set of events that have happened and the state that they led
/// to are looked at once.
///
/// `happen(event, state)` changes the state, and says whether the event would have had this reply.
/// Events that ended `never` may be left out. At most 64 events; throws std::length_error.
template <class Event, class State, class Before, class Happen>
class linearization {
 public:
  linearization(const std::vector<Event>& events, Before before, Happen happen)
      : events_(events), before_(events.size()), happen_(happen) {
    if (events.size() > 64) throw std::length_error("a history of more than 64 events");
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (events[i].ended != never) needed_ |= bit(i);
      for (std::size_t j = 0; j < events.size(); ++j)
        if (events[j].ended < events[i].begun || before(events[j], events[i])) before_[i] |= bit(j);
    }
  }
  bool explains(const State& begin) { return go_on(0, begin); }

 private:
  static std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << i; }
  bool go_on(std::uint64_t happened, const State& now) {
    if ((needed_ & ~happened) == 0) return true;
    if (!seen_.emplace(happened, now).second) return false;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      // A request that may be left out holds nothing up.
      if ((happened & bit(i)) != 0 || (before_[i] & needed_ & ~happened) != 0) continue;
      State next = now;
      if (happen_(events_[i], next) && go_on(happened | bit(i), next)) return true;
    }
    return false;
  }

  const std::vector<Event>& events_;
  std::vector<std::uint64_t> before_;
  std::uint64_t needed_ = 0;
  Happen happen_;
  std::set<std::pair<std::uint64_t, State>> seen_;
};

/// See linearization.
template <class Event, class State, class Before, class Happen>
[[nodiscard]] bool is_linearizable(const std::vector<Event>& events, const State& begin, Before before, Happen happen) {
  return linearization<Event, State, Before, Happen>(events, before, happen).explains(begin);
}

}  // namespace orrery::testing
