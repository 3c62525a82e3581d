// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/internal/test_history.hpp>
#include <orrery/service/internal/test_linearize.hpp>

#include <map>

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

bool is_before(const list_event& a, const list_event& b, consistency level) {
  return a.session == b.session && a.number < b.number &&
         (level == consistency::sequential || (level == consistency::per_key && a.key == b.key));
}

std::string check(const std::vector<list_event>& events, consistency level) {
  const auto before = [level](const list_event& a, const list_event& b) { return is_before(a, b, level); };
  if (is_linearizable(events, contents{}, before, happen)) return {};
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
