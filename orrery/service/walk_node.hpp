// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/walk_process.hpp>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace orrery::service {

/// How the processes of a walking list work.
struct walk_setup {
  remote<walk_manager> manager;
  std::uint32_t managers = 1;
  std::uint32_t granularity = 1;  ///< items of a process (G)
  std::uint32_t forwards = 64;  ///< requests that are passed on before an acknowledgement (K)
};

/// A process of a list whose requests walk (Alam, Kamal and Wagner 2013, sections 3.1 and 3.5).
///
/// A process has up to G items, and knows the next process and its least key (min-key). Requests enter at the head, which has no
/// items, and go forward only: what is not less than min-key is passed on. Messages between two processes
/// keep their order, so no request overtakes another: all take effect in the order in which they reach the head.
///
/// *Insertion*: a process that is full asks its manager for a free one, gives it the upper half of its items and the link to
/// its successor, and precedes it from then on. Before that the successor acknowledges all that was sent to it, so that nothing
/// that comes to it from the new process overtakes that. Both messages are on their way at once.
///
/// *Erasure* of min-key: the process has its successor erase its least item, and waits. A successor
/// that has no item left makes its own successor acknowledge, hands the link back, and is free.
///
/// Waits go forward only, and end at the last process: no circle comes about, also with K = 0.
template <class Key, class Value>
class walk_node final : public walk_process {
 public:
  using request = list_request<Key, Value>;
  using item = std::pair<Key, Value>;

  walk_node(const walk_setup& setup, bool is_head) : setup_(setup), is_head_(is_head) {}

  void walk(const walk_request& w, std::span<const std::byte> packed) override {
    request r;
    unpacker u(packed);
    unpack(u, r);
    const bool erases_next =
        r.operation == list_operation::erase && next_ && !(next_least_ < r.key) && !(r.key < next_least_);
    if (erases_next) {
      relink(next_->erase_least());
      reply(w, list_answer::yes);
    } else if (has_key(r.operation) && next_ && !(r.key < next_least_)) {
      forward(w, packed);
    } else if (has_key(r.operation) && r.operation != list_operation::after) {
      execute(w, r);
    } else {
      look_along(w, r, packed);
    }
  }

  void begin(const walk_link& next, std::span<const std::byte> items) override {
    relink(next);
    for (unpacker u(items); !u.empty();) {
      Key k = u.take<Key>();
      items_.emplace_back(std::move(k), u.take<Value>());
    }
  }

  walk_link erase_least() override {
    items_.erase(items_.begin());
    if (!items_.empty()) return {this_process<walk_process>().address(), packed(items_.front().first)};
    walk_link rest;
    if (next_) {
      next_->acknowledge();
      rest = {next_.address(), packed(next_least_)};
    }
    next_ = {};
    post(setup_.manager)->put(this_process<walk_process>());
    return rest;
  }

  void tune(std::uint32_t granularity, std::uint32_t forwards) override {
    setup_.granularity = std::max(granularity, 1U);
    setup_.forwards = forwards;
  }

 private:
  static bytes packed(const Key& k) {
    bytes b;
    pack(b, k);
    return b;
  }
  void relink(const walk_link& l) {
    next_ = remote<walk_process>(l.next);
    if (next_) next_least_ = unpacker(l.least).template take<Key>();
  }
  void reply(const walk_request& w, list_answer a) {
    reply(w, a, [](bytes&) {});
  }
  template <class Rest>
  void reply(const walk_request& w, list_answer a, Rest rest) {
    bytes b;
    pack(b, a);
    rest(b);
    post(w.gate)->answer(w.number, std::span<const std::byte>(b));
  }
  void reply_item(const walk_request& w, const item& i) {
    reply(w, list_answer::item, [&](bytes& b) {
      pack(b, i.first);
      pack(b, i.second);
    });
  }
  void forward(const walk_request& w, std::span<const std::byte> packed) {
    post(next_)->walk(w, packed);
    if (++forwarded_ <= setup_.forwards) return;
    forwarded_ = 0;
    next_->acknowledge();
  }

