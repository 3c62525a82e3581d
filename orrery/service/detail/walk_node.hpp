// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/walk_chain.hpp>

#include <cstdint>
#include <span>
#include <utility>

namespace orrery::service {

/// A process of a list whose requests walk (sections 3.1, 3.5 and 3.6 of the paper): what it does
/// with requests.
///
/// It has up to G items. Requests go forward only: what is not less than min-key is passed on. The
/// head has no items.
///
/// *Insertion*: a process that is full gives the upper half of its items to a free process, which
/// comes in behind it. Behind the head the successor takes the item, if it has room.
///
/// *Erasure* of min-key is for the process before the one that has it.
///
/// *Shortcuts*: requests may enter the list here (enter()). They are taken if this process is in
/// the list and they belong to it or what is behind it; otherwise the shortcut is stale. Where a
/// request allows it, the process sends it on through a shortcut of its own PE.
///
/// Each request takes effect at one moment, in one process, while neighbours that it concerns stand
/// still.
template <class Key, class Value>
class walk_node : public walk_chain<Key, Value> {
  using base = walk_chain<Key, Value>;

 public:
  using request = list_request<Key, Value>;

  /// `site`: the address of the walk_site of its PE.
  walk_node(std::uintptr_t site, bool is_head) : base(*reinterpret_cast<walk_site<Key>*>(site), is_head) {}

  void walk(const walk_request& w, std::span<const std::byte> packed) override {
    this->go_on();
    pass_or_execute(w, packed);
  }
  void enter(const walk_request& first, std::uint32_t count, std::span<const std::byte> requests) override {
    this->go_on();
    walk_request w = first;
    unpacker u(requests);
    request r;
    for (std::uint32_t i = 0; i < count; ++i, ++w.number) {
      const std::byte* const begin = u.position();
      unpacker one = u;
      skip_request<Key, Value>(u);
      bool mine = true;
      if (is_head_) {
        w.moment = site_.moments++;
      } else {
        try {
          unpack(one, r);
          mine = belongs(r);
        } catch (...) {  // what the program's key throws
          reply_failed(w, std::current_exception());
          continue;
        }
      }
      if (!mine) {
        post(w.gate)->stale(w.number, count - i, std::span<const std::byte>(begin, requests.data() + requests.size()));
        return;
      }
      pass_or_execute(w, {begin, u.position()});
    }
  }

 protected:
  using base::items_;
  using base::joined_;
  using base::site_;

  /// Whether a request that came through a shortcut is for this process or one behind it.
  [[nodiscard]] virtual bool belongs(const request& r) const {
    if (!joined_) return false;
    if (!has_key(r.operation)) return r.operation == list_operation::last;
    return r.operation == list_operation::erase ? items_.least() < r.key : !(r.key < items_.least());
  }

 private:
  using base::answer;
  using base::answer_item;
  using base::first_item_behind;
  using base::is_head_;
  using base::next_;
  using base::next_least_;
  using base::packed_key;
  using base::pass_on;
  using base::precede;
  using base::relink;

