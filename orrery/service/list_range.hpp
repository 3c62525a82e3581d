// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/service/batch_fetcher.hpp>
#include <orrery/service/key_interval.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/point_operations.hpp>
#include <orrery/service/presence.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orrery::service {

/// What a range begins with.
struct range_setup {
  remote<service_root> root;
  std::uint32_t limit = 0;  ///< with more items it splits
};

/// A range of an ordered list; see range_process.
///
/// It handles a batch together: while it executes a request, the memory that the next ones will need is on its
/// way (sorted_leaves). When it has too many items it spawns a range for the upper half, where
/// the root says, and remembers which keys it gave away to whom.
template <class Key, class Value>
class list_range final : public range_process {
 public:
  using request = list_request<Key, Value>;

  /// `content`: optional least key, optional end and successor, items; see split().
  list_range(range_setup setup, const bytes& content) : setup_(setup) {
    unpacker u(content);
    if (u.take<std::uint8_t>() != 0) least_ = u.take<Key>();
    if (u.take<std::uint8_t>() != 0) {
      Key end = u.take<Key>();
      given_.push_back({std::move(end), remote<range_process>(u.take<address>())});
    }
    for (auto n = u.take<std::uint64_t>(); n != 0; --n) {
      Key k = u.take<Key>();
      items_.append(std::move(k), u.take<Value>());
    }
  }

  /// What the first range of a list, or one for keys that were stated, begins with.
  static bytes empty_content(const std::optional<Key>& least, const std::optional<Key>& end, address successor) {
    bytes b;
    pack_bounds(b, least, end, successor);
    pack(b, std::uint64_t{0});
    return b;
  }

