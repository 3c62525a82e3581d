// SPDX-License-Identifier: Apache-2.0
// Cycles of calls that wait for each other.
//
// Problem: A calls B, B calls C, C calls A; A runs one method at a time, so nobody will ever
// answer. To carry the chain of callers with every call would cost every call. So nothing is
// carried. When a call arrives at a process that is itself waiting for a call, the process becomes
// a suspect; when its PE has had nothing to do for some microseconds, or is busy for long, a probe
// follows the waits from there: to the process that the suspect's call went to, if that process
// waits too to the one it waits for, and so on (edge chasing: Chandy, Misra and Haas 1983). If it
// comes back, one of the calls of the cycle that wait in mailboxes fails with deadlock_error: that
// to the least process, whichever probe has come back.
//
// Why a probe that comes back proves a deadlock: a process that waits for a call stays so until
// that call is answered (waits with a time limit are not followed). A probe travels behind the call
// that it follows, in the same outbound ring; where it arrives, the call is either answered (the
// probe ends), queued, or being executed. So when it has come back to a suspect that still waits
// for the same call, every edge it went along still stands. The way of a call to an element of an
// array is not known where it was made (call_route). A probe follows such a call by the element's
// name, also behind it, as the layer above finds it; who waits stands in the call's payload
// (hidden_caller). A process that waits for a call does not migrate, so neither end of an edge
// moves. Why every cycle is found: the last edge of a cycle comes about when a call reaches a
// process that waits (run_state::push makes it a suspect), or when a process begins to wait for a
// call it had started before, or while calls are queued at it (pe::wait makes it a suspect).
//
// The caller of a remote function, or of a process that is constructed, knows the PE only; there it
// is found among those that wait (nameless_waits_).
//
// A process that waits for room in a full mailbox waits for the process behind it just so, and
// makes a cycle with calls or with others of its kind (flow_control::park_for_room makes it a
// suspect). Such an edge stands while the mailbox is full, if its process is on the same PE; else
// while the sign that stopped the sender has not been taken back, which its number shows. A cycle
// with such an edge is no deadlock: the least of its full mailboxes takes more than its limit
// (backlog::raise), whichever probe has come back.
//
// A wait for several results (when_all) stands until all of them are there, so each call behind it
// is an edge, and a probe for each goes on. So that they do not multiply for ever, a suspect sends
// 64 at most; a cycle through another call is found when the world is dead.
//
// The same holds for a future that others complete. That of `then` stands until the future that it
// follows is there, and then until the fiber of its function has what that one waits for. The
// future of a task stands until the task has what it awaits (call_route::part says which sink that
// is now). A call whose method has given a future, and has ended, stands until that future is there
// (wait_watcher::find_answer); its process is free, so that no cycle is closed at it. Such an
// edge may come about last, when the function of `then` has given a further future. No call arrives
// at a process then, so the waiter of the first future becomes a suspect (suspect_waiter).
#include <orrery/scheduler/deadlock_detector.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

constexpr std::uint32_t most_shares = 64;    // probes that leave a suspect
constexpr int most_links = 10'000;           // of a chain of futures
constexpr std::uint32_t longest_path = 32;  // that is named in the error
constexpr std::uint32_t no_method = 0xffff'ffff;

// A call, as both ends know it: who waits, and the reply word in its envelope, or what is in its
// place in the payload.
struct call_name {
  address target;
  std::uint32_t source_pe;
  std::uint32_t hidden;
  std::uint64_t reply;

  [[nodiscard]] bool is(const message& m) const noexcept {
    const hidden_caller* h = reinterpret_cast<const handler*>(m.head.handler)->caller;
    const bool hides = h != nullptr && h->of != nullptr;
    if (hidden == 0) return !hides && m.head.reply == reply && m.source_pe == source_pe;
    if (!hides) return false;
    const hidden_caller::name n = h->of(m);
    return n.pe == source_pe && n.call == reply;
  }
  [[nodiscard]] bool is(const delivery& d) const noexcept {
    const bool hides = d.method->caller != nullptr && d.method->caller->of != nullptr;
    return (hidden != 0) == hides && d.reply == reply && d.source_pe == source_pe;
  }
};

struct step {
  address process;
  std::uint32_t method;
};

std::uint32_t index_of(const handler* h) { return h == nullptr ? no_method : h->index; }

