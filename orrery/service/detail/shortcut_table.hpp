// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/walk_process.hpp>

#include <cstddef>
#include <iterator>
#include <map>
#include <optional>

namespace orrery::service {

/// A way into a walking list: a process that was in it with this least key.
template <class Key>
struct shortcut {
  Key least{};
  remote<walk_process> to;
};

/// The list processes of one PE, by their least keys (section 3.6 of the paper).
///
/// Problem: requests that all begin at the head of a list crowd there, and walk past processes that
/// could take them.
///
/// Processes of the list note themselves here when they are in it, and strike themselves out when
/// they are free. Gates and processes look up the last one that is not behind a key. Such a
/// shortcut may be stale when a request arrives there; that process notices it (walk_node::enter).
///
/// Owned by the manager of the PE; used by what is on the same PE only.
template <class Key>
class shortcut_table {
 public:
  /// Without shortcuts it stays empty, and costs processes nothing.
  void enable(bool on) noexcept { enabled_ = on; }
  void set(const Key& least, remote<walk_process> to) {
    if (enabled_) entries_.insert_or_assign(least, to);
  }
  void erase(const Key& least) { entries_.erase(least); }
  /// The last one whose least key is not greater than k; `before`: less than k, as for the erasure
  /// of a least key, which is the affair of the process before it.
  [[nodiscard]] std::optional<shortcut<Key>> find(const Key& k, bool before) const {
    const auto behind = before ? entries_.lower_bound(k) : entries_.upper_bound(k);
    if (behind == entries_.begin()) return {};
    const auto at = std::prev(behind);
    return shortcut<Key>{at->first, at->second};
  }
  [[nodiscard]] std::optional<shortcut<Key>> last() const {
    if (entries_.empty()) return {};
    const auto at = std::prev(entries_.end());
    return shortcut<Key>{at->first, at->second};
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  std::map<Key, remote<walk_process>> entries_;
  bool enabled_ = true;
};

}  // namespace orrery::service