  bytes serve(std::uint32_t count, batch_rule rule, std::span<const std::byte> packed) override {
    report_.requests += count;
    if (requests_.size() < count) requests_.resize(count);
    unpacker u(packed);
    for (std::uint32_t i = 0; i < count; ++i) {
      requests_[i].begin = u.position();
      unpack(u, requests_[i]);
    }
    const std::byte* const end = u.position();
    packer& answer = answer_;
    answer.clear();
    const std::uint64_t moved_before = report_.moved;
    bool refused = false;
    batch_fetcher<Key, Value> ahead(items_, requests_, count);
    for (std::uint32_t i = 0; i < count; ++i) {
      ahead.go_on(i);
      request& r = requests_[i];
      const std::byte* const next = i + 1 < count ? requests_[i + 1].begin : end;
      if (refused && rule == batch_rule::until_refused) {
        refuse(answer, list_answer::behind, {r.begin, next});
      } else if (!belongs_here(r)) {
        refuse(answer, list_answer::moved, {r.begin, next});
        ++report_.moved;
        refused = true;
      } else {
        if (!is_point(r.operation)) {
          look_further(r, answer);
        } else {
          execute_at(items_, r, answer);
        }
      }
    }
    if (report_.moved != moved_before) pack_given(answer);
    split_if_large();
    return {answer.all().begin(), answer.all().end()};
  }

  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    bytes answer;
    if (b.from && !owns(*b.from)) {
      pack(answer, list_answer::moved);
      pack_given(answer);
      return answer;
    }
    ++report_.requests;
    bytes found;
    std::uint32_t n = 0;
    auto p = b.begin_in(items_);
    for (; !items_.is_end(p) && n < limit && b.ends_behind(items_.key(p)); p = items_.next(p), ++n) pack_item(found, p);
    const bool all = items_.is_end(p) || !b.ends_behind(items_.key(p));
    const bool last = all && (given_.empty() || !b.ends_behind(given_.front().least));
    pack(answer, last ? list_answer::no : all ? list_answer::before : list_answer::yes);
    if (all && !last) pack(answer, given_.front().least);
    pack(answer, n);
    answer.insert(answer.end(), found.begin(), found.end());
    return answer;
  }

  bytes snapshot(std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    if (b.from && !owns(*b.from)) return owner_of(*b.from)->snapshot(interval);
    ++report_.requests;
    bytes all;
    for (auto p = b.begin_in(items_); !items_.is_end(p) && b.ends_behind(items_.key(p)); p = items_.next(p))
      pack_item(all, p);
    if (!given_.empty() && b.ends_behind(given_.front().least)) {
      const bytes more = successor()->snapshot(interval_of{given_.front().least, false, b.to}.packed());
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

  bytes pin(remote<presence> stream, std::span<const std::byte> interval) override {
    const auto b = interval_of::unpack(interval);
    if (b.from && !owns(*b.from)) return owner_of(*b.from)->pin(stream, interval);
    ++report_.requests;
    bytes ranges;
    pack(ranges, this_process<range_process>().address());
    if (!given_.empty() && b.ends_behind(given_.front().least)) {
      const bytes more = successor()->pin(stream, interval_of{given_.front().least, false, b.to}.packed());
      ranges.insert(ranges.end(), more.begin(), more.end());
    }
    pins_.insert_or_assign(stream.address(), items_.pin(b.begin_in(items_), b.to));
    when_gone(stream, [stream, range = this_process<range_process>()] { range->unpin(stream); });
    return ranges;
  }
  bytes read_pin(remote<presence> stream, std::uint32_t limit) override {
    const auto at = pins_.find(stream.address());
    if (at == pins_.end()) throw usage_error(errc::bad_argument, "a stream of a list was read behind its end");
    bytes part;
    pack(part, std::uint8_t{0});
    const bool more = at->second.take(limit, [&](const Key& k, const Value& v) {
      pack(part, k);
      pack(part, v);
    });
    part[0] = static_cast<std::byte>(more ? 1 : 0);
    if (!more) pins_.erase(at);
    return part;
  }
  void unpin(remote<presence> stream) override { pins_.erase(stream.address()); }

  bytes first_item() override {
    bytes b;
    if (items_.size() != 0) {
      pack_item(b, items_.begin());
    } else if (!given_.empty()) {
      b = successor()->first_item();
    }
    return b;
  }
  bytes last_item() override {
    bytes b;
    if (!given_.empty()) b = successor()->last_item();
    if (b.empty() && items_.size() != 0) pack_item(b, items_.last());
    return b;
  }
  std::uint64_t count_from_here() override {
    return items_.size() + (given_.empty() ? 0 : successor()->count_from_here());
  }

  void split() override {
    splitting_ = false;
    if (items_.size() <= setup_.limit) return;
    const Key least = items_.middle();
    bytes content;
    pack_bounds(content, least, given_.empty() ? std::optional<Key>() : std::optional<Key>(given_.front().least),
                given_.empty() ? address{} : successor().address());
    std::uint64_t n = 0;
    bytes items;
    for (auto p = items_.lower_bound(least); !items_.is_end(p); p = items_.next(p), ++n) pack_item(items, p);
    pack(content, n);
    content.insert(content.end(), items.begin(), items.end());
    try {
      const auto fresh = spawn<list_range>(pe(setup_.root->next_pe()), setup_, content);
      items_.drop_upper_half();
      given_.insert(given_.begin(), {least, fresh});
      ++report_.splits;
      bytes packed_least;
      pack(packed_least, least);
      post(setup_.root)->add(std::move(packed_least), fresh);
      split_if_large();  // tuned
    } catch (const node_lost&) {  // the root or that PE is lost: the range stays as it is
    } catch (const process_gone&) {
    }
  }

  void tune(std::uint32_t items) override {
    setup_.limit = items;
    split_if_large();
  }
  range_report report() override {
    report_.limit = setup_.limit;
    report_.items = items_.size();
    report_.bytes = items_.bytes();
    report_.streams = pins_.size();
    return report_;
  }

 private:
  using leaves = sorted_leaves<Key, Value>;
  using interval_of = key_interval<Key>;

  struct given {
    Key least;
    remote<range_process> owner;
  };

  static void pack_bounds(bytes& b, const std::optional<Key>& least, const std::optional<Key>& end, address successor) {
    pack(b, static_cast<std::uint8_t>(least ? 1 : 0));
    if (least) pack(b, *least);
    pack(b, static_cast<std::uint8_t>(end ? 1 : 0));
    if (end) {
      pack(b, *end);
      pack(b, successor);
    }
  }
  void pack_item(bytes& b, const typename leaves::place& p) const {
    pack(b, items_.key(p));
    pack(b, items_.value(p));
  }
  static void refuse(packer& answer, list_answer why, std::span<const std::byte> request) {
    pack(answer, why);
    pack(answer, static_cast<std::uint32_t>(request.size()));
    answer.append(request);
  }
  template <class To>
  void pack_given(To& answer) const {
    pack(answer, static_cast<std::uint32_t>(given_.size()));
    for (const given& g : given_) {
      pack(answer, g.least);
      pack(answer, g.owner.address());
    }
  }

  void split_if_large() {
    if (items_.size() <= setup_.limit || splitting_) return;
    splitting_ = true;
    post(this_process<range_process>())->split();
  }
  [[nodiscard]] bool owns(const Key& k) const { return given_.empty() || k < given_.front().least; }
  [[nodiscard]] bool belongs_here(const request& r) const { return !has_key(r.operation) || owns(r.key); }
  [[nodiscard]] remote<range_process> successor() const { return given_.front().owner; }
  /// Of a key that was given away: who has it, or got it and knows who does.
  [[nodiscard]] remote<range_process> owner_of(const Key& k) const {
    auto g = given_.begin();
    while (g + 1 != given_.end() && !(k < (g + 1)->least)) ++g;
    return g->owner;
  }

  /// Operations that may depend on the ranges that follow.
  void look_further(request& r, packer& answer) {
    const std::size_t size = answer.size();
    try {
      bytes item;
      if (r.operation == list_operation::size) {
        pack(answer, list_answer::number);
        pack(answer, count_from_here());
        return;
      }
      if (r.operation == list_operation::after) {
        const auto p = items_.lower_bound(r.key, true);
        if (!items_.is_end(p)) {
          pack_item(item, p);
        } else if (!given_.empty()) {
          item = successor()->first_item();
        }
      } else {
        item = r.operation == list_operation::first ? first_item() : last_item();
      }
      const bool first_range = !least_;
      const bool before = item.empty() && r.operation == list_operation::last && !first_range;
      pack(answer, !item.empty() ? list_answer::item : before ? list_answer::before : list_answer::no);
      answer.append(item);
    } catch (const error& e) {  // a range that follows is lost
      answer.shrink(size);
      pack_failure(answer, e);
    }
  }

  range_setup setup_;
  std::optional<Key> least_;
  std::vector<given> given_;  // keys that this range does not own any more, ascending; the first is where its own end
  leaves items_;
  std::vector<request> requests_;
  packer answer_;
  std::map<address, pinned_items<Key, Value>> pins_;  // by the presence of their stream
  range_report report_;
  bool splitting_ = false;
};

}  // namespace orrery::service