std::string method_name(std::uint32_t index) {
  if (index == no_method) return "(process function)";
  const handler* const h = find_handler(index);
  if (h == nullptr) return "(a method of another program)";
  return fmt::format("{}::{}", h->class_name, h->method);
}

// The wait of the fiber, as a number that is not used for another wait; 0: nothing that could be
// part of a cycle.
std::uint64_t wait_of(const fiber& f) {
  if (f.waiting_on != nullptr)
    return f.waiting_on->state == sink::status::waiting ? reinterpret_cast<std::uint64_t>(f.waiting_on) : 0;
  return f.room != nullptr && !f.room->over ? f.room->number << 1 | 1 : 0;
}

// The answer that a method of this PE has promised to the caller, and not given yet.
awaited_answer answer_to(pe& self, const call_name& call) {
  awaited_answer found;
  self.layers().watchers().for_each([&](const wait_watcher& w) {
    if (found.on == nullptr) found = w.find_answer(call.source_pe, call.reply, call.hidden != 0);
  });
  return found;
}

// The calls that a wait is for, if it is for several results or for a future that others complete;
// not more than `most`. Chains of futures may be of any length.
void add_parts(const sink& w, std::size_t most, std::vector<const sink*>& to) {
  std::vector<const sink*> open{&w};
  for (int looks = 0; !open.empty() && looks < most_links; ++looks) {
    const sink* const at = open.back();
    open.pop_back();
    for (std::size_t i = 0; to.size() + open.size() < most; ++i) {
      const sink* const part = at->route->part(i);
      if (part == nullptr) break;
      if (part->route != nullptr && part->route->part(0) != nullptr) {
        open.push_back(part);
      } else if (part->method != nullptr) {
        to.push_back(part);
      }
    }
  }
}

}  // namespace

struct deadlock_detector::wait_probe {
  address origin;  // the suspect
  std::uint64_t wait;  // what it waited for when the probe left
  call_name follow;  // where to look next; for room in a mailbox: reply is 0
  std::uint32_t stop;  // then the number of the stop sign
  call_name victim;  // a call of the path that is queued; its target is null if there is none yet
  // the least process of the path in whose mailbox another one waits for room; its generation is 0
  // if there is none yet
  address full;
  // 1: the cycle is closed, fail the victim; 2: raise the limit of the full mailbox
  std::uint32_t decided;
  std::uint32_t steps;
  std::uint32_t unnamed;  // further steps
  std::uint32_t hops;
  // how many probes this one may become, where a wait is for several results
  std::uint32_t shares;
  std::uint32_t next_mark;
  address mark;  // where the probe was at hop 1, 2, 4, 8...
  step path[longest_path];

  // A probe may get into a cycle that its origin is no part of, and must not go round there for
  // ever: some day it meets its mark again (Brent). In a cycle that the origin is part of it meets
  // nobody twice before it is back.
  bool goes_round() {
    if (hops != 0 && follow.target == mark) return true;
    if (hops++ == next_mark) {
      mark = follow.target;
      next_mark = 2 * next_mark + 1;
    }
    return false;
  }
  void add_step(const step& s) noexcept {
    if (steps < longest_path) {
      path[steps++] = s;
    } else {
      ++unnamed;
    }
  }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return {reinterpret_cast<const std::byte*>(this), offsetof(wait_probe, path) + steps * sizeof(step)};
  }
  /// The cycle from this process on, if it is among those that are named.
  [[nodiscard]] std::string text(address from) const {
    const step* const all = std::begin(path);
    const auto begin = std::find_if(all, all + steps, [&](const step& s) { return s.process == from; }) - all;
    std::string cycle;
    for (std::uint32_t i = 0; i < steps; ++i) {
      const auto at = static_cast<std::uint32_t>(begin + i) % steps;
      if (at == 0 && i != 0 && unnamed != 0) cycle += fmt::format("... ({} more) -> ", unnamed);
      cycle += method_name(path[at].method) + " -> ";
    }
    if (unnamed != 0 && steps != 0 && begin % steps == 0) cycle += fmt::format("... ({} more) -> ", unnamed);
    return cycle;
  }
};

void deadlock_detector::suspect(slot& s) {
  s.suspected = 1;
  suspects_.push_back(of_.address_of(s));
}

void deadlock_detector::end_nameless_wait(slot& s) noexcept {
  *std::ranges::find(nameless_waits_, &s) = nameless_waits_.back();
  nameless_waits_.pop_back();
}

