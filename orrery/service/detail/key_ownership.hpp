// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/packing.hpp>
#include <orrery/wire/address.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace orrery::service {

/// An interval of keys, and a process that owned it from a moment on. `version` tells such moments
/// apart: whenever keys go from one process to another, theirs grows.
template <class Key>
struct owned_keys {
  std::optional<Key> from = {};  ///< none: no bound
  std::optional<Key> to = {};  ///< not with it; none: no bound
  address owner = {};
  std::uint64_t version = 0;

  [[nodiscard]] bool has(const Key& k) const { return !(from && k < *from) && !(to && !(k < *to)); }
  template <class To>
  void pack_to(To& b) const {
    pack(b, static_cast<std::uint8_t>((from ? 1 : 0) | (to ? 2 : 0)));
    if (from) pack(b, *from);
    if (to) pack(b, *to);
    pack(b, owner);
    pack(b, version);
  }
  /// Throws bad_message.
  [[nodiscard]] static owned_keys unpack(unpacker& u) {
    owned_keys o;
    const auto bounds = u.take<std::uint8_t>();
    if ((bounds & 1U) != 0) o.from = u.take<Key>();
    if ((bounds & 2U) != 0) o.to = u.take<Key>();
    o.owner = u.take<address>();
    o.version = u.take<std::uint64_t>();
    return o;
  }
};

/// Which keys a range owns, and where those went that it owned once.
///
/// Problem: sessions learn late that keys have another owner. A range that is asked for them must
/// say where they are, also if it was split, joined with another one, moved, or has been made a
/// range for other keys meanwhile.
///
/// Problem, too: a session has sent a request for a key that is not here. The key comes back, and
/// its next request, which is on its way already, would overtake the first one. So the range takes
/// requests for keys that have come back from those only that know it (*regained*).
///
/// It owns one interval or none. It knows to whom it last gave each key that it gave away. So a
/// session that asks on follows the keys in the order of the moments at which they changed hands,
/// and arrives.
///
/// Part of a range; used by this process only. Invariant: what was given away does not overlap.
template <class Key>
class key_ownership {
 public:
  using keys = owned_keys<Key>;

  [[nodiscard]] bool owns(const Key& k) const { return active_ && own_.has(k); }
  [[nodiscard]] bool is_active() const noexcept { return active_; }
  [[nodiscard]] bool is_first() const noexcept { return active_ && !own_.from; }
  [[nodiscard]] bool is_last() const noexcept { return active_ && !own_.to; }
  /// The interval that it owns, or owned last.
  [[nodiscard]] const keys& own() const noexcept { return own_; }

  void take(keys k) {
    own_ = std::move(k);
    active_ = true;
    if (std::ranges::any_of(given_, [&](const keys& g) { return overlap(g, own_); })) regained_ = own_.version;
  }
  /// The keys of the range behind are its own, too.
  void take_next(const keys& next) {
    own_.to = next.to;
    own_.version = std::max(own_.version, next.version) + 1;
    if (std::ranges::any_of(given_, [&](const keys& g) { return overlap(g, next); })) regained_ = own_.version;
  }
  /// Whether the key has come back since `known`.
  [[nodiscard]] bool has_come_back(const Key& k, std::uint64_t known) const {
    return known < regained_ && find(k) != nullptr;
  }
  /// Its keys from `from` on (none: all) go to another range; returns what that owns.
  keys give(const std::optional<Key>& from, address to) {
    keys given{from ? from : own_.from, own_.to, to, own_.version + 1};
    note(given);
    if (from) {
      own_.to = from;
    } else {
      active_ = false;
    }
    return given;
  }
  /// All goes to the range before it, with this version.
  void give_back(address to, std::uint64_t version) {
    note({own_.from, own_.to, to, version});
    active_ = false;
  }
  /// The range before it could not take them: it owns them again, with a later version than that.
  void regain(std::uint64_t version) {
    own_.version = regained_ = version;
    active_ = true;
  }
  /// Others have these keys: who asks for them is sent there.
  void learn(keys theirs) { note(std::move(theirs)); }

  /// Where the key went; null if it was never here.
  [[nodiscard]] const keys* find(const Key& k) const {
    const auto at = std::ranges::find_if(given_, [&](const keys& g) { return g.has(k); });
    return at == given_.end() ? nullptr : &*at;
  }
  /// Where what is before, or behind, all keys went.
  [[nodiscard]] const keys* find_first() const {
    return given_.empty() || given_.front().from ? nullptr : &given_.front();
  }
  [[nodiscard]] const keys* find_last() const { return given_.empty() || given_.back().to ? nullptr : &given_.back(); }

 private:
  static bool ends_before(const std::optional<Key>& a, const std::optional<Key>& b) { return a && b && !(*b < *a); }

  static bool overlap(const keys& a, const keys& b) { return !ends_before(a.to, b.from) && !ends_before(b.to, a.from); }

  void note(keys fresh) {
    std::vector<keys> all;
    all.reserve(given_.size() + 2);
    for (keys& g : given_) {
      if (!overlap(g, fresh)) {
        all.push_back(std::move(g));
        continue;
      }
      if (fresh.from && (!g.from || *g.from < *fresh.from)) all.push_back({g.from, fresh.from, g.owner, g.version});
      if (fresh.to && (!g.to || *fresh.to < *g.to)) all.push_back({fresh.to, g.to, g.owner, g.version});
    }
    const auto behind = std::ranges::find_if(all, [&](const keys& g) { return ends_before(fresh.to, g.from); });
    all.insert(behind, std::move(fresh));
    given_ = std::move(all);
  }

  keys own_;
  bool active_ = false;
  std::uint64_t regained_ = 0;  // the last version with which keys came back
  std::vector<keys> given_;  // ascending
};

}  // namespace orrery::service
