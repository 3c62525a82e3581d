// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/detail/list_messages.hpp>
#include <orrery/service/session_options.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

// In which order, and by which ways, a gate of a walking list sends requests off: the levels of
// consistency.
namespace orrery::service {

/// A request that the gate has not sent.
template <class Key>
struct waiting_request {
  std::uint64_t number = 0;
  list_operation operation = list_operation::find;
  Key key{};
  bytes packed;
};

/// The treatment of requests by a rule.
template <class Key>
class walk_sender {
 public:
  using request = waiting_request<Key>;
  walk_sender() = default;
  walk_sender(const walk_sender&) = delete;
  walk_sender& operator=(const walk_sender&) = delete;

  /// To the head.
  virtual void send_to_head(std::span<const request> run) = 0;
  /// Through the best shortcut whose least key is not greater than `bound` (none: any); without one
  /// to the head. The keys of the run ascend. `jumps`: list processes may use shortcuts, too.
  virtual void send(std::span<const request> run, const std::optional<Key>& bound, bool jumps) = 0;
  /// The least key of the shortcut that send() would use now; none: the head.
  [[nodiscard]] virtual std::optional<Key> way_of(std::span<const request> run,
                                                  const std::optional<Key>& bound) const = 0;

 protected:
  ~walk_sender() = default;
};

/// The rule of a level, for one session.
///
/// Owned by a gate; used by its process only. Requests are added in the order in which the client
/// has made them.
template <class Key>
class walk_rule {
 public:
  using request = waiting_request<Key>;
  explicit walk_rule(walk_sender<Key>& to) : to_(to) {}
  walk_rule(const walk_rule&) = delete;
  walk_rule& operator=(const walk_rule&) = delete;
  virtual ~walk_rule() = default;

  virtual void add(std::vector<request> all) = 0;
  virtual void ended(std::uint64_t) {}
  /// Its shortcut was stale: it was sent to the head.
  virtual void went_to_head(std::uint64_t) {}

 protected:
  walk_sender<Key>& to_;
};

/// `total`: no shortcuts; requests take effect in the order of their arrival at the head.
template <class Key>
class total_walk final : public walk_rule<Key> {
 public:
  using walk_rule<Key>::walk_rule;
  void add(std::vector<waiting_request<Key>> all) override { this->to_.send_to_head(all); }
};

/// `unordered`: each request by the shortest way that is known, also on its way.
template <class Key>
class unordered_walk final : public walk_rule<Key> {
 public:
  using walk_rule<Key>::walk_rule;
  void add(std::vector<waiting_request<Key>> all) override {
    for (const auto& r : all) this->to_.send({&r, 1}, {}, true);
  }
};

/// `per_key`: the same, but a request waits until the one before it for the same key is answered.
/// So it is overtaken by none, also where a shortcut is stale.
template <class Key>
class per_key_walk final : public walk_rule<Key> {
 public:
  using request = waiting_request<Key>;
  using walk_rule<Key>::walk_rule;
  void add(std::vector<request> all) override {
    for (request& r : all) {
      if (!has_key(r.operation)) {
        this->to_.send({&r, 1}, {}, true);
        continue;
      }
      const auto [at, first] = keys_.try_emplace(r.key);
      if (first) {
        go(at, r);
      } else {
        at->second.push_back(std::move(r));
      }
    }
  }
  void ended(std::uint64_t n) override {
    const auto done = flying_.find(n);
    if (done == flying_.end()) return;
    const auto at = done->second;
    flying_.erase(done);
    if (at->second.empty()) {
      keys_.erase(at);
      return;
    }
    const request next = std::move(at->second.front());
    at->second.pop_front();
    go(at, next);
  }

