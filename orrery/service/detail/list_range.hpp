// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn_here.hpp>
#include <orrery/service/detail/batch_fetcher.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/load_meter.hpp>
#include <orrery/service/detail/point_operations.hpp>
#include <orrery/service/detail/refused_requests.hpp>
#include <orrery/service/range_items.hpp>
#include <orrery/service/root.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace orrery::service {

/// The state in which a range begins.
struct range_setup {
  remote<service_root> root;
  std::uint32_t limit = 0;  ///< with more items it splits
};

/// A range of an ordered list; see range_process and chained_range.
///
/// It handles a batch together: while it executes a request, the memory that the next ones will
/// need is on its way (sorted_leaves). When it has too many items it gives the upper half to
/// another range, where the root says. It remembers which keys it gave away to whom
/// (key_ownership).
template <class Key, class Value>
class list_range final : public range_items<Key, Value> {
  using base = range_items<Key, Value>;
  using typename base::change;
  using typename base::keys_type;
  using typename base::leaves;

 public:
  using request = list_request<Key, Value>;

  explicit list_range(range_setup setup) : setup_(setup) {}

  bytes serve(const batch_head& head, std::span<const std::byte> packed) override {
    load_.begin(head.count, head.from_pe);
    report_.window = head.window;
    show_window(head.window);
    show_granularity(setup_.limit);
    const bool writes = unpack_all(head.count, packed);
    const change now(*this, writes);
    packer& answer = answer_;
    answer.clear();
    refused_requests<Key> refused(answer, head.rule);
    batch_fetcher<Key, Value> ahead(items_, requests_, head.count);
    for (std::uint32_t i = 0; i < head.count; ++i) {
      ahead.go_on(i);
      const std::byte* const begin = requests_[i].begin;
      const std::byte* const next = i + 1 < head.count ? requests_[i + 1].begin : packed.data() + packed.size();
      const std::size_t size = answer.size();
      try {
        serve_one(requests_[i], {begin, next}, head.known, refused);
      } catch (...) {  // what the program's keys and values threw, or a range that follows is lost
        answer.shrink(size);
        pack_failure(answer, std::current_exception());
      }
    }
    report_.moved += refused.end();
    if (head.places) pack(answer, served_at{keys_.own().version, load_.requests() - head.count});
    split_if_large();
    load_.end(setup_.root);
    return {answer.all().begin(), answer.all().end()};
  }

  exposed_place exposed() override { return base::exposed_.place(); }
  void tune(std::uint32_t items) override {
    setup_.limit = items;
    split_if_large();
  }
  range_report report() override {
    report_.requests = load_.requests();
    report_.busy_ns = load_.busy_ns();
    report_.pe = this_pe();
    report_.limit = setup_.limit;
    report_.items = given_version_ == 0 ? items_.size() : 0;
    report_.bytes = given_version_ == 0 ? items_.bytes() : 0;
    report_.streams = this->streams();
    return report_;
  }

  // --- for the ranges before it, and the root ----------------------------------------------------

  void split(std::uint32_t items) override {
    const change now(*this);
    splitting_ = false;
    if (!keys_.is_active() || items_.size() <= items || items_.size() < 2) return;
    const Key least = items_.middle();
    const remote<range_process> fresh = give_to_another(setup_.root, least, {});
    if (!fresh) return;
    items_.drop_upper_half();
    successor_ = chained_at(fresh);
    ++report_.splits;
    split_if_large();  // tuned
  }
  bool merge_next(const address& next, std::uint32_t items) override {
    if (!keys_.is_active() || !successor_ || successor_.address() != next || items_.size() > items) return false;
    const change now(*this);
    keys_type theirs;
    address behind;
    try {
      const range_content c =
          successor_->give_up(this_process<range_process>().address(), keys_.own().version, items - items_.size());
      if (c.keys.empty()) return false;
      unpacker u(c.keys);
      theirs = keys_type::unpack(u);
      behind = c.successor;
      this->take_items(c);
    } catch (const node_lost&) {
      throw;
    } catch (const process_gone&) {
      throw;
    } catch (const stopped&) {
      throw;
    // the program's keys and values threw, or there is no memory for a message with all: they stay
    } catch (...) {
      if (const bytes stay = successor_->end_give_up(false); !stay.empty()) {
        unpacker u(stay);
        keys_.learn(keys_type::unpack(u));
      }
      return false;
    }
    keys_.take_next(theirs);
    const remote<chained_range> given = std::exchange(successor_, remote<chained_range>(behind));
    ++report_.merges;
    tell_unless_lost([&] {
      (void)given->end_give_up(true);
      setup_.root->retire(remote<range_process>(next));
    });
    return true;
  }
  bool move_next(const address& next, std::uint32_t to_pe) override {
    if (!keys_.is_active() || !successor_ || successor_.address() != next) return false;
    successor_ = remote<chained_range>(successor_->hand_over(to_pe));
    return successor_.address() != next;
  }
  bool move_first(std::uint32_t to_pe) override {
    return keys_.is_first() && hand_over(to_pe) != this_process<range_process>().address();
  }

