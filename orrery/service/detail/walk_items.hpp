// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/key_interval.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/packing.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace orrery::service {

/// The items of one process of a walking list, sorted.
///
/// They are few, most often one: a single item lies here, several lie in a vector. Owned by a
/// walk_node; used by its process only.
template <class Key, class Value>
class walk_items {
 public:
  using item = std::pair<Key, Value>;
  using request = list_request<Key, Value>;

  [[nodiscard]] bool empty() const noexcept { return size() == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return many_ ? many_->size() : one_ ? 1 : 0; }
  [[nodiscard]] const Key& least() const noexcept { return key(0); }
  [[nodiscard]] const Key& key(std::size_t i) const noexcept { return many_ ? (*many_)[i].first : key_; }

  /// The first place whose key is not less than k; `above`: that is greater.
  [[nodiscard]] std::size_t place_of(const Key& k, bool above = false) const {
    if (!many_) return one_ && (above ? !(k < key_) : key_ < k) ? 1 : 0;
    constexpr auto less = [](const Key& a, const Key& b) { return a < b; };
    const auto at = above ? std::ranges::upper_bound(*many_, k, less, &item::first)
                          : std::ranges::lower_bound(*many_, k, less, &item::first);
    return static_cast<std::size_t>(at - many_->begin());
  }
  [[nodiscard]] bool is_at(std::size_t place, const Key& k) const { return place != size() && !(k < key(place)); }
  void put(std::size_t place, Key k, Value v) {
    if (empty()) {
      set_one(std::move(k), std::move(v));
    } else {
      reserve(size() + 1);
      many_->emplace(many_->begin() + static_cast<std::ptrdiff_t>(place), std::move(k), std::move(v));
    }
  }
  void erase(std::size_t place) {
    if (!many_) {
      release();
    } else {
      many_->erase(many_->begin() + static_cast<std::ptrdiff_t>(place));
      settle();
    }
  }
  void cut(std::size_t from) {
    if (from >= size()) return;
    if (!many_) {
      release();
    } else {
      many_->erase(many_->begin() + static_cast<std::ptrdiff_t>(from), many_->end());
      many_->shrink_to_fit();
      settle();
    }
  }
  void release() {
    many_.reset();
    one_ = false;
    key_ = {};
    value_ = {};
  }

  /// The items [from, to), packed.
  [[nodiscard]] bytes packed(std::size_t from, std::size_t to) const {
    bytes b;
    for (; from < to; ++from) {
      pack(b, key(from));
      pack(b, many_ ? (*many_)[from].second : value_);
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
    if (size() + more.size() > 1) reserve(size() + more.size());
    for (item& i : more) {
      if (many_) {
        many_->push_back(std::move(i));
      } else {
        set_one(std::move(i.first), std::move(i.second));
      }
    }
  }
  /// The items of an interval: [first, second).
  [[nodiscard]] std::pair<std::size_t, std::size_t> part_of(const key_interval<Key>& keys) const {
    const std::size_t begin = keys.from ? place_of(*keys.from, keys.above) : 0;
    return {begin, keys.to ? std::max(begin, place_of(*keys.to)) : size()};
  }

  /// find, update and compare_and_update at this place: the answer, packed.
  [[nodiscard]] bytes look_or_change(std::size_t place, request& r) {
    bytes b;
    if (!is_at(place, r.key)) {
      pack(b, list_answer::no);
      return b;
    }
    Value& v = many_ ? (*many_)[place].second : value_;
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
  void set_one(Key k, Value v) {
    key_ = std::move(k);
    value_ = std::move(v);
    one_ = true;
  }
  // All items lie in the vector, which has room for so many. It grows as vectors do.
  void reserve(std::size_t n) {
    if (!many_) {
      many_ = wire::make_unique<std::vector<item>>();
      many_->reserve(n);
      if (std::exchange(one_, false)) many_->emplace_back(std::exchange(key_, {}), std::exchange(value_, {}));
    } else if (n > many_->size() + 1) {
      many_->reserve(n);
    }
  }
  // A single item lies here.
  void settle() {
    if (many_->size() > 1) return;
    const wire::unique_ptr<std::vector<item>> last = std::move(many_);
    if (!last->empty()) set_one(std::move(last->front().first), std::move(last->front().second));
  }

  // The value of a single item. In this order there are holes only behind the last one.
  Value value_{};
  wire::unique_ptr<std::vector<item>> many_;  // null: none, or one
  Key key_{};
  bool one_ = false;
};

}  // namespace orrery::service
