// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/list_messages.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace orrery::service {

/// Knows which range of an ordered list owns which keys.
///
/// Problem: requests must go straight to the range of their key, while ranges split without telling anybody.
///
/// It begins with the directory of the root, and learns from answers that say `moved`. A request that was sent to the old range
/// is repeated; session_core keeps the order meanwhile.
///
/// Base of list_session and list_head; used by one process only. Invariant: least_[i] is the least key of the route at_[i], in
/// ascending order; the first range has none.
template <class Key, class Value>
class list_router : protected session_core {
 protected:
  /// Throws process_gone if the list has ended.
  list_router(const opening& all, const session_options& o) : session_core(o) {
    if (all.directory.empty()) throw process_gone("an ordered list that has ended");
    if (o.order == consistency::total) {
      least_.emplace_back();
      at_.push_back(add_route(all.head));
      return;
    }
    std::vector<std::pair<std::optional<Key>, remote<range_process>>> entries;
    for (const directory_entry& e : all.directory) {
      std::optional<Key> least;
      if (!e.least.empty()) least = unpacker(e.least).template take<Key>();
      entries.emplace_back(std::move(least), e.owner);
    }
    std::ranges::sort(entries,
                      [](const auto& a, const auto& b) { return b.first && (!a.first || *a.first < *b.first); });
    for (auto& [least, owner] : entries) {
      least_.push_back(least ? std::move(*least) : Key{});
      at_.push_back(add_route(owner));
    }
  }
  /// One process takes all requests.
  list_router(remote<range_process> all, const session_options& o) : session_core(o) {
    least_.emplace_back();
    at_.push_back(add_route(all));
  }

  using session_core::number;
  using session_core::route_number;

  [[nodiscard]] route_number route_at(const Key& k) const noexcept {
    return at_[count_not_greater(least_.data() + 1, least_.size() - 1, k)];
  }
  [[nodiscard]] route_number first_route() const noexcept { return at_.front(); }
  [[nodiscard]] route_number last_route() const noexcept { return at_.back(); }
  /// Where an interval of keys begins.
  [[nodiscard]] remote<range_process> owner_at(const std::optional<Key>& from) const noexcept {
    return owner_of(from ? route_at(*from) : first_route());
  }

  route_number route_of(unpacker& u) const override {
    const auto o = u.take<list_operation>();
    route_number r = o == list_operation::last ? last_route() : first_route();
    if (has_key(o)) r = route_at(u.take<Key>());
    if (has_value(o)) u.skip<Value>();
    if (o == list_operation::compare_and_update) u.skip<Value>();
    return r;
  }

  /// f(number, answer, unpacker of what follows it) for each request of a batch that was executed. Makes the others
  /// again.
  template <class F>
  void each_answer(route_number from, std::span<const number> numbers, std::span<const std::byte> answer, F f) {
    unpacker u(answer);
    std::vector<std::pair<number, std::span<const std::byte>>> back;
    bool moved = false;
    for (const number n : numbers) {
      const auto what = u.take<list_answer>();
      if (what == list_answer::moved || what == list_answer::behind) {
        moved = moved || what == list_answer::moved;
        back.emplace_back(n, u.take_bytes(u.take<std::uint32_t>()));
        continue;
      }
      if (what == list_answer::before) [[unlikely]] {
        const bytes found = last_before(from);
        unpacker v(found);
        const auto w = v.take<list_answer>();
        f(n, w, v);
      } else {
        f(n, what, u);
      }
      done();
    }
    if (moved) learn(u);
    for (const auto& [n, request] : back) repeat(n, request);
  }

  /// Ranges that were split off.
  void learn(unpacker& u) {
    for (auto n = u.take<std::uint32_t>(); n != 0; --n) {
      Key least = u.take<Key>();
      const remote<range_process> owner(u.take<address>());
      const std::size_t place = count_not_greater(least_.data() + 1, least_.size() - 1, least);
      if (place != 0 && !(least_[place] < least)) continue;  // known
      const route_number old = at_[place];
      const route_number fresh = add_route(owner);
      const auto behind = static_cast<std::ptrdiff_t>(place) + 1;
      least_.insert(least_.begin() + behind, std::move(least));
      at_.insert(at_.begin() + behind, fresh);
      divide(old, fresh);
    }
  }

  /// Parks until nothing is outstanding.
  void settle() {
    while (outstanding() != 0) (void)await_answers();
  }

 private:
  // The last item is in none of the ranges from that of `from` on: asks those before, one after the other.
  bytes last_before(route_number from) {
    bytes answer;
    try {
      auto i = static_cast<std::size_t>(std::ranges::find(at_, from) - at_.begin());
      bytes found;
      while (i != 0 && found.empty()) found = owner_of(at_[--i])->last_item();
      pack(answer, found.empty() ? list_answer::no : list_answer::item);
      answer.insert(answer.end(), found.begin(), found.end());
    } catch (const stopped&) {
      throw;
    } catch (const error& e) {
      answer.clear();
      pack_failure(answer, e);
    }
    return answer;
  }

  std::vector<Key> least_;  // the directory: which keys belong to which route; the first has no least key
  std::vector<route_number> at_;
};

}  // namespace orrery::service
