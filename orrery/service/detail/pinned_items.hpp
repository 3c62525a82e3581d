// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/exposed_range.hpp>
#include <orrery/service/detail/leaf_memory.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace orrery::service {

/// Up to 64 items of a range, sorted. The map holds it, and so do snapshots that are pinned: who
/// writes into one that others hold makes a copy of it first.
template <class Key, class Value>
struct sorted_leaf {
  static constexpr std::size_t room = std::clamp<std::size_t>(256 / sizeof(Key), 16, 64);
  /// Programs in which it is the same see the same in the memory of a leaf.
  static constexpr std::uint64_t layout =
      sizeof(Key) + (std::uint64_t{alignof(Value)} << 8U) + (std::uint64_t{sizeof(Value)} << 16U);
  std::array<Key, room> keys{};
  std::array<Value, room> values{};
  std::uint32_t holders = 0;  // of one process, so it is plain

  static void* operator new(std::size_t size) {
    if constexpr (alignof(sorted_leaf) > leaf_memory::line) {
      return ::operator new(size, std::align_val_t{alignof(sorted_leaf)});
    } else {
      return leaf_memory::take(size, can_be_exposed<Key, Value>);
    }
  }
  static void operator delete(void* leaf, std::size_t size) noexcept {
    if constexpr (alignof(sorted_leaf) > leaf_memory::line) {
      ::operator delete(leaf, std::align_val_t{alignof(sorted_leaf)});
    } else {
      leaf_memory::give_back(leaf, size);
    }
  }
};

/// Holds a leaf.
template <class Leaf>
class leaf_ptr {
 public:
  leaf_ptr() noexcept = default;
  explicit leaf_ptr(Leaf* l) noexcept : leaf_(l) { ++l->holders; }
  leaf_ptr(const leaf_ptr& o) noexcept : leaf_(o.leaf_) {
    if (leaf_ != nullptr) ++leaf_->holders;
  }
  leaf_ptr(leaf_ptr&& o) noexcept : leaf_(std::exchange(o.leaf_, nullptr)) {}
  leaf_ptr& operator=(leaf_ptr o) noexcept {
    std::swap(leaf_, o.leaf_);
    return *this;
  }
  ~leaf_ptr() {
    if (leaf_ != nullptr && --leaf_->holders == 0) delete leaf_;
  }
  Leaf& operator*() const noexcept { return *leaf_; }
  Leaf* operator->() const noexcept { return leaf_; }
  /// Makes it a leaf that nobody else holds.
  void own() {
    if (leaf_->holders == 1) [[likely]]
      return;
    leaf_ptr fresh(new Leaf);
    fresh->keys = leaf_->keys;
    fresh->values = leaf_->values;
    std::swap(leaf_, fresh.leaf_);
  }

 private:
  Leaf* leaf_ = nullptr;
};

/// Items of a range as they were at one moment, to be taken in parts.
///
/// Problem: who reads a large interval at his own pace must not see what is written meanwhile, and
/// writers must not wait for him.
///
/// It holds the leaves. To make it costs a few instructions for each leaf; a writer copies a leaf
/// when it writes into it for the first time afterwards. Leaves that were taken are let go.
///
/// Made by sorted_leaves::pin; used by the same process only.
template <class Key, class Value>
class pinned_items {
 public:
  using leaf = sorted_leaf<Key, Value>;

  explicit pinned_items(std::optional<Key> to) : to_(std::move(to)) {}
  void add(const leaf_ptr<leaf>& l, std::size_t begin, std::size_t end) {
    if (begin < end) parts_.push_back({l, static_cast<std::uint8_t>(begin), static_cast<std::uint8_t>(end)});
  }
  /// f(key, value) for the next `limit` items at most, or until it returns false: then that item is
  /// still to be taken. False if none is left behind them.
  template <class F>
  bool take(std::size_t limit, F f) {
    while (now_ < parts_.size()) {
      part& p = parts_[now_];
      for (; p.begin < p.end; ++p.begin) {
        const Key& k = p.items->keys[p.begin];
        if (to_ && !(k < *to_)) {
          parts_.clear();
          return false;
        }
        if (limit == 0) return true;
        --limit;
        if (!f(k, p.items->values[p.begin])) return true;
      }
      p.items = {};
      ++now_;
    }
    return false;
  }

 private:
  struct part {
    leaf_ptr<leaf> items;
    std::uint8_t begin;
    std::uint8_t end;
  };
  std::optional<Key> to_;
  std::vector<part> parts_;
  std::size_t now_ = 0;
};

}  // namespace orrery::service
