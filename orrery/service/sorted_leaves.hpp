// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/leaf_memory.hpp>
#include <orrery/service/detail/pinned_items.hpp>
#include <orrery/service/detail/whole_changes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::service {

/// How many of the n sorted keys at `first` are not greater than `key`. Without branches that the
/// processor would have to guess, for keys that are numbers.
template <class Key>
[[nodiscard]] std::size_t count_not_greater(const Key* first, std::size_t n, const Key& key) {
  const Key* base = first;
  if (n == 0) return 0;
  while (n > 1) {
    const std::size_t half = n / 2;
    base += (static_cast<std::size_t>(key < base[half - 1]) - 1U) & half;
    n -= half;
  }
  return static_cast<std::size_t>(base - first) + (key < *base ? 0 : 1);
}
/// How many of them are less than `key`.
template <class Key>
[[nodiscard]] std::size_t count_less(const Key* first, std::size_t n, const Key& key) {
  const Key* base = first;
  if (n == 0) return 0;
  while (n > 1) {
    const std::size_t half = n / 2;
    base += (std::size_t{0} - static_cast<std::size_t>(base[half - 1] < key)) & half;
    n -= half;
  }
  return static_cast<std::size_t>(base - first) + (*base < key ? 1 : 0);
}

/// An ordered map for the items of one range.
///
/// Problem: a look-up alone waits for memory several times. A range has many requests at hand, and
/// could let the waits overlap, if the map told where it will look.
///
/// The items lie in leaves, sorted. Arrays of their own have the least key and the size of each
/// leaf and where it is, and stay in the cache. So a look-up has three steps (find_leaf,
/// fetch_keys, fetch_value), and the caller lets others go on between them. A leaf holds 256 bytes
/// of keys: an insertion moves little. Room for further items holds keys and values that mean
/// nothing.
///
/// Comparisons of keys, and copies and moves of both, may throw: the item that a call is about is
/// there then, or not, and all others are.
///
/// Owned by its range; used by this process only. Invariants: leaf i has the keys from least_[i]
/// (the first: all lesser ones, too) to least_[i + 1]; no leaf is empty but a single one.
template <class Key, class Value>
class sorted_leaves {
 public:
  static constexpr std::size_t leaf_items = sorted_leaf<Key, Value>::room;
  static constexpr std::size_t no_hint = ~std::size_t{0};
  /// In place of a hint, for callers: find_leaf() threw.
  static constexpr std::size_t not_found_yet = no_hint - 1;
  /// Where an item is, or would be.
  struct place {
    std::size_t leaf;
    std::size_t at;
  };