  void begin(const range_content& c, std::uint32_t limit) override {
    change now(*this);
    now.show_later();
    setup_.limit = limit;
    unpacker u(c.keys);
    keys_type keys = keys_type::unpack(u);
    this->take_items(c);
    keys_.take(std::move(keys));
    successor_ = remote<chained_range>(c.successor);
  }
  range_content give_up(const address& to, std::uint64_t version, std::uint64_t items) override {
    if (!keys_.is_active() || items_.size() > items) return {};
    const change now(*this);
    range_content c = this->content_from({}, keys_.own());
    given_version_ = std::max(version, keys_.own().version) + 1;
    keys_.give_back(to, given_version_);
    return c;
  }
  bytes end_give_up(bool taken) override {
    if (given_version_ == 0) return {};
    const change now(*this);
    const std::uint64_t given = std::exchange(given_version_, 0);
    if (taken) {
      this->let_go();
      return {};
    }
    keys_.regain(given + 1);
    bytes stay;
    keys_.own().pack_to(stay);
    return stay;
  }
  address hand_over(std::uint32_t to_pe) override {
    const address self = this_process<range_process>().address();
    if (!keys_.is_active() || to_pe == this_pe()) return self;
    const change now(*this);
    const remote<range_process> fresh = give_to_another(setup_.root, {}, to_pe);
    if (!fresh) return self;
    this->let_go();
    return fresh.address();
  }
  range_load load() override {
    return {this_process<range_process>().address(),
            successor_.address(),
            keys_.is_active(),
            keys_.is_first(),
            items_.size(),
            load_.requests(),
            load_.busy_ns(),
            load_.client_pe(),
            load_.client_votes()};
  }

 private:
  using base::items_;
  using base::keys_;
  using base::successor_;

  static remote<chained_range> chained_at(const remote<range_process>& r) { return remote<chained_range>(r.address()); }

