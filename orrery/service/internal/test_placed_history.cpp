// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/internal/test_placed_history.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace orrery::testing {
namespace {

/// Events, and moments of the clock, some before others.
class order_graph {
 public:
  order_graph(const std::vector<list_event>& events) : events_(events), behind_(3 * events.size()) {
    // and the number of the end: even ones are beginnings
    std::vector<std::pair<std::uint64_t, std::size_t>> times;
    for (std::size_t i = 0; i < events.size(); ++i) {
      times.emplace_back(events[i].begun, 2 * i);
      times.emplace_back(events[i].ended, 2 * i + 1);
    }
    std::ranges::sort(times);
    for (std::size_t t = 0; t < times.size(); ++t) {
      const std::size_t moment = events.size() + t;
      if (t != 0) add(moment - 1, moment);
      const std::size_t e = times[t].second / 2;
      if (times[t].second % 2 == 0) {
        add(moment, e);
      } else {
        add(e, moment);
      }
    }
  }
  void add(std::size_t before, std::size_t after) { behind_[before].push_back(after); }

  /// The events that lie on a circle, or behind one.
  std::string find_circle() const {
    std::vector<std::size_t> open(behind_.size());
    for (const auto& b : behind_)
      for (const std::size_t n : b) ++open[n];
    std::vector<std::size_t> next;
    for (std::size_t n = 0; n < open.size(); ++n)
      if (open[n] == 0) next.push_back(n);
    while (!next.empty()) {
      const std::size_t n = next.back();
      next.pop_back();
      for (const std::size_t b : behind_[n])
        if (--open[b] == 0) next.push_back(b);
    }
    std::string text;
    for (std::size_t i = 0; i < events_.size(); ++i)
      if (open[i] != 0) text += text_of(events_[i]);
    return text.empty() ? text : "these contradict each other:\n" + text;
  }

 private:
  const std::vector<list_event>& events_;
  std::vector<std::vector<std::size_t>> behind_;
};

struct placed {
  std::uint64_t version;
  std::uint64_t place;  // twice; what only reads has none of its own, and is before what is as far
  std::size_t event;
};

const list_event::part* part_with(const list_event& snapshot, int key) {
  for (const list_event::part& p : snapshot.parts)
    if (!(p.from && key < *p.from) && !(p.to && *p.to <= key)) return &p;
  return nullptr;
}

std::string check_key(const std::vector<list_event>& events, int key, std::vector<placed> all, consistency level,
                      order_graph& graph) {
  std::ranges::sort(all, {}, [](const placed& p) { return std::tuple(p.version, p.place, p.event); });
  std::map<int, int> now;
  std::map<std::uint32_t, std::uint64_t> last;
  const placed* before = nullptr;  // the last request
  std::vector<std::size_t> readers;  // since then; they have no order among themselves
  for (const placed& p : all) {
    const list_event& e = events[p.event];
    if (before != nullptr) graph.add(before->event, p.event);
    if (e.snapshot) {
      readers.push_back(p.event);
      const auto seen = e.seen.find(key);
      const auto there = now.find(key);
      const bool same = seen == e.seen.end() ? there == now.end() : there != now.end() && *there == *seen;
      if (!same) return fmt::format("of key {} it is not what was there: ", key) + text_of(e);
      continue;
    }
    if (e.one_sided) {
      readers.push_back(p.event);
      if (!happens(e, now)) return fmt::format("read behind ({}, {}), it is wrong: ", e.version, e.moment) + text_of(e);
      continue;
    }
    if (before != nullptr && before->version == p.version && before->place == p.place)
      return "two requests have one place: " + text_of(events[before->event]) + text_of(e);
    for (const std::size_t s : std::exchange(readers, {})) graph.add(s, p.event);
    before = &p;
    const auto [at, first] = last.emplace(e.session, e.number);
    if (level != consistency::unordered && !first && at->second > e.number)
      return "a session's requests for a key have changed places: " + text_of(e);
    at->second = e.number;
    if (!happens(e, now)) return fmt::format("at ({}, {}) the reply is wrong: ", e.version, e.moment) + text_of(e);
  }
  return {};
}

// Those of one session, one after the other; before a snapshot all is answered.
void add_sessions(const std::vector<list_event>& events, consistency level, order_graph& graph) {
  std::map<std::uint32_t, std::vector<std::size_t>> sessions;
  for (std::size_t i = 0; i < events.size(); ++i) sessions[events[i].session].push_back(i);
  for (auto& [id, of] : sessions) {
    std::ranges::sort(of, {}, [&](std::size_t i) { return std::pair(events[i].number, events[i].snapshot); });
    std::vector<std::size_t> since;  // the last snapshot
    for (std::size_t k = 0; k < of.size(); ++k) {
      if (level == consistency::sequential && k != 0) graph.add(of[k - 1], of[k]);
      if (events[of[k]].snapshot)
        for (const std::size_t e : std::exchange(since, {})) graph.add(e, of[k]);
      since.push_back(of[k]);
    }
  }
}

}  // namespace

std::string find_placed_violation(const std::vector<list_event>& events, consistency level) {
  order_graph graph(events);
  std::map<int, std::vector<placed>> keys;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const list_event& e = events[i];
    if (!e.snapshot) keys[e.key].push_back({e.version, 2 * e.moment + (e.one_sided ? 1U : 2U), i});
    for (const auto& [k, v] : e.seen) keys[k];
  }
  for (auto& [key, all] : keys) {
    for (std::size_t i = 0; i < events.size(); ++i) {
      if (!events[i].snapshot) continue;
      const list_event::part* const p = part_with(events[i], key);
      if (p == nullptr) return fmt::format("no part of it has key {}: ", key) + text_of(events[i]);
      all.push_back({p->version, 2 * p->executed + 1, i});
    }
    if (std::string wrong = check_key(events, key, std::move(all), level, graph); !wrong.empty()) return wrong;
  }
  add_sessions(events, level, graph);
  return graph.find_circle();
}

}  // namespace orrery::testing