  void execute(const walk_request& w, request& r) {
    const auto at = std::ranges::lower_bound(items_, r.key, {}, &item::first);
    const bool there = at != items_.end() && !(r.key < at->first);
    bool done = there;
    switch (r.operation) {
      case list_operation::find:
        if (there) {
          reply(w, list_answer::value, [&](bytes& b) { pack(b, at->second); });
          return;
        }
        break;
      case list_operation::erase:
        if (there) items_.erase(at);
        break;
      case list_operation::update:
        if (there) at->second = std::move(r.value);
        break;
      case list_operation::compare_and_update:
        done = there && same(at->second, r.expected);
        if (done) at->second = std::move(r.value);
        break;
      default:
        if (there && r.operation == list_operation::insert_or_update) at->second = std::move(r.value);
        if (!there) {
          insert(w, r);
          return;
        }
        done = false;
    }
    reply(w, done ? list_answer::yes : list_answer::no);
  }
  static bool same(const Value& a, const Value& b) {
    if constexpr (requires { a == b; }) {
      return a == b;
    } else {
      return false;
    }
  }

  void insert(const walk_request& w, request& r) {
    const bool room = !is_head_ && items_.size() < setup_.granularity;
    if (!room) {
      const auto fresh = setup_.manager->take(setup_.managers - 1);
      if (!fresh) {
        reply(w, list_answer::failed, [](bytes& b) {
          pack(b, static_cast<std::uint16_t>(errc::bad_argument));
          pack(b, std::string("the list is full: it has no free process left"));
        });
        return;
      }
      give_upper_half(fresh, r);
      reply(w, list_answer::yes);
      return;
    }
    put(r);
    reply(w, list_answer::yes);
  }
  void put(request& r) {
    const auto at = std::ranges::lower_bound(items_, r.key, {}, &item::first);
    items_.emplace(at, std::move(r.key), std::move(r.value));
  }
  // Of the items with the new one; of a head, that has none, the new one.
  void give_upper_half(remote<walk_process> fresh, request& r) {
    put(r);
    const auto half = static_cast<std::ptrdiff_t>(is_head_ ? 0 : (items_.size() + 1) / 2);
    bytes upper;
    for (auto i = items_.begin() + half; i != items_.end(); ++i) {
      pack(upper, i->first);
      pack(upper, i->second);
    }
    Key least = items_[static_cast<std::size_t>(half)].first;
    future<void> settled;
    walk_link behind;
    if (next_) {
      settled = start(next_)->acknowledge();
      behind = {next_.address(), packed(next_least_)};
    }
    fresh->begin(behind, std::span<const std::byte>(upper));
    if (settled.valid()) settled.get();
    items_.erase(items_.begin() + half, items_.end());
    next_ = fresh;
    next_least_ = std::move(least);
    forwarded_ = 0;
  }

  // after, first, last, size: what they ask may be further on.
  void look_along(walk_request w, const request& r, std::span<const std::byte> packed) {
    switch (r.operation) {
      case list_operation::after: {
        const auto at = std::ranges::upper_bound(items_, r.key, {}, &item::first);
        if (at != items_.end()) {
          reply_item(w, *at);
          return;
        }
        break;
      }
      case list_operation::first:
        if (!items_.empty()) {
          reply_item(w, items_.front());
          return;
        }
        break;
      case list_operation::last:
        if (!next_ && !items_.empty()) {
          reply_item(w, items_.back());
          return;
        }
        break;
      default:
        w.count += items_.size();
        if (!next_) {
          reply(w, list_answer::number, [&](bytes& b) { pack(b, w.count); });
          return;
        }
    }
    if (!next_) {
      reply(w, list_answer::no);
    } else if (r.operation == list_operation::after) {  // the least item of what follows
      bytes first;
      pack(first, list_operation::first);
      forward(w, first);
    } else {
      forward(w, packed);
    }
  }

  walk_setup setup_;
  bool is_head_;
  std::vector<item> items_;
  remote<walk_process> next_;
  Key next_least_{};
  std::uint32_t forwarded_ = 0;  // since the last acknowledgement
};

/// The gate of a list with these types.
template <class Key, class Value>
class typed_walk_gate final : public walk_gate {
 public:
  explicit typed_walk_gate(remote<walk_process> head) : head_(head) {}

  bytes serve(const batch_head& head, std::span<const std::byte> packed) override {
    const std::uint32_t count = head.count;
    batch b(*this, count);
    list_request<Key, Value> r;
    unpacker u(packed);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::byte* const begin = u.position();
      unpack(u, r);
      post(head_)->walk(walk_request{remote<walk_gate>(this_process<walk_gate>()), b.first() + i},
                        std::span<const std::byte>(begin, u.position()));
    }
    return b.wait();
  }

 private:
  remote<walk_process> head_;
};

}  // namespace orrery::service
