// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who decides at random, and knows what has to come of it.

#include "model.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <typeinfo>

namespace orrery::stress {

struct note {
  std::uint32_t from = 0;
  std::uint64_t number = 0;
  key k = 0;
  std::uint64_t size = 0;
  bool last = false;
  cargo payload;
  template <class A>
  void serialize(A& a) {
    a & from & number & k & size & last & payload;
  }
};

struct beginning {
  std::vector<remote<Server>> hubs;
  std::vector<remote<function>> participants;
};

struct report {
  std::uint32_t id = 0;
  std::vector<std::uint64_t> sent;  ///< to each hub
  std::uint64_t ticks = 0;
  std::uint64_t steps = 0;
  std::uint64_t dice = 0;  ///< the state of the dice: the same for the same decisions
};

struct assignment {
  std::uint64_t seed = 0;
  std::uint32_t id = 0;
  std::int64_t until_ns = 0;  ///< of the steady clock, which all nodes share
  std::uint64_t steps = 0;    ///< at most
  remote<function> main;
};

/// Answers with what it is sent, in the order of the tags and not of the arrivals.
inline void echo(remote<function> back, std::uint64_t first_tag, std::uint64_t rounds, std::uint64_t how) {
  const counted c;
  for (std::uint64_t tag = first_tag; tag < first_tag + rounds; ++tag) {
    auto payload = receive<cargo>(tag);
    pause(how + tag);
    send(back, std::move(payload), tag);
  }
}

/// One process function that spawns, calls, posts, destroys and waits as its dice say, and compares each result with what it
/// has to be. What it decides depends on its seed only, never on time or on others; so a run can be repeated.
class participant {
 public:
  participant(const assignment& a, beginning b)
      : who_(a),
        dice_(a.seed ^ (0x1000'0001ULL * (a.id + 1))),
        hubs_(std::move(b.hubs)),
        others_(std::move(b.participants)),
        sent_to_hub_(hubs_.size()),
        sent_to_(others_.size()),
        got_from_(others_.size()),
        ended_(others_.size()) {
    ended_[a.id] = true;
    for (auto& w : weights_) w = dice_.below(4) == 0 ? 0 : dice_.below(100);  // each likes other things
    weights_[0] += 10;
    weights_[3] += 10;
    for (const auto w : weights_) all_weights_ += w;
  }

  report run() {
    report r;
    while (r.steps < who_.steps && now() < who_.until_ns) {
      try {
        step();
      } catch (const std::exception& e) {
        check(false, fmt::format("participant {}, step {}: {} {}", who_.id, r.steps, typeid(e).name(), e.what()));
      }
      ++r.steps;
    }
    try {
      finish();
    } catch (const std::exception& e) {
      check(false, fmt::format("participant {} at its end: {} {}", who_.id, typeid(e).name(), e.what()));
    }
    r.id = who_.id;
    r.sent = sent_to_hub_;
    r.ticks = ticks_;
    r.dice = dice_.state();
    return r;
  }

 private:
  struct owned {
    remote<Server> at;
    std::uint64_t sent = 0;
  };
  struct data {
    remote<std::uint64_t[]> at;
    numbers model;
  };
  struct team {
    group<Member> at;
    numbers values;
  };
  struct asked {
    future<std::uint64_t> result;
    std::uint64_t expected;
    bool own = false;  ///< its way leads through servers that may be destroyed
  };

  static std::int64_t now() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  static void equal(std::uint64_t a, std::uint64_t b, std::string_view what) {
    check(a == b, fmt::format("{}: {} instead of {}", what, a, b));
  }
  placement somewhere() { return pe(static_cast<std::uint32_t>(dice_.below(world_pes()))); }
  template <class T>
  T& one_of(std::vector<T>& v) {
    return v[dice_.below(v.size())];
  }

  void step() {
    using operation = void (participant::*)();
    static constexpr operation operations[operation_count] = {
        &participant::call_server, &participant::ask,        &participant::collect,  &participant::post_server,
        &participant::make_server, &participant::end_server, &participant::use_hub,  &participant::chain_hubs,
        &participant::chain_own,   &participant::cycle,      &participant::throwing, &participant::use_data,
        &participant::make_team,   &participant::use_team,   &participant::echoing,  &participant::call_function,
        &participant::tell_other,  &participant::rest,
    };
    std::size_t n = dice_.below(all_weights_);
    std::size_t i = 0;
    while (n >= weights_[i]) n -= weights_[i++];
    (this->*operations[i])();
    hear_others();
  }

  // A server of its own, or a hub which all use; and the stamp for the next message to it.
  struct target {
    remote<Server> at;
    stamp next;
    std::uint64_t* sent;
  };
  target choose() {
    if (servers_.empty() || dice_.one_in(3)) {
      const std::size_t i = dice_.below(hubs_.size());
      return {hubs_[i], {who_.id, sent_to_hub_[i] + 1}, &sent_to_hub_[i]};
    }
    owned& o = one_of(servers_);
    return {o.at, {who_.id, o.sent + 1}, &o.sent};
  }

  void call_server() {
    const target t = choose();
    const key k = dice_();
    const std::size_t size = dice_.size();
    const std::uint64_t how = dice_();
    ++*t.sent;
    switch (dice_.below(3)) {
      case 0:
        return equal(t.at->take(t.next, cargo(k, size), k, size, how), answer(k, t.next.number, size), "take");
      case 1:
        return equal(t.at->look(t.next, make_numbers(k, size), k, size, how), answer(k, t.next.number, size), "look");
      default: {
        const std::string s = t.at->give(t.next, k, size, how);
        check(s.size() == size && is_filled(std::as_bytes(std::span(s)), k), "give gave something else");
      }
    }
  }

  void ask() {
    const target t = choose();
    const key k = dice_();
    const std::size_t size = dice_.size();
    const std::uint64_t how = dice_();
    ++*t.sent;
    auto f = dice_.one_in(2) ? start(t.at)->take(t.next, cargo(k, size), k, size, how)
                             : start(t.at)->look(t.next, make_numbers(k, size), k, size, how);
    if (dice_.one_in(4)) f = f.then([](std::uint64_t n) { return n; });
    if (dice_.one_in(8)) return;  // the result is of no interest
    asked_.push_back({std::move(f), answer(k, t.next.number, size)});
    while (asked_.size() > 24) collect();
  }

  void collect() {
    if (asked_.empty()) return;
    const std::size_t i = dice_.below(asked_.size());
    asked a = std::move(asked_[i]);
    asked_.erase(asked_.begin() + static_cast<std::ptrdiff_t>(i));
    if (dice_.one_in(2)) (void)a.result.wait_for(std::chrono::microseconds(dice_.below(300)));
    equal(a.result.get(), a.expected, "a future");
  }

  void post_server() {
    for (std::size_t n = 1 + dice_.below(20); n > 0; --n) {
      const target t = choose();
      const key k = dice_();
      const std::size_t size = dice_.size() / 16;
      const std::uint64_t how = dice_();
      if (dice_.one_in(3)) {
        if (try_post(t.at)->note(t.next, cargo(k, size), k, size, how)) ++*t.sent;
      } else {
        ++*t.sent;
        post(t.at)->note(t.next, cargo(k, size), k, size, how);
      }
    }
  }

  void make_server() {
    const key k = dice_();
    const std::size_t size = dice_.size();
    if (servers_.size() >= 12) return end_server();
    if (dice_.one_in(2)) {
      servers_.push_back({spawn<Server>(somewhere(), cargo(k, size), k, size)});
    } else {
      auto f = start_spawn<Server>(somewhere(), cargo(k, size), k, size);
      call_function();
      servers_.push_back({f.get()});
    }
  }

  void end_server() {
    if (servers_.empty()) return;
    end_chains();
    const std::size_t i = dice_.below(servers_.size());
    const owned o = servers_[i];
    servers_.erase(servers_.begin() + static_cast<std::ptrdiff_t>(i));
    auto before = start(o.at)->taken_from(who_.id);
    if (dice_.one_in(2)) {
      destroy(o.at);
    } else {
      auto ended = start_destroy(o.at);
      auto after = start(o.at)->taken_from(who_.id);
      gone([&] { (void)after.get(); });
      ended.get();
    }
    equal(before.get(), o.sent, "messages that a server took before its end");
    if (dice_.one_in(2)) gone([&] { (void)o.at->taken_from(who_.id); });
    if (dice_.one_in(4)) gone([&] { destroy(o.at); });
  }
  template <class F>
  static void gone(F f) {
    try {
      f();
      check(false, "a process that was destroyed still answers");
    } catch (const process_gone&) {
    }
  }

  void use_hub() {
    const std::size_t i = dice_.below(hubs_.size());
    const std::uint64_t before = sent_to_hub_[i];
    equal(hubs_[i]->taken_from(who_.id), before, "messages that a hub took");
  }

  // Each hub and server calls only later ones, so no cycle can be.
  std::vector<remote<Server>> some_of(const std::vector<remote<Server>>& all) {
    std::vector<remote<Server>> v;
    for (const auto& p : all)
      if (dice_.one_in(2)) v.push_back(p);
    if (v.empty()) v.push_back(all.back());
    return v;
  }
  void chain_through(const std::vector<remote<Server>>& all, bool own) {
    auto v = some_of(all);
    const std::uint64_t n = v.size();
    const auto first = v.front();
    v.erase(v.begin());
    const key k = dice_();
    const auto payload = make_numbers(k, dice_.size() / 8);
    const std::uint64_t how = dice_();
    switch (dice_.below(4)) {
      case 0:
        return equal(first->chain(v, payload, k, how), n, "a chain");
      case 1:
        return equal(first->fan(v, payload, k, how), n, "a fan");
      case 2:
        asked_.push_back({start(first)->fan(v, payload, k, how), n, own});
        break;
      default:
        asked_.push_back({start(first)->chain(v, payload, k, how), n, own});
    }
    while (asked_.size() > 24) collect();
  }
  void chain_hubs() { chain_through(hubs_, false); }
  void chain_own() {
    if (servers_.empty()) return;
    std::vector<remote<Server>> all;
    for (const owned& o : servers_) all.push_back(o.at);
    chain_through(all, true);
  }

  void end_chains() {
    for (asked& a : asked_)
      if (a.own) equal(a.result.get(), a.expected, "a chain that was started");
    std::erase_if(asked_, [](const asked& a) { return a.own; });
  }

  // A cycle of calls is an error for who closes it; nobody else is to notice.
  void cycle() {
    if (servers_.size() < 2) return;
    // What they carry might fill the mailbox of the first, so that the call that closes the cycle has to wait for room.
    end_chains();
    const std::size_t i = dice_.below(servers_.size() - 1);
    const auto first = servers_[i].at;
    std::vector<remote<Server>> rest;
    for (std::size_t j = i + 1; j < servers_.size() && j < i + 4; ++j) rest.push_back(servers_[j].at);
    rest.push_back(first);
    const std::uint64_t how = dice_();
    auto f = start(first)->chain(rest, numbers{}, 0, how);
    if (dice_.one_in(2)) {
      const owned& o = one_of(servers_);
      asked_.push_back({start(o.at)->taken_from(who_.id), o.sent, true});
    }
    try {
      (void)f.get();
      check(false, "a cycle of calls ended without an error");
    } catch (const deadlock_error&) {
    }
  }

  void throwing() {
    const target t = choose();
    const auto what = static_cast<thrown>(dice_.below(4));
    const std::uint64_t how = dice_();
    ++*t.sent;
    const std::string text = std::to_string(t.next.number);
    const auto says = [&](const std::exception& e) {
      check(std::string_view(e.what()).find(text) != std::string_view::npos, fmt::format("{}: {}", text, e.what()));
    };
    try {
      if (dice_.one_in(2)) {
        t.at->fail(t.next, what, how);
      } else {
        start(t.at)->fail(t.next, what, how).get();
      }
      check(false, "an exception was lost");
    } catch (const std::out_of_range& e) {
      check(what == thrown::out_of_range, "another exception arrived: out_of_range");
      says(e);
    } catch (const remote_error& e) {
      check(what == thrown::own || what == thrown::number, "another exception arrived: remote_error");
      if (what == thrown::own) says(e);
    } catch (const std::runtime_error& e) {
      check(what == thrown::runtime_error || what == thrown::own, "another exception arrived: runtime_error");
      says(e);
    } catch (int n) {
      check(what == thrown::number && n == 42, "another number was thrown");
    }
  }

  void use_data() {
    if (arrays_.size() < 3 && dice_.one_in(4)) {
      const std::size_t size = dice_.size() / 8 + 1;
      arrays_.push_back({spawn<std::uint64_t[]>(somewhere(), size), numbers(size)});
      return;
    }
    if (arrays_.empty()) return;
    const std::size_t which = dice_.below(arrays_.size());
    data& d = arrays_[which];
    const std::size_t first = dice_.below(d.model.size());
    const std::size_t count = dice_.below(d.model.size() - first + 1);
    const key k = dice_();
    switch (dice_.below(6)) {
      case 0: {
        numbers v(count);
        fill(std::as_writable_bytes(std::span(v)), k);
        d.at.write(first, v);
        std::ranges::copy(v, d.model.begin() + static_cast<std::ptrdiff_t>(first));
        return;
      }
      case 1: {
        numbers v(count);
        d.at.read(first, v);
        check(std::ranges::equal(v, std::span(d.model).subspan(first, count)), "remote data differ");
        return;
      }
      case 2:
        d.at[first] = k;
        d.model[first] = k;
        return;
      case 3:
        d.at[first] += k;
        return equal(d.at[first], d.model[first] += k, "an element");
      case 4:
        try {
          d.at[d.model.size() + k % 5] = 1;
          check(false, "an index outside was taken");
        } catch (const std::out_of_range&) {
        }
        return;
      default:
        destroy(d.at);
        arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(which));
    }
  }

  void make_team() {
    if (teams_.size() >= 3) {
      destroy(teams_.front().at);
      teams_.erase(teams_.begin());
      return;
    }
    const std::size_t n = 1 + dice_.below(10);
    placements where = everywhere();
    switch (dice_.below(4)) {
      case 0:
        where = in_blocks();
        break;
      case 1:
        where = somewhere();
        break;
      case 2: {
        std::vector<placement> list(1 + dice_.below(4));
        for (auto& p : list) p = somewhere();
        where = list;
        break;
      }
      default:
        break;
    }
    const std::uint64_t first = dice_.below(1000);
    team t{spawn_group<Member>(where, n, first), {}};
    for (std::size_t i = 0; i < n; ++i) t.values.push_back(first + i);
    teams_.push_back(std::move(t));
  }

  void use_team() {
    if (teams_.empty()) return;
    team& t = one_of(teams_);
    const std::size_t n = t.values.size();
    const std::uint64_t how = dice_();
    switch (dice_.below(8)) {
      case 0:
        return t.at->meet(dice_.below(6), how);
      case 1: {
        auto f = start(t.at)->meet(dice_.below(6), how);
        call_server();
        return f.get();
      }
      case 2: {
        const std::uint64_t x = how % 1000;
        post(t.at)->add(x);
        for (auto& v : t.values) v += x;
        return;
      }
      case 3: {
        const std::size_t r = how % n;
        post(t.at[r])->add(how);
        t.values[r] += how;
        return;
      }
      case 4:
        check(t.at->value() == t.values, "the members' values");
        return;
      case 5: {
        const key k = dice_();
        const auto v = make_numbers(k, dice_.size());
        numbers expected(n);
        for (std::size_t i = 0; i < n; ++i) expected[i] = v.size() + i;
        check(t.at->total(v, k, how) == expected, "a broadcast");
        return;
      }
      case 6: {
        std::string expected;
        for (std::size_t i = 0; i < n; ++i) expected += std::to_string(i) + ",";
        check(t.at.reduce<&Member::spelled>(std::plus{}) == expected, "a reduction is out of order");
        return;
      }
      default: {
        std::uint64_t sum = 0;
        for (const auto v : t.values) sum += v;
        // Order holds between any two processes, not along a chain: what was posted may come later than the chain does.
        check(t.at->value() == t.values, "the members' values");
        return equal(t.at[0]->ask_next(), sum, "a chain of members");
      }
    }
  }

  void echoing() {
    const std::uint64_t rounds = 1 + dice_.below(6);
    const std::uint64_t first = next_tag_;
    next_tag_ += rounds;
    const auto f = spawn(somewhere(), echo, this_process<function>(), first, rounds, dice_());
    if (dice_.one_in(2)) {  // large ones, one after the other
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const key k = dice_();
        const std::size_t size = dice_.size();
        send(f, cargo(k, size), first + i);
        check(await_echo(first + i).is(k, size), "an echo differs");
      }
      return;
    }
    // Small ones in any order: all must have room in the mailbox, as the other side takes them in the order of their tags.
    std::vector<std::uint64_t> order(rounds);
    for (std::uint64_t i = 0; i < rounds; ++i) order[i] = i;
    for (std::uint64_t i = rounds; i > 1; --i) std::swap(order[i - 1], order[dice_.below(i)]);
    const key k = dice_();
    for (const auto i : order) send(f, cargo(k + i, i), first + i);
    for (std::uint64_t i = rounds; i-- > 0;) check(await_echo(first + i).is(k + i, i), "an echo differs");
  }
  // Others may have filled the mailbox, so that the answer has no room until their notes are read.
  cargo await_echo(std::uint64_t tag) {
    for (;;) {
      if (auto c = receive_for<cargo>(std::chrono::milliseconds(2), tag)) return std::move(*c);
      hear_others();
    }
  }

