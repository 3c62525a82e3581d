// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/internal/test_history.hpp>
#include <orrery/service/internal/test_linearize.hpp>

#include <algorithm>
#include <iterator>
#include <map>

#include <fmt/format.h>

namespace orrery::testing {

using service::list_operation;
using contents = std::map<int, int>;

std::string text_of(const list_event& e) {
  static constexpr const char* names[] = {
      "find", "insert", "erase", "update", "insert_or_update", "compare_and_update", "after", "first", "last", "size"};
  if (e.snapshot) {
    std::string all = fmt::format("session {} request {}: snapshot [{}, {}] ->", e.session, e.number, e.begun, e.ended);
    for (const auto& [k, v] : e.seen) all += fmt::format(" {}:{}", k, v);
    return all + "\n";
  }
  return fmt::format("session {} request {}: {}({}, {}, {}) [{}, {}] -> {}{}\n", e.session, e.number,
                     names[static_cast<int>(e.operation)], e.key, e.value, e.expected, e.begun, e.ended, e.done,
                     e.found ? fmt::format(" {}", *e.found) : "");
}

bool happens(const list_event& e, contents& all) {
  if (e.snapshot) return e.seen == all;
  const auto is_item = [&](contents::const_iterator i) {
    if (i == all.end()) return !e.done && !e.key_found;
    return e.done && e.key_found == i->first && e.found == i->second;
  };
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
    case list_operation::after:
      return is_item(all.upper_bound(e.key));
    case list_operation::first:
      return is_item(all.begin());
    case list_operation::last:
      return is_item(all.empty() ? all.end() : std::prev(all.end()));
    case list_operation::size:
      return e.size == all.size();
    default: {
      const bool same = there && at->second == e.expected;
      if (same) at->second = e.value;
      return e.done == same;
    }
  }
}

namespace {

bool is_before(const list_event& a, const list_event& b, consistency level) {
  return a.session == b.session && a.number < b.number &&
         (level == consistency::sequential || a.snapshot || b.snapshot ||
          (level == consistency::per_key && a.key == b.key));
}

std::string check(const std::vector<list_event>& events, consistency level) {
  const auto before = [level](const list_event& a, const list_event& b) { return is_before(a, b, level); };
  if (is_linearizable(events, contents{}, before, happens)) return {};
  std::string text;
  for (const list_event& e : events) text += text_of(e);
  return text;
}

}  // namespace

std::string find_violation(const std::vector<list_event>& history, consistency level) {
  const auto whole = [](const list_event& e) { return e.snapshot; };
  if (level == consistency::sequential || std::ranges::any_of(history, whole)) return check(history, level);
  std::map<int, std::vector<list_event>> of_key;
  for (const list_event& e : history) of_key[e.key].push_back(e);
  std::string text;
  for (const auto& [key, events] : of_key) text += check(events, level);
  return text;
}

std::string find_total_violation(std::vector<list_event> history) {
  std::ranges::sort(history, {}, &list_event::moment);
  contents all;
  std::uint64_t begun = 0;  // the latest beginning of those before
  std::map<std::uint32_t, std::uint64_t> last;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const list_event& e = history[i];
    if (i != 0 && history[i - 1].moment == e.moment) return "two requests have one moment: " + text_of(e);
    if (e.ended < begun) return "an earlier moment for what was begun later than this had ended: " + text_of(e);
    begun = std::max(begun, e.begun);
    const auto [at, first] = last.emplace(e.session, e.number);
    if (!first && at->second > e.number) return "a session's requests have changed places: " + text_of(e);
    at->second = e.number;
    if (!happens(e, all)) return fmt::format("at moment {} the reply is wrong: ", e.moment) + text_of(e);
  }
  return {};
}

}  // namespace orrery::testing
