// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/key_interval.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/packing.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace orrery::service {

/// The items of one process of a walking list, sorted.
///
/// They are few, most often one: a vector costs least. Owned by a walk_node; used by its process only.
template <class Key, class Value>
class walk_items {
 public:
  using item = std::pair<Key, Value>;
  using request = list_request<Key, Value>;

  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }
  [[nodiscard]] const Key& least() const noexcept { return items_.front().first; }
  [[nodiscard]] const Key& key(std::size_t i) const noexcept { return items_[i].first; }

  /// The first place whose key is not less than k; `above`: that is greater.
  [[nodiscard]] std::size_t place_of(const Key& k, bool above = false) const {
    const auto at = above ? std::ranges::upper_bound(items_, k, {}, &item::first)
                          : std::ranges::lower_bound(items_, k, {}, &item::first);
    return static_cast<std::size_t>(at - items_.begin());
  }
  [[nodiscard]] bool is_at(std::size_t place, const Key& k) const {
    return place != items_.size() && !(k < items_[place].first);
  }
  void put(std::size_t place, Key k, Value v) {
    if (items_.capacity() == 0) items_.reserve(1);
    items_.emplace(items_.begin() + static_cast<std::ptrdiff_t>(place), std::move(k), std::move(v));
  }
  void erase(std::size_t place) { items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(place)); }
  void cut(std::size_t from) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(from), items_.end());
    items_.shrink_to_fit();
  }
  void release() { std::vector<item>().swap(items_); }

  /// The items [from, to), packed.
  [[nodiscard]] bytes packed(std::size_t from, std::size_t to) const {
    bytes b;
    for (; from < to; ++from) {
      pack(b, items_[from].first);
      pack(b, items_[from].second);
    }
    return b;
  }
  /// Items that are greater than those here.
  void append(std::span<const std::byte> packed) {
    std::vector<item> more;
    for (unpacker u(packed); !u.empty();) {
      Key k = u.take<Key>();
      more.emplace_back(std::move(k), u.take<Value>());
    }
    items_.reserve(items_.size() + more.size());
    std::ranges::move(more, std::back_inserter(items_));
  }
  /// What there is of an interval: [first, second).
  [[nodiscard]] std::pair<std::size_t, std::size_t> part_of(const key_interval<Key>& keys) const {
    const std::size_t begin = keys.from ? place_of(*keys.from, keys.above) : 0;
    return {begin, keys.to ? std::max(begin, place_of(*keys.to)) : items_.size()};
  }

  /// find, update and compare_and_update at this place: the answer, packed.
  [[nodiscard]] bytes look_or_change(std::size_t place, request& r) {
    bytes b;
    if (!is_at(place, r.key)) {
      pack(b, list_answer::no);
      return b;
    }
    Value& v = items_[place].second;
    if (r.operation == list_operation::find) {
      pack(b, list_answer::value);
      pack(b, v);
      return b;
    }
    const bool fits = r.operation != list_operation::compare_and_update || same(v, r.expected);
    if (fits) v = std::move(r.value);
    pack(b, fits ? list_answer::yes : list_answer::no);
    return b;
  }

 private:
  static bool same(const Value& a, const Value& b) {
    if constexpr (requires { a == b; }) {
      return a == b;
    } else {
      return false;
    }
  }
  std::vector<item> items_;
};

}  // namespace orrery::service
