// SPDX-License-Identifier: Apache-2.0
#pragma once

// For tests only: what lists of all kinds must bear, in worlds of all kinds. Each function says
// what is wrong; empty: nothing.

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::testing {

template <class Key, class Value>
void make_list(ordered_list<Key, Value>& l) {
  l = ordered_list<Key, Value>::make({.range_items = 16});
}
template <class Key, class Value>
void make_list(walking_list<Key, Value>& l) {
  l = walking_list<Key, Value>::make({.processes = 100, .granularity = 4, .forwards = 3, .spares = spare_order::ring});
}

enum class key_order : std::uint8_t { ascending, descending, zipf, uniform };
constexpr key_order key_orders[] = {key_order::ascending, key_order::descending, key_order::zipf, key_order::uniform};

/// n numbers of 0 ... n - 1. With zipf, number i comes with a frequency of 1 / (i + 1); neighbours
/// in frequency are not neighbours in value.
inline std::vector<int> keys_in(key_order o, int n) {
  std::vector<int> all;
  std::vector<double> weights;
  for (int i = 0; i < n; ++i) weights.push_back(o == key_order::zipf ? 1.0 / (i + 1) : 1.0);
  std::mt19937 random(11);
  std::discrete_distribution<int> draw(weights.begin(), weights.end());
  for (int i = 0; i < n; ++i) {
    switch (o) {
      case key_order::ascending:
        all.push_back(i);
        break;
      case key_order::descending:
        all.push_back(n - 1 - i);
        break;
      default:
        all.push_back(draw(random) * 7919 % n);
    }
  }
  return all;
}
/// As a key: strings have a long common prefix, and some are prefixes of others.
template <class Key>
Key key_of(int i) {
  if constexpr (std::is_same_v<Key, std::string>) {
    return std::string(40, 'p') + "/" + std::to_string(i);
  } else {
    return i;
  }
}

/// Insertions, look-ups and erasures of keys in some order, many at a time, beside a std::map.
template <class List>
std::string compare_many(key_order o, int n, consistency level) {
  using key = std::remove_const_t<typename List::session::item::first_type>;
  List l;
  make_list(l);
  std::map<key, int> m;
  std::string wrong;
  {
    auto s = l.open({.window = 32, .order = level, .replies = reply_order::as_requested});
    std::vector<bool> expected;
    const auto take = [&](const auto& r) {
      r.check();
      if (r.done != expected[r.request] && wrong.empty()) wrong = fmt::format("request {}: {}", r.request, r.done);
    };
    const auto take_all = [&] {
      while (const auto r = s.receive()) take(*r);
    };
    const std::vector<int> keys = keys_in(o, n);
    for (const int k : keys) {
      expected.push_back(m.emplace(key_of<key>(k), k).second);
      s.start_insert(key_of<key>(k), k);
      while (const auto r = s.try_receive()) take(*r);
    }
    for (const int k : keys) {
      expected.push_back(true);
      s.start_find(key_of<key>(k));
      while (const auto r = s.try_receive()) take(*r);
    }
    take_all();
    if (s.size() != m.size()) wrong += " its size is wrong";
    expected.push_back(true);  // that one had a number, too
    if (s.snapshot() != std::vector<std::pair<key, int>>(m.begin(), m.end())) wrong += " its items are others";
    for (std::size_t i = 0; i < keys.size(); i += 2) {
      expected.push_back(m.erase(key_of<key>(keys[i])) == 1);
      s.start_erase(key_of<key>(keys[i]));
    }
    take_all();
    if (s.snapshot() != std::vector<std::pair<key, int>>(m.begin(), m.end())) wrong += " other items are left";
  }
  l.end();
  return wrong;
}

/// A value that grows from one byte to 1 MiB, among others; ranges and processes split meanwhile.
template <class List>
std::string grow_values() {
  List l;
  make_list(l);
  std::string wrong;
  {
    auto s = l.open({.window = 8});
    for (std::size_t size = 1; size <= std::size_t{1} << 20U; size *= 8)
      for (int k = 0; k < 4; ++k) {
        (void)s.insert_or_update(10 * k, std::string(size, static_cast<char>('a' + k)));
        for (int i = 1; i < 4; ++i) (void)s.insert(10 * k + i, "small");
      }
    (void)s.insert_or_update(0, std::string(std::size_t{1} << 20U, 'a'));
    const auto all = s.snapshot(0, 11);
    if (all.size() != 5 || all[0].second != std::string(std::size_t{1} << 20U, 'a')) wrong = "the snapshot is wrong";
    if (s.find(30)->back() != 'd' || s.find(31) != "small") wrong += " a value is wrong";
    for (int k = 0; k < 4; ++k) {
      if (!s.update(10 * k, "tiny") || s.find(10 * k) != "tiny") wrong += " it does not become small again";
    }
    if (s.size() != 16) wrong += " its size is wrong";
  }
  l.end();
  return wrong;
}

/// All there is to do with one item, and with none.
template <class List>
std::string hold_one_item() {
  List l;
  make_list(l);
  int wrong = 0;
  {
    auto s = l.open();
    for (int k = -3; k < 3; ++k) {
      const std::pair<int, std::string> item(k, "one");
      const auto expect = [&](bool good) { wrong += good ? 0 : 1; };
      expect(s.size() == 0 && !s.first() && !s.last() && !s.after(k) && !s.find(k) && s.snapshot().empty());
      expect(s.scan().next().empty() && s.stream().next().empty() && !s.erase(k) && !s.update(k, ""));
      expect(s.insert(k, "one") && !s.insert(k, "two"));
      expect(s.size() == 1 && s.first() == item && s.last() == item && s.after(k - 1) == item && !s.after(k));
      expect(s.snapshot() == std::vector{item} && s.snapshot(k, k + 1).size() == 1 && s.snapshot(k + 1).empty());
      expect(s.scan().next() == std::vector{item} && s.stream().next() == std::vector{item});
      expect(!s.compare_and_update(k, "two", "three") && s.compare_and_update(k, "one", "two") && s.erase(k));
    }
  }
  l.end();
  return wrong == 0 ? "" : fmt::format("{} answers are wrong", wrong);
}

// Erases all that is there from the middle of the list on, then inserts it again.
template <class List>
int erase_and_insert(const List& l, int n) {
  auto s = l.open({.window = 32});
  for (int round = 0; round < 4; ++round) {
    for (int k = n / 2; k < n; ++k) {
      if (round % 2 == 0) {
        s.start_erase(k);
      } else {
        s.start_insert(k, k);
      }
      while (s.try_receive()) {
      }
    }
    while (s.receive()) {
    }
  }
  return 0;
}

/// Scans and streams under erasures: keys ascend, and none is missing that nobody touches.
template <class List>
std::string erase_under_ranges(int n) {
  List l;
  make_list(l);
  std::string wrong;
  {
    auto s = l.open({.window = 32});
    for (int k = 0; k < n; ++k) s.start_insert(k, k);
    while (s.receive()) {
    }
    auto writer = start_call<&erase_and_insert<List>>(pe(world_pes() - 1), l, n);
    const auto read = [&](auto range) {
      int next = 0;
      int last = -1;
      for (auto part = range.next(); !part.empty(); part = range.next())
        for (const auto& [k, v] : part) {
          if (k <= std::exchange(last, k)) wrong = "keys do not ascend";
          if (k == next) ++next;
        }
      if (next < n / 2) wrong = fmt::format("key {} is missing", next);
    };
    do {
      read(s.scan({}, {}, 8));
      read(s.stream({}, {}, 8));
    } while (!writer.ready() && wrong.empty());
    writer.get();
    if (s.size() != static_cast<std::uint64_t>(n)) wrong += " its size is wrong";
  }
  l.end();
  return wrong;
}

/// One of many requests of all kinds, to few keys.
template <class Session>
void start_one_of_many(Session& s, int i) {
  const int k = i * 7 % 40;
  if (i % 3 == 0) {
    s.start_insert(k, i);
  } else if (i % 3 == 1) {
    s.start_erase(k);
  } else {
    s.start_find(k);
  }
}
/// Makes requests, and takes no reply.
template <class List>
int never_fetch(const List& l, consistency order, std::uint32_t window) {
  auto s = l.open({.window = window, .order = order});
  for (int i = 0; i < 600; ++i) start_one_of_many(s, i);
  return 0;
}
/// Clients of all levels that never fetch a reply, with windows at their extremes; others are
/// answered.
template <class List>
std::string serve_beside_clients_that_never_fetch() {
  List l;
  make_list(l);
  std::vector<future<int>> ends;
  std::uint32_t i = 0;
  for (const consistency order :
       {consistency::total, consistency::sequential, consistency::per_key, consistency::unordered})
    for (const std::uint32_t window : {1U, 1U << 20U})
      ends.push_back(start_call<&never_fetch<List>>(pe(i++ % world_pes()), l, order, window));
  int answered = 0;
  {
    auto s = l.open({.window = 1});
    for (int k = 0; k < 100; ++k) answered += s.find(k % 40).value_or(0) >= 0 ? 1 : 0;
  }
  for (auto& e : ends) e.get();
  l.end();
  return answered == 100 ? "" : fmt::format("{} of 100 were answered", answered);
}

}  // namespace orrery::testing