 private:
  using keys = std::map<Key, std::deque<request>>;  // those that wait
  void go(typename keys::iterator at, const request& r) {
    flying_.emplace(r.number, at);
    this->to_.send({&r, 1}, {}, true);
  }
  keys keys_;
  std::map<std::uint64_t, typename keys::iterator> flying_;
};

/// `sequential`: all requests take effect in the order in which they were made, for all clients to
/// see.
///
/// The requests are cut into runs of ascending keys. A run goes as one message through one shortcut
/// that is not behind its first key, and the next run begins when all of it is answered.
///
/// Why this is right: the requests of a run enter the list at one process, one after the other, and
/// go forward on one way on which none overtakes another. A request has a key that is not less than
/// that of the request before it, so it passes the process where that one takes effect, or takes
/// effect there, later. So the moments at which the requests take effect are in their order within
/// a run, and between runs because of the wait. Requests of all clients in the order of these
/// moments are one order that explains all replies, and keeps the order of each client. If the
/// shortcut is stale for a part of the run, that is its end, which goes as one message to the head,
/// behind what was executed. Requests without a key look at more than one process; each is a run.
template <class Key>
class sequential_walk final : public walk_rule<Key> {
 public:
  using request = waiting_request<Key>;
  using walk_rule<Key>::walk_rule;
  void add(std::vector<request> all) override {
    for (request& r : all) waiting_.push_back(std::move(r));
    go();
  }
  void ended(std::uint64_t) override {
    --flying_;
    go();
  }

 private:
  void go() {
    if (flying_ != 0 || waiting_.empty()) return;
    std::vector<request> run;
    do {
      run.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    } while (!waiting_.empty() && follows(run.back(), waiting_.front()));
    flying_ = run.size();
    this->to_.send(run, {}, false);
  }
  static bool follows(const request& a, const request& b) {
    return has_key(a.operation) && has_key(b.operation) && !(b.key < a.key);
  }
  std::deque<request> waiting_;
  std::size_t flying_ = 0;
};

/// `sequential_of_the_paper` (section 3.6): a request goes through no shortcut behind the earliest
/// one that an outstanding request has used. This rule is not sequential between clients with
/// windows of two or more: see walk_rules.test.cpp.
template <class Key>
class walk_of_the_paper final : public walk_rule<Key> {
 public:
  using request = waiting_request<Key>;
  using walk_rule<Key>::walk_rule;
  void add(std::vector<request> all) override {
    for (const request& r : all) {
      if (at_head_ != 0) {
        note(r.number, {});
        this->to_.send_to_head({&r, 1});
        continue;
      }
      const auto bound = used_.empty() ? std::nullopt : std::optional<Key>(used_.begin()->first);
      note(r.number, this->to_.way_of({&r, 1}, bound));
      this->to_.send({&r, 1}, bound, false);
    }
  }
  void ended(std::uint64_t n) override {
    const auto at = flying_.find(n);
    if (at == flying_.end()) return;
    forget(at->second);
    flying_.erase(at);
  }
  void went_to_head(std::uint64_t n) override {
    ended(n);
    note(n, {});
  }

 private:
  void note(std::uint64_t n, const std::optional<Key>& used) {
    flying_.emplace(n, used);
    if (used) {
      ++used_[*used];
    } else {
      ++at_head_;
    }
  }
  void forget(const std::optional<Key>& used) {
    if (!used) {
      --at_head_;
    } else if (const auto at = used_.find(*used); --at->second == 0) {
      used_.erase(at);
    }
  }
  std::map<std::uint64_t, std::optional<Key>> flying_;  // which shortcut they have used
  std::map<Key, std::uint64_t> used_;  // and how many, by shortcuts
  std::uint64_t at_head_ = 0;
};

template <class Key>
[[nodiscard]] wire::unique_ptr<walk_rule<Key>> make_walk_rule(consistency order, walk_sender<Key>& to) {
  switch (order) {
    case consistency::unordered:
      return wire::make_unique<unordered_walk<Key>>(to);
    case consistency::sequential:
      return wire::make_unique<sequential_walk<Key>>(to);
    case consistency::sequential_of_the_paper:
      return wire::make_unique<walk_of_the_paper<Key>>(to);
    case consistency::total:
      return wire::make_unique<total_walk<Key>>(to);
    default:
      return wire::make_unique<per_key_walk<Key>>(to);
  }
}

}  // namespace orrery::service