bool deadlock_detector::chase_suspects() {
  std::vector<address> now;
  now.swap(suspects_);
  for (const address a : now) {
    slot* s = of_.find(a.slot, a.generation);
    if (s == nullptr) continue;
    s->suspected = 0;
    if (s->active == nullptr || s->active->on == nullptr || s->state != process_state::running) continue;
    const std::uint64_t wait = wait_of(*s->active->on);
    if (wait == 0) continue;
    wait_probe p{};
    p.origin = a;
    p.wait = wait;
    p.follow.target = a;
    p.shares = most_shares;
    chase(p, true);
  }
  return of_.has_runnable();
}

// The process that the probe has come to; null if there is none.
slot* deadlock_detector::find_followed(wait_probe& p) {
  if (p.follow.target.slot != wire::no_slot) return of_.find(p.follow.target.slot, p.follow.target.generation);
  // a remote function, or a constructor
  const auto serves = [&](const slot* f) {
    return f->active != nullptr && f->active->serving != nullptr && p.follow.is(*f->active->serving);
  };
  const auto at = std::ranges::find_if(nameless_waits_, serves);
  if (at == nameless_waits_.end()) return nullptr;
  p.follow.target = of_.address_of(**at);
  return *at;
}

// Is the sender still to wait for room in this mailbox?
bool deadlock_detector::still_stops(const wait_probe& p, slot& s) {
  // senders are usually let go on when half of the mailbox is empty, but here that may never be
  if (!of_.flow().is_full(s)) {
    of_.flow().let_senders_go(s);
    return false;
  }
  const auto stops = [&](const stop_sign& i) { return i.pe == p.follow.source_pe && i.number == p.stop; };
  return p.follow.source_pe == of_.id() ||
         (s.has_extra && std::ranges::any_of(of_.flow().extra_of(s)->stopped_pes, stops));
}

// The cycle is closed: ends it, or has that done on another PE. True: the victim is here.
bool deadlock_detector::decide(wait_probe& p) {
  if (p.full.generation != 0) {
    p.decided = 2;
    if (p.full.pe != of_.id()) {
      send(p.full.pe, p);
    } else {
      raise(p.full);
    }
    return false;
  }
  if (p.victim.target.generation == 0) return false;
  p.decided = 1;
  if (p.victim.target.pe == of_.id()) return true;
  send(p.victim.target.pe, p);
  return false;
}

// The process's own method, and those it has called inline since.
void deadlock_detector::add_steps(wait_probe& p, const slot& s, const fiber& f) {
  std::uint32_t begin = p.steps;
  for (const activation* a = f.active; a != nullptr; a = a->below) {
    p.add_step({of_.address_of(*a->process), index_of(a->method)});
    if (a == s.active) break;
  }
  for (std::uint32_t end = p.steps; begin + 1 < end; ++begin, --end) std::swap(p.path[begin], p.path[end - 1]);
}

void deadlock_detector::chase(wait_probe& p, bool first) {
  for (;;) {
    if (p.follow.target.pe != of_.id()) {
      send(p.follow.target.pe, p);
      return;
    }
    const bool is_call = !first && p.follow.reply != 0;
    slot* const s = find_followed(p);
    const bool runs = s != nullptr && s->state == process_state::running && s->active != nullptr;
    // Is the call we follow still to be answered here?
    const bool queued = is_call && runs && s->search([&](message*, const message* m) { return p.follow.is(*m); });
    const bool executing = is_call && runs && s->active->serving != nullptr && p.follow.is(*s->active->serving);
    if (is_call && !queued && !executing) {
      // Its method may have given a future, and have ended. The process is free then, so that no
      // cycle is closed at it.
      const awaited_answer answer = answer_to(of_, p.follow);
      if (answer.on == nullptr || answer.on->state != sink::status::waiting || p.goes_round()) return;
      p.add_step({p.follow.target, index_of(answer.method)});
      if (!follow_wait(p, *answer.on)) return;
      continue;
    }
    if (!runs) return;
    if (!first && p.follow.reply == 0 && !still_stops(p, *s)) return;
    // All probes that go round a cycle choose the same.
    if (queued && (p.victim.target.generation == 0 || p.follow.target < p.victim.target)) p.victim = p.follow;
    const fiber* f = s->active->on;
    const std::uint64_t wait = f != nullptr ? wait_of(*f) : 0;
    if (wait == 0) return;
    const sink* w = f->waiting_on;
    if (!first && p.follow.target == p.origin) {
      if (wait != p.wait || !decide(p)) return;
      break;
    }
    if (!first && p.goes_round()) return;
    first = false;
    add_steps(p, *s, *f);
    if (w == nullptr) {
      if (p.full.generation == 0 || f->room->at < p.full) p.full = f->room->at;
      p.follow = {f->room->at, of_.id(), 0, 0};
      p.stop = f->room->stop;
      continue;
    }
    if (!follow_wait(p, *w)) return;
  }
  fail_victim(p);  // the cycle is closed and its victim is here
}

