// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/chained_range.hpp>
#include <orrery/service/detail/packing.hpp>
#include <orrery/service/root.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace orrery {

/// Keys from `from` to before `to`; none: no bound.
template <class Key>
struct key_bounds {
  std::optional<Key> from;
  std::optional<Key> to;

  /// Whether the key lies between them.
  [[nodiscard]] bool contains(const Key& k) const { return !(from && k < *from) && !(to && !(k < *to)); }
  friend bool operator==(const key_bounds&, const key_bounds&) = default;
};

namespace service {

/// Which keys a list has lost with its nodes.
///
/// Problem: ranges split, join and move; a list that has lost a node must say which keys were
/// there, and no others.
///
/// The root is told of each change before the range that makes it does anything else. So its
/// directory tells of each interval who owns it, or owned it when its node was lost. An owner that
/// gave its keys to the range before it, which was lost before it could tell the root, has none:
/// then they are lost with that one.
template <class Key>
class lost_keys {
 public:
  /// `open` returns the directory of the list. Parks. Throws process_gone, stopped; node_lost if
  /// the root is lost.
  template <class Open>
  [[nodiscard]] static std::vector<key_bounds<Key>> find(Open open) {
    for (std::vector<interval> before;; yield()) {
      std::vector<interval> all = read(open());
      if (std::ranges::all_of(all, [](const interval& i) { return i.state == there; })) return {};
      if (all == before) return between(all);
      before = std::move(all);  // nothing may change while it is looked at
    }
  }

 private:
  enum owner_state : std::uint8_t { there, idle, lost_with_its_node };
  struct interval {
    std::optional<Key> least;
    address owner;
    owner_state state = lost_with_its_node;
    friend bool operator==(const interval&, const interval&) = default;
  };

  /// In the order of keys.
  static std::vector<interval> read(const std::vector<directory_entry>& directory) {
    std::vector<interval> all;
    for (const directory_entry& e : directory) {
      interval& i = all.emplace_back();
      i.owner = e.owner.address();
      if (!e.least.empty()) i.least = unpacker(e.least).template take<Key>();
      try {
        i.state = remote<chained_range>(i.owner)->load().active ? there : idle;
      } catch (const node_lost&) {
      }
    }
    std::ranges::sort(
        all, [](const interval& a, const interval& b) { return b.least && (!a.least || *a.least < *b.least); });
    return all;
  }
  /// Neighbours become one.
  static std::vector<key_bounds<Key>> between(const std::vector<interval>& all) {
    std::vector<key_bounds<Key>> lost;
    bool before = false;  // the interval before this one is lost
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool now = all[i].state == lost_with_its_node || (all[i].state == idle && before);
      const std::optional<Key> end = i + 1 < all.size() ? all[i + 1].least : std::optional<Key>();
      if (now && before) {
        lost.back().to = end;
      } else if (now) {
        lost.push_back({all[i].least, end});
      }
      before = now;
    }
    return lost;
  }
};

}  // namespace service
}  // namespace orrery
