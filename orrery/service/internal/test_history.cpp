// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/internal/test_history.hpp>

#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace orrery::testing {
namespace {

using service::list_operation;
using contents = std::map<int, int>;

std::string text_of(const list_event& e) {
  static constexpr const char* names[] = {"find",   "insert",           "erase",
                                          "update", "insert_or_update", "compare_and_update"};
  return fmt::format("session {} request {}: {}({}, {}, {}) [{}, {}] -> {}{}\n", e.session, e.number,
                     names[static_cast<int>(e.operation)], e.key, e.value, e.expected, e.begun, e.ended, e.done,
                     e.found ? fmt::format(" {}", *e.found) : "");
}

// Does the event to the contents; false if it would have had another reply.
bool happen(const list_event& e, contents& all) {
  const auto at = all.find(e.key);
  const bool there = at != all.end();
  switch (e.operation) {
    case list_operation::find:
      return e.done == there && (!there || e.found == at->second);
    case list_operation::insert:
      if (!there) all.emplace(e.key, e.value);
      return e.done == !there;
    case list_operation::erase:
      if (there) all.erase(at);
      return e.done == there;
    case list_operation::update:
      if (there) at->second = e.value;
      return e.done == there;
    case list_operation::insert_or_update:
      all.insert_or_assign(e.key, e.value);
      return e.done == !there;
    default: {
      const bool same = there && at->second == e.expected;
      if (same) at->second = e.value;
      return e.done == same;
    }
  }
}

// Tries all orders; a set of events that have happened and what the list is then are looked at once.
class search {
 public:
  search(const std::vector<list_event>& events, consistency level) : events_(events), before_(events.size()) {
    if (events.size() > 64) throw std::length_error("a history of more than 64 events");
    for (std::size_t i = 0; i < events.size(); ++i)
      for (std::size_t j = 0; j < events.size(); ++j) {
        const list_event& a = events[j];
        const list_event& b = events[i];
        const bool ordered = a.session == b.session && a.number < b.number &&
                             (level == consistency::sequential || (level == consistency::per_key && a.key == b.key));
        if (a.ended < b.begun || ordered) before_[i] |= std::uint64_t{1} << j;
      }
    all_ = events.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << events.size()) - 1;
  }
  bool explains() { return go_on(0, {}); }

 private:
  bool go_on(std::uint64_t happened, const contents& now) {
    if (happened == all_) return true;
    if (!seen_.emplace(happened, now).second) return false;
    for (std::size_t i = 0; i < events_.size(); ++i) {
      const std::uint64_t bit = std::uint64_t{1} << i;
      if ((happened & bit) != 0 || (before_[i] & ~happened) != 0) continue;
      contents next = now;
      if (happen(events_[i], next) && go_on(happened | bit, next)) return true;
    }
    return false;
  }

  const std::vector<list_event>& events_;
  std::vector<std::uint64_t> before_;
  std::uint64_t all_ = 0;
  std::set<std::pair<std::uint64_t, contents>> seen_;
};

std::string check(const std::vector<list_event>& events, consistency level) {
  if (search(events, level).explains()) return {};
  std::string text;
  for (const list_event& e : events) text += text_of(e);
  return text;
}

}  // namespace

std::string find_violation(const std::vector<list_event>& history, consistency level) {
  if (level == consistency::sequential) return check(history, level);
  std::map<int, std::vector<list_event>> of_key;
  for (const list_event& e : history) of_key[e.key].push_back(e);
  std::string text;
  for (const auto& [key, events] : of_key) text += check(events, level);
  return text;
}

}  // namespace orrery::testing
