// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/service/chained_range.hpp>
#include <orrery/service/detail/key_interval.hpp>
#include <orrery/service/detail/key_ownership.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/refused_requests.hpp>
#include <orrery/service/presence.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <map>
#include <optional>
#include <span>
#include <utility>

namespace orrery::service {

/// The items of a range of an ordered list, and how intervals of it are read.
///
/// It has the items of its keys, knows its successor, and keeps for streams what they have not read
/// yet: also when its keys have gone to another range.
///
/// Base of list_range, which changes it.
template <class Key, class Value>
class range_items : public chained_range {
 public:
  // before its items go
  ~range_items() override { exposed_.close(); }

  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    bytes answer;
    if (!begins_here(b, answer)) return answer;
    bytes found;
    std::uint32_t n = 0;
    auto p = b.begin_in(items_);
    for (; !items_.is_end(p) && n < limit && b.ends_behind(items_.key(p)); p = items_.next(p), ++n)
      if (!pack_whole(found, n == 0, [&] { pack_item(found, p); })) break;
    const bool all = items_.is_end(p) || !b.ends_behind(items_.key(p));
    const bool last = all && !reaches_behind(b.to);
    pack(answer, last ? list_answer::no : all ? list_answer::before : list_answer::yes);
    if (all && !last) pack(answer, *keys_.own().to);
    pack(answer, n);
    answer.insert(answer.end(), found.begin(), found.end());
    return answer;
  }
  bytes snapshot(std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    bytes all;
    if (!begins_here(b, all)) return all;
    pack(all, list_answer::yes);
    add_snapshot(all, b);
    return all;
  }
  bytes pin(remote<presence> stream, std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    bytes ranges;
    if (!begins_here(b, ranges)) return ranges;
    pack(ranges, list_answer::yes);
    add_pins(ranges, stream, b);
    return ranges;
  }
  bytes read_pin(remote<presence> stream, std::uint32_t limit) override {
    const auto at = pins_.find(stream.address());
    if (at == pins_.end()) throw usage_error(errc::bad_argument, "a stream was read behind its end");
    bytes part;
    pack(part, std::uint8_t{0});
    bool first = true;
    const bool more = at->second.take(limit, [&](const Key& k, const Value& v) {
      return pack_whole(part, std::exchange(first, false), [&] {
        pack(part, k);
        pack(part, v);
      });
    });
    part[0] = static_cast<std::byte>(more ? 1 : 0);
    if (!more) pins_.erase(at);
    return part;
  }
  /// See range_process.
  void unpin(remote<presence> stream) override { pins_.erase(stream.address()); }

  bytes first_item() override {
    bytes b;
    if (items_.size() != 0) {
      pack_item(b, items_.begin());
    } else if (successor_) {
      b = successor_->first_item();
    }
    return b;
  }
  bytes last_item() override {
    bytes b;
    if (successor_) b = successor_->last_item();
    if (b.empty() && items_.size() != 0) pack_item(b, items_.last());
    return b;
  }
  std::uint64_t count_from_here() override { return items_.size() + (successor_ ? successor_->count_from_here() : 0); }
  bytes snapshot_from_here(std::span<const std::byte> interval) override {
    bytes all;
    add_snapshot(all, interval_of::unpack(interval));
    return all;
  }
  /// See chained_range.
  bytes pin_from_here(remote<presence> stream, std::span<const std::byte> interval) override {
    bytes all;
    add_pins(all, stream, interval_of::unpack(interval));
    return all;
  }

 protected:
  /// The container of the items.
  using leaves = sorted_leaves<Key, Value>;
  /// An interval of the keys.
  using interval_of = key_interval<Key>;
  using keys_type = owned_keys<Key>;

  /// True: what() has appended an item. False: it threw, and `b` is as it was. Throws if that is
  /// the first item.
  template <class F>
  static bool pack_whole(bytes& b, bool first, F what) {
    const std::size_t before = b.size();
    try {
      what();
      return true;
    } catch (...) {
      if (first) throw;
      b.resize(before);
      return false;
    }
  }
  /// Appends an item.
  void pack_item(bytes& b, const typename leaves::place& p) const {
    pack(b, items_.key(p));
    pack(b, items_.value(p));
  }

