// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/service/detail/walk_items.hpp>
#include <orrery/service/detail/walk_manager.hpp>
#include <orrery/service/detail/walk_process.hpp>
#include <orrery/service/detail/walk_site.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace orrery::service {

/// The place of a process in the chain of a walking list (Alam, Kamal and Wagner 2013, sections 3.1
/// to 3.4): its items, the link to its successor, and the steps by which processes come in and go.
///
/// A process knows the next one and its least key (min-key). Messages between two processes keep
/// their order, so no request overtakes another on its way.
///
/// *In* (figure 3b, precede()): the manager begins a free process with items and the link to the
/// successor. Meanwhile the successor acknowledges all that was sent to it: so nothing that comes
/// to it from the new process overtakes that. Then the new process joins the list, and answers the
/// client.
///
/// *Out* (figure 3c, erase_least()): the predecessor calls, and waits. A process that has no item
/// left makes its own successor acknowledge, hands the link back, and is free. It answers the
/// client.
///
/// *K*: after K requests were passed on, the next one is a synchronous send, which waits until the
/// successor has taken it up. With K automatic a request that the successor's mailbox has no room
/// for is one, too.
///
/// Waits go forward only, and end at the last process: no circle comes about, also with K = 0. A
/// process stands still while it waits.
///
/// Base of walk_node. Invariant: a process that has joined the list has items, and their least key
/// is the min-key of its predecessor; the head has none.
template <class Key, class Value>
class walk_chain : public walk_process {
 public:
  void walk_in_step(const walk_request& w, std::span<const std::byte> packed) override {
    go_on();
    site_.held.insert_or_assign(this, held_request{w, {packed.begin(), packed.end()}});
    holds_ = true;
    post(this_process<walk_process>())->go_on();
  }
  void go_on() override {
    if (!holds_) return;
    holds_ = false;
    const auto held = site_.held.extract(this);
    pass_or_execute(held.mapped().w, held.mapped().packed);
  }
  void acknowledge() override { go_on(); }
  void join(const walk_request& insertion) override {
    joined_ = true;
    note_shortcut();
    answer(insertion, list_answer::yes);
  }

  void begin(const walk_link& next, std::span<const std::byte> items) override {
    relink(next);
    items_.append(items);
    site_.items += items_.size();
  }

  walk_link erase_least(const walk_request& w) override {
    go_on();
    ++site_.requests;
    site_.table.erase(items_.least());
    items_.erase(0);
    --site_.items;
    walk_link rest;
    if (!items_.empty()) {
      note_shortcut();
      answer(w, list_answer::yes);
      rest = {this_process<walk_process>().address(), packed_key(items_.least()), site_.version};
      return rest;
    }
    if (next_) {
      next_->acknowledge();
      rest = {next_.address(), packed_key(next_least_)};
    }
    next_ = {};
    forwarded_ = 0;
    joined_ = false;
    items_.release();
    answer(w, list_answer::yes);
    rest.version = site_.version;
    post(site_.manager)->put(this_process<walk_process>());
    return rest;
  }
  std::uint64_t take_least(std::span<const std::byte> item, bool always, std::uint64_t version) override {
    go_on();
    if (items_.size() >= site_.granularity) {
      if (!always) return 0;
      site_.granularity *= 2;  // of all processes of this PE
    }
    site_.table.erase(items_.least());
    unpacker u(item);
    Key k = u.take<Key>();
    items_.put(0, std::move(k), u.take<Value>());
    ++site_.items;
    note_shortcut();
    return site_.next_version(version);
  }
  bytes first_item() override {
    go_on();
    return items_.packed(0, 1);
  }
  std::uint64_t count() override {
    go_on();
    return items_.size() + (next_ ? next_->count() : 0);
  }
  walk_part collect(std::uint64_t limit, std::span<const std::byte> interval, std::uint64_t version) override {
    go_on();
    version = site_.next_version(version);
    const auto keys = key_interval<Key>::unpack(interval);
    const auto [begin, end] = items_.part_of(keys);
    if (end - begin >= limit) return {items_.packed(begin, begin + static_cast<std::size_t>(limit)), version};
    walk_part all{items_.packed(begin, end), version};
    if (next_ && keys.ends_behind(next_least_)) {
      const walk_part rest = next_->collect(limit - (end - begin), interval, version);
      all.items.insert(all.items.end(), rest.items.begin(), rest.items.end());
      all.version = rest.version;
      site_.see_version(rest.version);
    }
    return all;
  }

 protected:
  walk_chain(walk_site<Key>& site, bool is_head) : site_(site), is_head_(is_head), joined_(is_head) {}

  virtual void pass_or_execute(const walk_request& w, std::span<const std::byte> packed) = 0;

  static bytes packed_key(const Key& k) {
    bytes b;
    pack(b, k);
    return b;
  }
  void relink(const walk_link& l) {
    site_.see_version(l.version);
    next_ = remote<walk_process>(l.next);
    if (next_) next_least_ = unpacker(l.least).template take<Key>();
  }
  /// The request takes effect now.
  void answer(const walk_request& w, list_answer a, std::span<const std::byte> rest = {}) {
    bytes b;
    pack(b, a);
    b.insert(b.end(), rest.begin(), rest.end());
    reply(w, site_.next_version(), b);
  }
  void answer_item(const walk_request& w, std::span<const std::byte> item) {
    answer(w, item.empty() ? list_answer::no : list_answer::item, item);
  }
  bytes first_item_behind() { return next_ ? next_->first_item() : bytes(); }
  void pass_on(const walk_request& w, std::span<const std::byte> packed) {
    if (forwarded_ < site_.forwards) {
      ++forwarded_;
      if (!site_.tunes_forwards) {
        post(next_)->walk(w, packed);
        return;
      }
      if (try_post(next_)->walk(w, packed)) return;
      site_.send_was_refused();
    }
    forwarded_ = 0;
    const auto begin = now();
    next_->walk_in_step(w, packed);
    site_.sent_in_step(now() - begin);
  }

  // Figure 3b: a free process begins between this one and its successor, which acknowledges
  // meanwhile. False if there is none.
  bool precede(const walk_request& w, Key least, std::span<const std::byte> items) {
    walk_link behind;
    future<void> settled;
    if (next_) {
      behind = {next_.address(), packed_key(next_least_), 0};
      settled = start(next_)->acknowledge();
    }
    behind.version = site_.version;
    const spare s = site_.manager->take(behind, items);
    if (settled.valid()) settled.get();
    if (!s.process) return false;
    next_ = s.process;
    next_least_ = std::move(least);
    forwarded_ = 0;
    post(next_)->join(w);
    return true;
  }

  // In this order a process with a key of 4 bytes and a value of 8 takes 56 bytes.
  walk_site<Key>& site_;
  [[no_unique_address]] walk_items<Key, Value> items_;
  bool is_head_ : 1;
  bool joined_ : 1;
  bool holds_ : 1 = false;  // a request, see walk_in_step

 private:
  void note_shortcut() { site_.table.set(items_.least(), this_process<walk_process>()); }

  std::uint16_t forwarded_ = 0;  // since the last synchronous send

 protected:
  remote<walk_process> next_;
  Key next_least_{};
};

}  // namespace orrery::service
