// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/detail/key_ownership.hpp>
#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/detail/whole_changes.hpp>
#include <orrery/service/root.hpp>
#include <orrery/service/session_core.hpp>
#include <orrery/service/sorted_leaves.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery::service {

/// Knows which range of an ordered list owns which keys.
///
/// Problem: requests must go straight to the range of their key, while ranges split, join and move
/// without telling anybody.
///
/// It begins with the directory of the root, and learns from answers that say `moved`: what is
/// newer than what it knows. A request that was sent to the old range is repeated; session_core
/// keeps the order meanwhile.
///
/// Base of list_session and list_head; used by one process only. Invariant: the keys from least_[i]
/// to before least_[i + 1] go to the route at_[i], which owned all of them once, from the moment
/// versions_[i] on. All keys are covered; the first interval has no least key.
template <class Key, class Value>
class list_router : protected session_core {
 protected:
  /// Throws process_gone if the list has ended.
  list_router(const opening& all, const session_options& o) : session_core(o) {
    if (all.directory.empty()) throw process_gone("an ordered list that has ended");
    if (o.order == consistency::total) {
      to_one(all.head);
      return;
    }
    struct entry {
      std::optional<Key> least;
      const directory_entry* of;
    };
    std::vector<entry> entries;
    for (const directory_entry& e : all.directory) {
      std::optional<Key> least;
      if (!e.least.empty()) least = unpacker(e.least).template take<Key>();
      entries.push_back({std::move(least), &e});
    }
    std::ranges::sort(entries,
                      [](const auto& a, const auto& b) { return b.least && (!a.least || *a.least < *b.least); });
    for (entry& e : entries) {
      least_.push_back(e.least ? std::move(*e.least) : Key{});
      at_.push_back(route_to(e.of->owner));
      versions_.push_back(e.of->version);
      know(at_.back(), e.of->version);
    }
  }
  /// One process takes all requests.
  list_router(remote<range_process> all, const session_options& o) : session_core(o) { to_one(all); }

  using session_core::number;
  using session_core::route_number;

  [[nodiscard]] route_number route_at(const Key& k) const {
    return at_[count_not_greater(least_.data() + 1, least_.size() - 1, k)];
  }
  [[nodiscard]] route_number first_route() const noexcept { return at_.front(); }
  [[nodiscard]] route_number last_route() const noexcept { return at_.back(); }
  /// Where an interval of keys begins.
  [[nodiscard]] remote<range_process> owner_at(const std::optional<Key>& from) const {
    return owner_of(from ? route_at(*from) : first_route());
  }

  route_number route_of(unpacker& u) const override {
    unpacker one = u;
    skip_request<Key, Value>(u);
    const auto o = one.take<list_operation>();
    if (has_key(o)) return route_at(one.take<Key>());
    return o == list_operation::last ? last_route() : first_route();
  }