  void call_function() {
    const key k = dice_();
    const std::size_t size = dice_.size();
    switch (dice_.below(4)) {
      case 0:
        return equal(call<&weigh>(somewhere(), cargo(k, size), k, size), answer(k, 0, size), "a function");
      case 1:
        asked_.push_back({start_call<&weigh>(somewhere(), cargo(k, size), k, size), answer(k, 0, size)});
        return;
      case 2:
        ticks_ += size;
        return post_call<&tick>(somewhere(), size);
      default: {
        const std::string s = call<&spell>(somewhere(), k, size);
        check(s.size() == size && is_filled(std::as_bytes(std::span(s)), k), "a function's string differs");
      }
    }
  }

  // --- messages between participants ---
  // Nobody waits for room in the other's mailbox, else two could wait for each other.

  void tell_other() {
    const std::size_t to = dice_.below(others_.size());
    const key k = dice_();
    const std::size_t size = dice_.size() / 32;
    if (to == who_.id) return;
    if (try_send(others_[to], note{who_.id, sent_to_[to] + 1, k, size, false, cargo(k, size)})) ++sent_to_[to];
  }
  void hear_others() {
    while (auto n = try_receive<note>()) hear(*n);
  }
  void hear(const note& n) {
    equal(n.number, ++got_from_.at(n.from), "the number of a note");
    check(n.payload.is(n.k, n.size), "a note differs");
    check(!ended_[n.from], "a note after the last");
    if (n.last) ended_[n.from] = true;
  }
  void rest() {
    const std::uint64_t how = dice_();
    pause(how);
    if (how % 7 == 0)
      if (auto n = receive_for<note>(std::chrono::microseconds(how / 7 % 500))) hear(*n);
  }

