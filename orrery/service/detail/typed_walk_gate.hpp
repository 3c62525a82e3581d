// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/service/detail/kept_snapshots.hpp>
#include <orrery/service/detail/key_interval.hpp>
#include <orrery/service/detail/key_ownership.hpp>
#include <orrery/service/detail/walk_gate.hpp>
#include <orrery/service/detail/walk_manager.hpp>
#include <orrery/service/detail/walk_rules.hpp>
#include <orrery/service/detail/walk_site.hpp>
#include <orrery/service/presence.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace orrery::service {

/// The gate of a list with these types: sends requests off by the rule of its session's level,
/// through the shortcuts of its PE.
///
/// A request whose shortcut was stale is repeated once, to the head and without shortcuts, as the
/// paper has it: there it is always taken.
template <class Key, class Value>
class typed_walk_gate final : public walk_gate, walk_sender<Key> {
 public:
  typed_walk_gate(remote<walk_process> head, std::uintptr_t site, consistency order)
      : head_(head),
        site_(*reinterpret_cast<walk_site<Key>*>(site)),
        order_(order),
        rule_(make_walk_rule<Key>(order, *this)) {}

  void stale(std::uint64_t first, std::uint32_t count, std::span<const std::byte> requests) override {
    site_.stale += count;
    if (first >= rule_from_)
      or_begin_again([&] {
        for (std::uint32_t i = 0; i < count; ++i) rule_->went_to_head(first + i);
      });
    enter(head_, first, count, requests, false);
  }

  // All processes of the list up to the end of the interval stand still while it is collected.
  bytes scan(std::uint32_t limit, std::span<const std::byte> interval) override {
    const bytes items = collect(limit, interval).items;
    const std::uint32_t n = count_items<Key, Value>(items);
    bytes answer;
    // no: there is nothing behind these
    pack(answer, n < limit ? list_answer::no : list_answer::yes);
    pack(answer, n);
    answer.insert(answer.end(), items.begin(), items.end());
    return answer;
  }
  bytes snapshot(std::span<const std::byte> interval) override {
    bytes answer;
    pack(answer, list_answer::yes);
    const bytes items = collect(~std::uint64_t{0}, interval).items;
    answer.insert(answer.end(), items.begin(), items.end());
    return answer;
  }
  bytes pin(remote<presence> stream, std::span<const std::byte> interval) override {
    walk_part all = collect(~std::uint64_t{0}, interval);
    kept_.keep(stream.address(), std::move(all.items));
    when_gone(stream, [me = remote<walk_gate>(this_process<walk_gate>()), manager = site_.manager, stream] {
      me->unpin(stream);
      manager->end_if_unused(me);
    });
    this->begin_stream();
    const auto keys = key_interval<Key>::unpack(interval);
    bytes answer;
    pack(answer, list_answer::yes);
    owned_keys<Key>{keys.from, keys.to, this_process<range_process>().address(), all.version}.pack_to(answer);
    pack(answer, std::uint64_t{0});
    return answer;
  }
  bytes read_pin(remote<presence> stream, std::uint32_t limit) override { return kept_.read(stream.address(), limit); }
  void unpin(remote<presence> stream) override {
    kept_.drop(stream.address());
    this->end_stream();
  }

 private:
  using request = waiting_request<Key>;