  sorted_leaves() : least_(1), sizes_(1) { leaves_.emplace_back(new leaf); }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Changes when leaves come or go: until then find_leaf() gives the same.
  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }

  /// The number of the leaf that has the key, or would have it.
  [[nodiscard]] std::size_t find_leaf(const Key& key) const {
    return count_not_greater(least_.data() + 1, least_.size() - 1, key);
  }
  /// Asks for the memory that tells where a leaf lies and how full it is,
  void fetch_leaf(std::size_t i) const noexcept {
    __builtin_prefetch(&leaves_[i]);
    __builtin_prefetch(&sizes_[i]);
  }
  /// and for the keys of the leaf.
  void fetch_keys(std::size_t i) const noexcept {
    const auto* const at = reinterpret_cast<const std::byte*>(leaves_[i]->keys.data());
    const std::size_t size = std::min<std::size_t>(sizes_[i] * sizeof(Key), 512);
    // A load of one in the middle: processors may drop a prefetch if its page is not known to
    // them, but not a load, and the prefetches find the page then.
    asm volatile("" : : "r"(at[size / 2]));
    for (std::size_t b = 0; b < size; b += 64) __builtin_prefetch(at + b);
  }
  /// All values, for a request that has no others to wait beside: its keys are not there yet.
  void fetch_values(std::size_t i) const noexcept {
    const auto* const at = reinterpret_cast<const std::byte*>(leaves_[i]->values.data());
    const std::size_t size = std::min<std::size_t>(sizes_[i] * sizeof(Value), 512);
    for (std::size_t b = 0; b < size; b += 64) __builtin_prefetch(at + b);
  }
  /// Returns where the key is in its leaf, or would be.
  std::size_t fetch_value(std::size_t i, const Key& key) const {
    const leaf& l = *leaves_[i];
    const std::size_t at = count_less(l.keys.data(), sizes_[i], key);
    __builtin_prefetch(l.values.data() + at);
    return at;
  }

  // In what follows `i` is find_leaf(key), and `hint` what fetch_value() returned. A hint may be
  // out of date; if version() has changed, `i` must be asked again.

  /// Null if there is no such key.
  [[nodiscard]] const Value* find_in(std::size_t i, const Key& key, std::size_t hint = no_hint) const {
    const leaf& l = *leaves_[i];
    const std::size_t at = place_in(i, key, hint);
    return at < sizes_[i] && !(key < l.keys[at]) ? &l.values[at] : nullptr;
  }
  /// The same, to be written to.
  [[nodiscard]] Value* change_in(std::size_t i, const Key& key, std::size_t hint = no_hint) {
    const std::size_t at = place_in(i, key, hint);
    if (at == sizes_[i] || key < leaves_[i]->keys[at]) return nullptr;
    leaves_[i].own();
    return &leaves_[i]->values[at];
  }
  /// False if the key is there.
  bool insert_in(std::size_t i, Key&& key, Value&& value, std::size_t hint = no_hint) {
    std::size_t at = place_in(i, key, hint);
    if (at < sizes_[i] && !(key < leaves_[i]->keys[at])) return false;
    if (sizes_[i] == leaf_items) {
      // ascending keys fill leaves
      const bool at_end = i + 1 == leaves_.size() && at == leaf_items;
      divide(i, at_end ? leaf_items - 1 : leaf_items / 2);
      if (!(key < least_[i + 1])) ++i;
      at = count_less(leaves_[i]->keys.data(), sizes_[i], key);
    }
    undo back(leaves_[i]);
    leaf& l = *leaves_[i];
    const std::size_t n = sizes_[i];
    std::move_backward(l.keys.begin() + at, l.keys.begin() + n, l.keys.begin() + n + 1);
    std::move_backward(l.values.begin() + at, l.values.begin() + n, l.values.begin() + n + 1);
    l.keys[at] = std::move(key);
    l.values[at] = std::move(value);
    back.keep();
    ++sizes_[i];
    ++size_;
    return true;
  }
  /// False if the key is not there.
  bool erase_in(std::size_t i, const Key& key, std::size_t hint = no_hint) {
    const std::size_t at = place_in(i, key, hint);
    const std::size_t n = sizes_[i];
    if (at == n || key < leaves_[i]->keys[at]) return false;
    if (n == 1 && leaves_.size() > 1) [[unlikely]] {
      drop(i);
      --size_;
      return true;
    }
    Key no_key{};  // what the last one held elsewhere is free
    Value no_value{};
    const bool joins = n - 1 < leaf_items / 4 && leaves_.size() > 1;
    const std::size_t lower = i + 1 < leaves_.size() ? i : i - 1;
    if (joins) leaves_[lower == i ? i + 1 : lower].own();  // so that join() has what it needs
    undo back(leaves_[i]);
    leaf& l = *leaves_[i];
    std::move(l.keys.begin() + at + 1, l.keys.begin() + n, l.keys.begin() + at);
    std::move(l.values.begin() + at + 1, l.values.begin() + n, l.values.begin() + at);
    l.keys[n - 1] = std::move(no_key);
    l.values[n - 1] = std::move(no_value);
    back.keep();
    --sizes_[i];
    --size_;
    if (joins) [[unlikely]]
      join(lower);
    return true;
  }

  /// The first item whose key is not less than `key` (`above`: greater than it); end() if there is
  /// none.
  [[nodiscard]] place lower_bound(const Key& key, bool above = false) const {
    const std::size_t i = find_leaf(key);
    const Key* const keys = leaves_[i]->keys.data();
    const std::size_t at = above ? count_not_greater(keys, sizes_[i], key) : count_less(keys, sizes_[i], key);
    return at < sizes_[i] ? place{i, at} : place{i + 1, 0};
  }
  /// The first item, or end().
  [[nodiscard]] place begin() const noexcept { return {size_ == 0 ? 1U : 0U, 0}; }
  /// Whether no item is there: behind the last one.
  [[nodiscard]] bool is_end(const place& p) const noexcept { return p.leaf == leaves_.size(); }
  /// The item behind this one, or end().
  [[nodiscard]] place next(place p) const noexcept { return ++p.at < sizes_[p.leaf] ? p : place{p.leaf + 1, 0}; }
  /// The key of an item.
  [[nodiscard]] const Key& key(const place& p) const noexcept { return leaves_[p.leaf]->keys[p.at]; }
  /// Its value.
  [[nodiscard]] const Value& value(const place& p) const noexcept { return leaves_[p.leaf]->values[p.at]; }
  /// The last item, of at least one.
  [[nodiscard]] place last() const noexcept { return {leaves_.size() - 1, sizes_.back() - 1U}; }

  /// Behind all others. Keys come in ascending order.
  void append(Key&& key, Value&& value) { (void)insert_in(leaves_.size() - 1, std::move(key), std::move(value)); }
  /// The least key of the upper half, of at least two items.
  [[nodiscard]] const Key& middle() {
    if (leaves_.size() == 1) divide(0, sizes_[0] / 2U);
    return least_[leaves_.size() / 2];
  }
  /// Drops all items from middle() on.
  void drop_upper_half() {
    const std::size_t keep = leaves_.size() / 2;
    for (std::size_t i = keep; i < sizes_.size(); ++i) size_ -= sizes_[i];
    leaves_.resize(keep);
    sizes_.resize(keep);
    least_.resize(keep);
    ++version_;
  }
  /// The items from `from` to before the key `to` as they are now, whatever is written later.
  [[nodiscard]] pinned_items<Key, Value> pin(place from, const std::optional<Key>& to) const {
    pinned_items<Key, Value> all(to);
    for (std::size_t i = from.leaf; i < leaves_.size() && (i == from.leaf || !to || least_[i] < *to); ++i)
      all.add(leaves_[i], i == from.leaf ? from.at : 0, sizes_[i]);
    return all;
  }
  /// For others, who read it while nothing changes: where all of it lies.
  void show_in(exposed_header& h) const noexcept {
    h.least = reinterpret_cast<std::uintptr_t>(least_.data());
    h.sizes = reinterpret_cast<std::uintptr_t>(sizes_.data());
    h.leaves = reinterpret_cast<std::uintptr_t>(leaves_.data());
    h.count = leaves_.size() <= 0xffff'ffffU ? static_cast<std::uint32_t>(leaves_.size()) : 0;
    h.layout = leaf::layout;
  }
  /// Memory of the leaves; not what keys and values hold elsewhere.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return least_.capacity() * sizeof(Key) + leaves_.capacity() * sizeof(leaves_[0]) + sizes_.capacity() +
           leaves_.size() * leaf_memory::bytes_of(sizeof(leaf));
  }

 private:
  using leaf = sorted_leaf<Key, Value>;

  // Makes a leaf one that nobody else holds. Where moves may throw it is a copy, and without keep()
  // the leaf is as it was.
  class undo {
   public:
    static constexpr bool moves = std::is_nothrow_move_assignable_v<Key> && std::is_nothrow_move_assignable_v<Value>;
    explicit undo(leaf_ptr<leaf>& at) : at_(at) {
      if constexpr (!moves) before_ = at;
      at.own();
    }
    undo(const undo&) = delete;
    undo& operator=(const undo&) = delete;
    ~undo() {
      if constexpr (!moves)
        if (!kept_) at_ = before_;
    }
    void keep() noexcept { kept_ = true; }

   private:
    leaf_ptr<leaf>& at_;
    leaf_ptr<leaf> before_;
    bool kept_ = false;
  };

  std::size_t place_in(std::size_t i, const Key& key, std::size_t hint) const {
    const Key* const keys = leaves_[i]->keys.data();
    const std::size_t n = sizes_[i];
    if (hint <= n && (hint == n || !(keys[hint] < key)) && (hint == 0 || keys[hint - 1] < key)) return hint;
    return count_less(keys, n, key);
  }
  void divide(std::size_t i, std::size_t from) {
    leaf_ptr<leaf> upper(new leaf);
    make_room_in(least_);
    make_room_in(leaves_);
    make_room_in(sizes_);
    undo back(leaves_[i]);
    leaf& l = *leaves_[i];
    Key least = l.keys[from];
    const std::size_t n = sizes_[i];
    std::move(l.keys.begin() + from, l.keys.begin() + n, upper->keys.begin());
    std::move(l.values.begin() + from, l.values.begin() + n, upper->values.begin());
    insert_whole(least_, i + 1, std::move(least));
    back.keep();
    const auto behind = static_cast<std::ptrdiff_t>(i) + 1;
    leaves_.insert(leaves_.begin() + behind, std::move(upper));
    sizes_.insert(sizes_.begin() + behind, static_cast<std::uint8_t>(n - from));
    sizes_[i] = static_cast<std::uint8_t>(from);
    ++version_;
  }
  // Makes one of the leaves i and i + 1, if there is room for some more items.
  void join(std::size_t i) {
    const std::size_t n = sizes_[i];
    const std::size_t more = sizes_[i + 1];
    if (n + more > leaf_items * 3 / 4) return;
    undo back(leaves_[i]);
    undo back_above(leaves_[i + 1]);
    leaf& l = *leaves_[i];
    leaf& upper = *leaves_[i + 1];
    std::move(upper.keys.begin(), upper.keys.begin() + more, l.keys.begin() + n);
    std::move(upper.values.begin(), upper.values.begin() + more, l.values.begin() + n);
    drop(i + 1);
    back.keep();
    back_above.keep();
    sizes_[i] = static_cast<std::uint8_t>(n + more);
  }
  // The leaf before it has its keys then; or, of the first one, the leaf behind it.
  void drop(std::size_t i) {
    erase_whole(least_, i);
    const auto at = static_cast<std::ptrdiff_t>(i);
    leaves_.erase(leaves_.begin() + at);
    sizes_.erase(sizes_.begin() + at);
    ++version_;
  }

  template <class T>
  using array_of =
      std::vector<T, std::conditional_t<can_be_exposed<Key, Value>, exposed_allocator<T>, std::allocator<T>>>;
  array_of<Key> least_;  // of leaf i; the first is never looked at
  array_of<std::uint8_t> sizes_;
  array_of<leaf_ptr<leaf>> leaves_;
  std::size_t size_ = 0;
  std::uint32_t version_ = 0;
};

}  // namespace orrery::service
