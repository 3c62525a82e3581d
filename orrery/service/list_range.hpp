// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
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
    fetcher ahead{items_, requests_, count};
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
        if (ahead.version != items_.version()) {
          r.leaf = items_.find_leaf(r.key);
          r.hint = leaves::no_hint;
        }
        execute(r, answer);
      }
    }
    if (report_.moved != moved_before) pack_given(answer);
    if (items_.size() > setup_.limit && !splitting_) {
      splitting_ = true;
      post(this_process<range_process>())->split();
    }
    return {answer.all().begin(), answer.all().end()};
  }

  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) override {
    const bounds b(interval);
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
    for (; !items_.is_end(p) && n < limit && b.has(items_.key(p)); p = items_.next(p), ++n) pack_item(found, p);
    const bool all = items_.is_end(p) || !b.has(items_.key(p));
    const bool last = all && (given_.empty() || !b.has(given_.front().least));
    pack(answer, last ? list_answer::no : all ? list_answer::before : list_answer::yes);
    if (all && !last) pack(answer, given_.front().least);
    pack(answer, n);
    answer.insert(answer.end(), found.begin(), found.end());
    return answer;
  }

  bytes snapshot(std::span<const std::byte> interval) override {
    const bounds b(interval);
    if (b.from && !owns(*b.from)) return owner_of(*b.from)->snapshot(interval);
    ++report_.requests;
    bytes all;
    for (auto p = b.begin_in(items_); !items_.is_end(p) && b.has(items_.key(p)); p = items_.next(p)) pack_item(all, p);
    if (!given_.empty() && b.has(given_.front().least)) {
      const bytes more = successor()->snapshot(interval_from(given_.front().least, b));
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }

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
    } catch (const node_lost&) {  // the root or that PE is lost: the range stays as it is
    } catch (const process_gone&) {
    }
  }

  range_report report() override {
    report_.items = items_.size();
    report_.bytes = items_.bytes();
    return report_;
  }

 private:
  using leaves = sorted_leaves<Key, Value>;

  struct given {
    Key least;
    remote<range_process> owner;
  };

  /// Looks ahead in a batch, in three steps.
  struct fetcher {
    static constexpr std::uint32_t step = 12;
    leaves& items;
    std::vector<request>& requests;
    std::uint32_t count;
    std::uint32_t version = items.version();
    std::uint32_t done = 0;

    void go_on(std::uint32_t now) {
      if (items.version() != version) {
        if (now + 3 * step >= count) return;  // hints are too old, and what is left is little
        version = items.version();
        for (std::uint32_t i = now; i < done; ++i) {
          requests[i].leaf = items.find_leaf(requests[i].key);
          requests[i].hint = leaves::no_hint;
        }
      }
      for (; done < std::min(count, now + 3 * step); ++done) {
        request& r = requests[done];
        r.leaf = items.find_leaf(r.key);
        r.hint = leaves::no_hint;
        items.fetch_leaf(r.leaf);
        if (done >= step) items.fetch_keys(requests[done - step].leaf);
        if constexpr (std::is_arithmetic_v<Key>) {
          if (done >= 2 * step) {
            request& soon = requests[done - 2 * step];
            soon.hint = items.fetch_value(soon.leaf, soon.key);
          }
        }
      }
    }
  };

  /// From `from` (above: what is greater) to before `to`.
  struct bounds {
    std::optional<Key> from;
    bool above = false;
    std::optional<Key> to;
    explicit bounds(std::span<const std::byte> packed) {
      unpacker u(packed);
      if (u.take<std::uint8_t>() != 0) from = u.take<Key>();
      above = u.take<std::uint8_t>() != 0;
      if (u.take<std::uint8_t>() != 0) to = u.take<Key>();
    }
    [[nodiscard]] bool has(const Key& k) const { return !to || k < *to; }
    [[nodiscard]] auto begin_in(const leaves& items) const {
      return from ? items.lower_bound(*from, above) : items.begin();
    }
  };
  static bytes interval_from(const Key& from, const bounds& b) {
    bytes i;
    pack(i, std::uint8_t{1});
    pack(i, from);
    pack(i, std::uint8_t{0});
    pack(i, static_cast<std::uint8_t>(b.to ? 1 : 0));
    if (b.to) pack(i, *b.to);
    return i;
  }

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

  [[nodiscard]] bool owns(const Key& k) const { return given_.empty() || k < given_.front().least; }
  [[nodiscard]] bool belongs_here(const request& r) const { return !has_key(r.operation) || owns(r.key); }
  [[nodiscard]] remote<range_process> successor() const { return given_.front().owner; }
  /// Of a key that was given away: who has it, or got it and knows who does.
  [[nodiscard]] remote<range_process> owner_of(const Key& k) const {
    auto g = given_.begin();
    while (g + 1 != given_.end() && !(k < (g + 1)->least)) ++g;
    return g->owner;
  }

  void execute(request& r, packer& answer) {
    switch (r.operation) {
      case list_operation::find:
        if (const Value* v = items_.find_in(r.leaf, r.key, r.hint)) {
          pack(answer, list_answer::value);
          pack(answer, *v);
        } else {
          pack(answer, list_answer::no);
        }
        return;
      case list_operation::insert:
        pack(answer, yes_if(items_.insert_in(r.leaf, std::move(r.key), std::move(r.value), r.hint)));
        return;
      case list_operation::erase:
        pack(answer, yes_if(items_.erase_in(r.leaf, r.key, r.hint)));
        return;
      case list_operation::update:
        if (Value* v = items_.find_in(r.leaf, r.key, r.hint)) {
          *v = std::move(r.value);
          pack(answer, list_answer::yes);
        } else {
          pack(answer, list_answer::no);
        }
        return;
      case list_operation::insert_or_update:
        if (Value* v = items_.find_in(r.leaf, r.key, r.hint)) {
          *v = std::move(r.value);
          pack(answer, list_answer::no);
        } else {
          pack(answer, yes_if(items_.insert_in(r.leaf, std::move(r.key), std::move(r.value), r.hint)));
        }
        return;
      case list_operation::compare_and_update:
        compare_and_update(r, answer);
        return;
      default:
        look_further(r, answer);
        return;
    }
  }
  static list_answer yes_if(bool b) noexcept { return b ? list_answer::yes : list_answer::no; }

  void compare_and_update(request& r, packer& answer) {
    if constexpr (requires(const Value& v) { v == v; }) {
      Value* v = items_.find_in(r.leaf, r.key, r.hint);
      const bool same = v != nullptr && *v == r.expected;
      if (same) *v = std::move(r.value);
      pack(answer, yes_if(same));
    } else {
      pack(answer, list_answer::no);  // the session does not compile such a request
    }
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
      pack(answer, list_answer::failed);
      pack(answer, static_cast<std::uint16_t>(e.code()));
      pack(answer, std::string(e.what()));
    }
  }

  range_setup setup_;
  std::optional<Key> least_;
  std::vector<given> given_;  // keys that this range does not own any more, ascending; the first is where its own end
  leaves items_;
  std::vector<request> requests_;
  packer answer_;
  range_report report_;
  bool splitting_ = false;
};

}  // namespace orrery::service