  bool jump(const walk_request& w, const request& r, std::span<const std::byte> packed) {
    if (!w.jumps) return false;
    const auto s = site_.table.find(r.key, r.operation == list_operation::erase);
    if (!s || !(next_least_ < s->least)) return false;
    ++site_.jumps;
    post(s->to)->enter(w, 1, packed);
    return true;
  }
  // Where a process that this one must wait for is lost, or the program's keys and values throw,
  // the request fails.
  void pass_or_execute(const walk_request& w, std::span<const std::byte> packed) override {
    ++site_.requests;
    try {
      pass_or_execute_once(w, packed);
    } catch (const stopped&) {
      throw;
    } catch (...) {
      reply_failed(w, std::current_exception());
    }
  }
  void pass_or_execute_once(const walk_request& w, std::span<const std::byte> packed) {
    request r;
    unpacker u(packed);
    unpack(u, r);
    if (!has_key(r.operation)) {
      look_along(w, r.operation, packed);
    } else if (!next_ || r.key < next_least_) {
      if (site_.search.count() != 0) compute(site_.search * static_cast<std::int64_t>(items_.size() / 2 + 1));
      execute(w, r);
    } else if (r.operation == list_operation::erase && !(next_least_ < r.key)) {
      relink(next_->erase_least(w));
    } else if (!jump(w, r, packed)) {
      pass_on(w, packed);
    }
  }
  void execute(const walk_request& w, request& r) {
    const std::size_t place = items_.place_of(r.key, r.operation == list_operation::after);
    const bool there = items_.is_at(place, r.key);
    switch (r.operation) {
      case list_operation::after:
        answer_item(w, place == items_.size() ? first_item_behind() : items_.packed(place, place + 1));
        return;
      case list_operation::erase:  // not of its least item: that is its predecessor's
        if (there) {
          items_.erase(place);
          --site_.items;
        }
        answer(w, there ? list_answer::yes : list_answer::no);
        return;
      case list_operation::insert:
      case list_operation::insert_or_update:
        if (!there) {
          insert(w, r, place);
          return;
        }
        if (r.operation == list_operation::insert_or_update) {
          r.operation = list_operation::update;
          (void)items_.look_or_change(place, r);
        }
        answer(w, list_answer::no);
        return;
      default:
        reply(w, site_.next_version(), items_.look_or_change(place, r));
    }
  }

  void insert(const walk_request& w, request& r, std::size_t place) {
    if (is_head_) {
      insert_behind_head(w, r);
    } else if (items_.size() < site_.granularity) {
      put(w, r, place);
    } else {
      split(w, r, place);
    }
  }
  void put(const walk_request& w, request& r, std::size_t place) {
    items_.put(place, std::move(r.key), std::move(r.value));
    ++site_.items;
    answer(w, list_answer::yes);
  }
  void insert_behind_head(const walk_request& w, request& r) {
    bytes item = packed_key(r.key);
    pack(item, r.value);
    std::uint64_t version = 0;
    if (next_ && site_.granularity > 1) version = next_->take_least(item, false, site_.version);
    if (version == 0) {
      if (precede(w, r.key, item)) return;
      if (!site_.tunes_granularity || !next_) {
        reply_full(w);
        return;
      }
      version = next_->take_least(item, true, site_.version);
    }
    next_least_ = std::move(r.key);
    bytes yes;
    pack(yes, list_answer::yes);
    reply(w, version, yes);
  }
  // A free process gets the upper half of the items with the new one.
  void split(const walk_request& w, request& r, std::size_t place) {
    const std::size_t half = (items_.size() + 2) / 2;  // that many of both stay
    const bool goes = place >= half;
    const std::size_t stay = goes ? half : half - 1;
    bytes upper = items_.packed(stay, goes ? place : items_.size());
    Key least = goes && place == stay ? r.key : items_.key(stay);
    if (goes) {
      pack(upper, r.key);
      pack(upper, r.value);
      const bytes rest = items_.packed(place, items_.size());
      upper.insert(upper.end(), rest.begin(), rest.end());
    }
    if (precede(goes ? w : walk_request{}, std::move(least), upper)) {
      site_.items -= items_.size() - stay;
      items_.cut(stay);
      if (!goes) put(w, r, place);
    } else if (site_.tunes_granularity) {
      site_.granularity *= 2;  // of all processes of this PE
      put(w, r, place);
    } else {
      reply_full(w);
    }
  }
  // first and size begin at the head; last goes to the end.
  void look_along(const walk_request& w, list_operation o, std::span<const std::byte> packed) {
    if (o == list_operation::size) {
      bytes number;
      pack(number, items_.size() + (next_ ? next_->count() : 0));
      answer(w, list_answer::number, number);
    } else if (o == list_operation::first) {
      answer_item(w, first_item_behind());
    } else if (next_) {
      pass_on(w, packed);
    } else {
      answer_item(w, items_.packed(items_.size() - (items_.empty() ? 0 : 1), items_.size()));
    }
  }
};

}  // namespace orrery::service