  /// The content of another range: the items from this key on, and the keys of `owned`.
  range_content content_from(const std::optional<Key>& from, const keys_type& owned) const {
    range_content c;
    owned.pack_to(c.keys);
    c.successor = successor_.address();
    for (auto p = from ? items_.lower_bound(*from) : items_.begin(); !items_.is_end(p); p = items_.next(p), ++c.count)
      pack_item(c.items, p);
    return c;
  }
  /// All of them, or none if that throws.
  void take_items(const range_content& c) {
    leaves all = items_;
    unpacker u(c.items);
    for (auto n = c.count; n != 0; --n) {
      Key k = u.take<Key>();
      all.append(std::move(k), u.take<Value>());
    }
    items_ = std::move(all);
  }
  /// Has no items and no successor from now on.
  void let_go() {
    items_ = {};
    successor_ = {};
  }
  /// Streams for which items are kept.
  [[nodiscard]] std::size_t streams() const noexcept { return pins_.size(); }

  /// Requests so far.
  [[nodiscard]] virtual std::uint64_t executed() const noexcept = 0;

  /// While it lives, nobody else reads: what follows changes. Others see the result.
  class change {
   public:
    /// `real`: something changes, and it is not only requests that read.
    explicit change(range_items& of, bool real = true) noexcept : of_(of), opens_(real || of.exposed_.opens_now()) {
      if (real) of_.exposed_.close();
    }
    change(const change&) = delete;
    change& operator=(const change&) = delete;
    ~change() {
      of_.exposed_.served(of_.executed());
      if constexpr (can_be_exposed<Key, Value>)
        if (opens_ && of_.keys_.is_active()) of_.exposed_.open(of_.keys_.own(), of_.items_);
    }
    /// Others see it from the next requests on.
    void show_later() noexcept {
      opens_ = false;
      of_.exposed_.open_later();
    }

   private:
    range_items& of_;
    bool opens_;
  };

  // before the items, so that their memory is exposed, too
  exposed_range exposed_{can_be_exposed<Key, Value> ? exposed_range::memory_here() : nullptr};
  key_ownership<Key> keys_;
  remote<chained_range> successor_;
  leaves items_;

 private:
  [[nodiscard]] bool reaches_behind(const std::optional<Key>& to) const {
    return successor_ && (!to || *keys_.own().to < *to);
  }
  // If not, the answer says where it begins.
  [[nodiscard]] bool begins_here(const interval_of& b, bytes& answer) {
    if (b.from ? keys_.owns(*b.from) : keys_.is_first()) return true;
    pack(answer, list_answer::moved);
    refused_requests<Key>::pack_places(answer, {b.from ? keys_.find(*b.from) : keys_.find_first()});
    return false;
  }

  void add_snapshot(bytes& all, const interval_of& b) {
    for (auto p = b.begin_in(items_); !items_.is_end(p) && b.ends_behind(items_.key(p)); p = items_.next(p))
      pack_item(all, p);
    if (!reaches_behind(b.to)) return;
    const bytes more = successor_->snapshot_from_here(interval_of{{}, false, b.to}.packed());
    all.insert(all.end(), more.begin(), more.end());
  }
  void add_pins(bytes& ranges, remote<presence> stream, const interval_of& b) {
    keys_type mine = keys_.own();
    mine.owner = this_process<range_process>().address();
    mine.pack_to(ranges);
    pack(ranges, executed());
    if (reaches_behind(b.to)) {
      const bytes more = successor_->pin_from_here(stream, interval_of{{}, false, b.to}.packed());
      ranges.insert(ranges.end(), more.begin(), more.end());
    }
    pins_.insert_or_assign(stream.address(), items_.pin(b.begin_in(items_), b.to));
    when_gone(stream, [stream, range = this_process<range_process>()] { range->unpin(stream); });
  }

  std::map<address, pinned_items<Key, Value>> pins_;  // by the presence of their stream
};

}  // namespace orrery::service