// The probe goes on with what a wait is for: a call, or several results, or a future that others
// complete. False if nothing more is to be done with this probe.
bool deadlock_detector::follow_wait(wait_probe& p, const sink& w) {
  if (w.route == nullptr || w.route->part(0) == nullptr) return follow_call(p, w);
  std::vector<const sink*> calls;
  add_parts(w, std::max(p.shares, 1U), calls);
  if (calls.empty()) return false;
  p.shares = std::max(p.shares, 1U) / static_cast<std::uint32_t>(calls.size());
  for (std::size_t i = 1; i < calls.size(); ++i) {
    wait_probe other = p;
    if (follow_call(other, *calls[i])) chase(other, false);
  }
  return follow_call(p, *calls.front());
}

// The call is what the probe follows next. False if something else goes on with it.
bool deadlock_detector::follow_call(wait_probe& p, const sink& w) {
  if (w.route != nullptr && w.route->call != 0) {
    p.follow = {{}, of_.id(), 1, w.route->call};
    p.follow.target = w.route->follow(of_, p.bytes());
    return p.follow.target.generation != 0;
  }
  p.follow = {w.target, of_.id(), 0, w.entry != 0 ? w.entry : reinterpret_cast<std::uint64_t>(&w)};
  return true;
}

// Takes the call out of the mailbox and answers it with deadlock_error.
void deadlock_detector::fail_victim(const wait_probe& p) {
  slot* s = of_.find(p.victim.target.slot, p.victim.target.generation);
  if (s == nullptr) return;
  (void)s->search([&](message* before, message* m) {
    if (!p.victim.is(*m)) return false;
    s->charge -= m->charge();
    (void)s->unlink_after(before);
    delivery d;
    d.load(of_, *m);
    auto error = std::make_exception_ptr(deadlock_error(p.text(p.victim.target) + method_name(index_of(d.method))));
    if (d.method->caller != nullptr) {
      d.method->caller->fail(of_, *s, d, std::move(error));
    } else {
      d.fail(std::move(error));
    }
    return true;
  });
}

void deadlock_detector::raise(const address& full) {
  if (slot* const s = of_.find(full.slot, full.generation)) of_.flow().excess().raise(*s);
}

void deadlock_detector::send(std::uint32_t to, const wait_probe& p) {
  try {
    const auto bytes = p.bytes();
    of_.links().send_control(of_.links().control_outbound_to(to), wire::record_kind::wait_probe, 0, 0, 0, bytes.data(),
                             bytes.size());
  } catch (const std::exception&) {  // that node is gone; who waits for it will hear so
  }
}

// False if the bytes are no probe.
bool deadlock_detector::read(wait_probe& p, std::span<const std::byte> from) noexcept {
  if (from.size() < offsetof(wait_probe, path)) return false;
  std::memcpy(static_cast<void*>(&p), from.data(), std::min(from.size(), sizeof p));
  return p.steps <= longest_path && offsetof(wait_probe, path) + p.steps * sizeof(step) <= from.size();
}

void deadlock_detector::receive(inbound& in, const wire::envelope& e, std::uint32_t bytes) {
  wait_probe p{};
  if (!read(p, {reinterpret_cast<const std::byte*>(&e + 1), bytes - wire::granule})) {
    of_.owner().peer_corrupt(in.pe, "a probe with an impossible length");
  } else if (p.decided == 0) {
    chase(p, false);
  } else if (p.decided == 2) {
    raise(p.full);
  } else {
    fail_victim(p);
  }
}

void deadlock_detector::follow(std::span<const std::byte> from, slot& at) {
  wait_probe p{};
  if (!read(p, from)) throw bad_message(errc::message_truncated, "a probe of waits");
  p.follow.target = of_.address_of(at);
  chase(p, false);
}

}  // namespace orrery::scheduler