  void accept(std::uint64_t first, std::uint32_t count, std::span<const std::byte> requests) override {
    show_granularity(site_.granularity);
    show_forwards(site_.forwards);
    seen_ = first + count;
    std::vector<request> all(count);
    unpacker u(requests);
    for (request& w : all) {
      const std::byte* const begin = u.position();
      unpacker one = u;
      skip_request<Key, Value>(u);
      w.number = first++;
      w.operation = one.take<list_operation>();
      if (has_key(w.operation)) w.key = one.take<Key>();
      w.packed.assign(begin, u.position());
    }
    incoming_.push_back(std::move(all));
    if (adding_) return;  // a send parks: what comes meanwhile stays behind
    adding_ = true;
    while (!incoming_.empty() && !this->is_over()) {
      std::vector<request> next = std::move(incoming_.front());
      incoming_.pop_front();
      or_begin_again([&] { rule_->add(std::move(next)); });
    }
    adding_ = false;
  }
  void ended(std::uint64_t n) override {
    or_begin_again([&] { rule_->ended(n); });
  }
  void tell_of_loss(const std::string& why) override { post(site_.manager)->list_lost(why); }
  walk_part collect(std::uint64_t limit, std::span<const std::byte> interval) {
    try {
      return head_->collect(limit, interval, 0);
    } catch (const node_lost& e) {
      this->fail(e.what());
      throw;
    }
  }
  // A comparison of keys that throws leaves a rule that nobody knows the state of: all that is open
  // fails, also what was to be added, and another rule begins. None of what has failed reaches that
  // one, and no more of it is sent.
  template <class F>
  void or_begin_again(F f) {
    struct use {  // a rule may park, and is used yet when another one has begun
      typed_walk_gate& of;
      explicit use(typed_walk_gate& g) : of(g) { ++of.uses_; }
      use(const use&) = delete;
      use& operator=(const use&) = delete;
      ~use() {
        if (--of.uses_ == 0) of.old_rules_.clear();
      }
    } const now(*this);
    try {
      f();
    } catch (const stopped&) {
      throw;
    } catch (...) {
      old_rules_.push_back(std::exchange(rule_, make_walk_rule<Key>(order_, *this)));
      incoming_.clear();
      rule_from_ = seen_;
      this->fail_open(std::current_exception());
    }
  }

  void send_to_head(std::span<const request> run) override { post_run(head_, run, false); }
  std::optional<Key> way_of(std::span<const request> run, const std::optional<Key>& bound) const override {
    const auto s = shortcut_for(run, bound);
    return s ? std::optional<Key>(s->least) : std::nullopt;
  }
  void send(std::span<const request> run, const std::optional<Key>& bound, bool jumps) override {
    const auto s = shortcut_for(run, bound);
    post_run(s ? s->to : head_, run, jumps);
  }
  std::optional<shortcut<Key>> shortcut_for(std::span<const request> run, const std::optional<Key>& bound) const {
    const request& r = run.front();
    if (!has_key(r.operation)) {
      if (r.operation != list_operation::last) return {};
      return bound ? site_.table.find(*bound, false) : site_.table.last();
    }
    if (bound && *bound < r.key) return site_.table.find(*bound, false);
    const bool erases = std::ranges::any_of(
        run, [&](const request& q) { return q.operation == list_operation::erase && !(r.key < q.key); });
    return site_.table.find(r.key, erases);
  }
  void post_run(remote<walk_process> to, std::span<const request> run, bool jumps) {
    if (run.size() == 1) {
      enter(to, run.front().number, 1, run.front().packed, jumps);
      return;
    }
    bytes all;
    for (const request& r : run) all.insert(all.end(), r.packed.begin(), r.packed.end());
    enter(to, run.front().number, static_cast<std::uint32_t>(run.size()), all, jumps);
  }
  void enter(remote<walk_process> to, std::uint64_t first, std::uint32_t count, std::span<const std::byte> requests,
             bool jumps) {
    if (first < rule_from_) return;  // it has failed
    post(to)->enter(walk_request{remote<walk_gate>(this_process<walk_gate>()), first, 0, jumps}, count, requests);
  }

  remote<walk_process> head_;
  walk_site<Key>& site_;
  consistency order_;
  wire::unique_ptr<walk_rule<Key>> rule_;
  std::vector<wire::unique_ptr<walk_rule<Key>>> old_rules_;
  std::size_t uses_ = 0;  // of rules, by methods
  std::uint64_t seen_ = 0;  // the number of the next request
  std::uint64_t rule_from_ = 0;  // the first request that the rule may get; those before it are old
  std::deque<std::vector<request>> incoming_;
  bool adding_ = false;
  kept_snapshots<Key, Value> kept_;
};

}  // namespace orrery::service