  /// f(i, answer, unpacker of what follows it) for each request numbers[i] of a batch that was
  /// executed. Makes the others again.
  template <class F>
  void each_answer(std::span<const number> numbers, std::span<const std::byte> answer, F f) {
    unpacker u(answer);
    std::vector<std::pair<number, std::span<const std::byte>>> back;
    bool moved = false;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const number n = numbers[i];
      const auto what = u.take<list_answer>();
      if (what == list_answer::moved || what == list_answer::behind) {
        moved = moved || what == list_answer::moved;
        back.emplace_back(n, u.take_bytes(u.take<std::uint32_t>()));
        continue;
      }
      if (what == list_answer::before) [[unlikely]] {  // the last range was empty
        static constexpr list_operation again = list_operation::last_of_all;
        back.emplace_back(n, std::as_bytes(std::span(&again, 1)));
        continue;
      }
      f(i, what, u);
      done();
    }
    std::exception_ptr why;
    if (moved) {
      try {
        learn(u);
      } catch (...) {  // a comparison of the program's
        why = std::current_exception();
      }
    }
    for (const auto& [n, request] : back) {
      if (why == nullptr) {
        repeat(n, request);
      } else {
        give_up(n, why);
      }
    }
  }

  /// Keys that have other owners.
  void learn(unpacker& u) {
    for (auto n = u.take<std::uint32_t>(); n != 0; --n) learn(owned_keys<Key>::unpack(u));
  }
  /// f(answer, unpacker of what follows it) for the answer that `ask(process)` gets from the range
  /// where the interval begins. Parks.
  template <class Ask, class F>
  void ask_owner(const std::optional<Key>& from, Ask ask, F f) {
    for (;;) {
      const bytes answer = or_say_lost(loss(), [&] { return ask(owner_at(from)); });
      unpacker u(answer);
      const auto what = u.take<list_answer>();
      if (what != list_answer::moved) {
        f(what, u);
        return;
      }
      learn(u);
    }
  }

  static constexpr std::string_view keys_are_lost =
      "the keys that this ordered list had there are lost with their values: its lost() names them, as does 'orrery list "
      "WORLD NAME statistics', and requests for other keys go on";
  [[nodiscard]] std::string_view loss() const noexcept override {
    return options().order == consistency::total ? std::string_view(
                                                       "the head of this ordered list was there, which "
                                                       "requests of the level `total` need: open sessions "
                                                       "of other levels, or make another list")
                                                 : keys_are_lost;
  }

  /// Parks until nothing is outstanding.
  void settle() {
    while (outstanding() != 0) await_more_answers();
  }

 private:
  void to_one(remote<range_process> all) {
    least_.emplace_back();
    at_.push_back(route_to(all));
    versions_.push_back(0);
  }
  route_number route_to(remote<range_process> owner) {
    const auto [at, fresh] = routes_.emplace(owner.address(), route_number{});
    if (fresh) at->second = add_route(owner);
    return at->second;
  }
  // The place of the interval that begins with k.
  std::size_t place_beginning(const Key& k) {
    const std::size_t place = count_not_greater(least_.data() + 1, least_.size() - 1, k);
    if (place != 0 && !(least_[place] < k)) return place;
    const auto behind = static_cast<std::ptrdiff_t>(place) + 1;
    make_room_in(at_);
    make_room_in(versions_);
    insert_whole(least_, place + 1, Key(k));
    at_.insert(at_.begin() + behind, at_[place]);
    versions_.insert(versions_.begin() + behind, versions_[place]);
    return place + 1;
  }
  void learn(const owned_keys<Key>& keys) {
    const route_number fresh = route_to(remote<range_process>(keys.owner));
    const std::size_t begin = keys.from ? place_beginning(*keys.from) : 0;
    const std::size_t end = keys.to ? place_beginning(*keys.to) : least_.size();
    std::vector<route_number> old;
    for (std::size_t i = begin; i < end; ++i) {
      if (versions_[i] >= keys.version) continue;  // what was learnt before is newer
      if (at_[i] != fresh && std::ranges::find(old, at_[i]) == old.end()) old.push_back(at_[i]);
      at_[i] = fresh;
      versions_[i] = keys.version;
    }
    know(fresh, keys.version);
    for (const route_number r : old) divide(r, fresh);
    for (std::size_t i = std::min(end, least_.size() - 1); i != 0 && i + 1 > begin; --i) join_with_previous(i);
  }
  void join_with_previous(std::size_t i) {
    if (at_[i] != at_[i - 1]) return;
    const auto at = static_cast<std::ptrdiff_t>(i);
    erase_whole(least_, i);
    versions_[i - 1] = std::min(versions_[i - 1], versions_[i]);
    at_.erase(at_.begin() + at);
    versions_.erase(versions_.begin() + at);
  }

  std::map<address, route_number> routes_;
  // the directory: which keys belong to which route; the first has no least key
  std::vector<Key> least_;
  std::vector<route_number> at_;
  std::vector<std::uint64_t> versions_;  // see owned_keys
};

}  // namespace orrery::service