  [[nodiscard]] std::uint64_t executed() const noexcept override { return load_.requests(); }
  /// Whether some of them may change something.
  bool unpack_all(std::uint32_t count, std::span<const std::byte> packed) {
    if (requests_.size() < count) requests_.resize(count);
    bool writes = false;
    unpacker u(packed);
    for (std::uint32_t i = 0; i < count; ++i) {
      unpacker one = u;
      skip_request<Key, Value>(u);
      requests_[i].begin = one.position();
      try {
        unpack(one, requests_[i]);
      } catch (...) {
        requests_[i].operation = list_operation::unreadable;
      }
      writes |= may_write(requests_[i].operation);
    }
    return writes;
  }
  void serve_one(request& r, std::span<const std::byte> packed, std::uint64_t known, refused_requests<Key>& refused) {
    if (refused.all()) {
      refused.behind(packed);
      return;
    }
    if (r.operation == list_operation::unreadable) [[unlikely]] {
      unpacker u(packed);
      unpack(u, r);  // throws why
      r.leaf = items_.find_leaf(r.key);
      r.hint = leaves::no_hint;
    }
    if constexpr (!std::is_arithmetic_v<Key>) {
      if (r.hint == leaves::not_found_yet) [[unlikely]] {
        r.leaf = items_.find_leaf(r.key);
        r.hint = leaves::no_hint;
      }
    }
    if (!belongs_here(r)) [[unlikely]] {
      refused.moved(place_of(r), packed);
    } else if (has_key(r.operation) && keys_.has_come_back(r.key, known)) [[unlikely]] {
      refused.moved(&keys_.own(), packed);
    } else if (is_point(r.operation)) {
      execute_at(items_, r, answer_);
    } else if (!look_further(r, answer_)) {
      refused.before();
    }
  }
  [[nodiscard]] bool belongs_here(const request& r) const {
    if (has_key(r.operation)) return keys_.owns(r.key);
    return r.operation == list_operation::last ? keys_.is_last() : keys_.is_first();
  }
  /// Where a request belongs that does not belong here; null if nobody knows.
  [[nodiscard]] const keys_type* place_of(const request& r) const {
    if (has_key(r.operation)) return keys_.find(r.key);
    return r.operation == list_operation::last ? keys_.find_last() : keys_.find_first();
  }
  void split_if_large() {
    if (items_.size() <= setup_.limit || splitting_ || !keys_.is_active()) return;
    splitting_ = true;
    spawn_here([self = this_process<chained_range>(), items = setup_.limit] {  // behind this batch
      tell_unless_lost([&] { self->split(items); });
    });
  }
  /// Gives the keys from `from` on (none: all) to another range, on that PE if one is given. Null
  /// if there is none: nothing has changed then.
  remote<range_process> give_to_another(const remote<service_root>& root, const std::optional<Key>& from,
                                        std::optional<std::uint32_t> to_pe) {
    remote<range_process> fresh;
    key_ownership<Key> behind;
    keys_type given;
    std::uint64_t items = 0;
    bytes least;
    try {
      if (from) pack(least, *from);
      const range_place place = to_pe ? root->place_on(*to_pe) : root->next_place();
      fresh = place.idle ? place.idle : remote<range_process>(spawn<list_range>(pe(place.pe), setup_));
      behind = keys_;
      given = behind.give(from, fresh.address());
      const range_content content = this->content_from(from, given);
      items = content.count;
      chained_at(fresh)->begin(content, setup_.limit);
    } catch (const node_lost&) {  // the root or that PE is lost: the range stays as it is
      return {};
    } catch (const process_gone&) {
      return {};
    } catch (const stopped&) {
      throw;
    // the program's keys and values cannot travel: they stay, and a range that is to split waits
    // until it is twice as large
    } catch (...) {
      if (from)
        setup_.limit = static_cast<std::uint32_t>(std::min<std::uint64_t>(2 * items_.size(), tuning::automatic));
      if (fresh) tell_unless_lost([&] { root->retire(fresh); });
      return {};
    }
    keys_ = std::move(behind);
    tell_unless_lost([&] {
      if (!from) {
        root->replace(this_process<range_process>(), fresh, given.version);
        return;
      }
      root->add(std::move(least), fresh, given.version);
    });
    // A large batch makes more than two ranges. Not before the root knows of the first one.
    if (items > setup_.limit)
      spawn_here([to = chained_at(fresh), limit = setup_.limit] { tell_unless_lost([&] { to->split(limit); }); });
    return fresh;
  }
  template <class F>
  static void tell_unless_lost(F f) {
    try {
      f();
    } catch (const node_lost&) {
    } catch (const process_gone&) {
    }
  }

  /// Operations that may depend on the ranges that follow. False if a range before this one has to
  /// answer.
  bool look_further(request& r, packer& answer) {
    bytes item;
    switch (r.operation) {
      case list_operation::size:
        pack(answer, list_answer::number);
        pack(answer, this->count_from_here());
        return true;
      case list_operation::after:
        if (const auto p = items_.lower_bound(r.key, true); !items_.is_end(p)) {
          this->pack_item(item, p);
        } else if (successor_) {
          item = successor_->first_item();
        }
        break;
      case list_operation::first:
        item = this->first_item();
        break;
      default:
        item = this->last_item();
        if (item.empty() && !keys_.is_first()) return false;
    }
    pack(answer, item.empty() ? list_answer::no : list_answer::item);
    answer.append(item);
    return true;
  }

  range_setup setup_;
  std::vector<request> requests_;
  packer answer_;
  load_meter load_;
  range_report report_;
  bool splitting_ = false;
  std::uint64_t given_version_ = 0;  // of keys that its predecessor is about to take
};

}  // namespace orrery::service