  void finish() {
    while (!asked_.empty()) {
      equal(asked_.back().result.get(), asked_.back().expected, "a future, at the end");
      asked_.pop_back();
    }
    for (const owned& o : servers_) {
      equal(o.at->taken_from(who_.id), o.sent, "messages that a server took");
      destroy(o.at);
    }
    for (const data& d : arrays_) {
      numbers v(d.model.size());
      d.at.read(0, v);
      check(v == d.model, "remote data differ at the end");
      destroy(d.at);
    }
    for (const team& t : teams_) {
      check(t.at->value() == t.values, "the members' values at the end");
      destroy(t.at);
    }
    for (std::size_t to = 0; to < others_.size(); ++to)
      while (to != who_.id && !try_send(others_[to], note{who_.id, sent_to_[to] + 1, 0, 0, true, cargo(0, 0)})) {
        hear_others();
        yield();
      }
    while (std::ranges::count(ended_, false) > 0) hear(receive<note>());
  }

  assignment who_;
  dice dice_;
  std::vector<remote<Server>> hubs_;
  std::vector<remote<function>> others_;
  std::vector<std::uint64_t> sent_to_hub_;
  std::vector<std::uint64_t> sent_to_;
  std::vector<std::uint64_t> got_from_;
  std::vector<bool> ended_;
  static constexpr std::size_t operation_count = 18;
  std::size_t weights_[operation_count];
  std::size_t all_weights_ = 0;

  std::vector<owned> servers_;
  std::vector<data> arrays_;
  std::vector<team> teams_;
  std::vector<asked> asked_;
  std::uint64_t next_tag_ = 1;
  std::uint64_t ticks_ = 0;
};

inline void participate(const assignment& a) {
  auto b = receive<beginning>();
  const remote<function> main = a.main;
  send(main, participant(a, std::move(b)).run());
}

}  // namespace orrery::stress
