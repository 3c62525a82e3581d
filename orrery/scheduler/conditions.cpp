// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/conditions.hpp>

#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/prefetch.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

namespace orrery::scheduler {

/// A method that waits until something holds of its object. Lies on its stack. Those that wait for
/// the same stand behind the oldest of them, which alone is in the chain.
struct condition {
  enum class status : std::uint8_t { waiting, granted, stopped };

  const predicate& p;  // not a copy: to read what was just written, in larger pieces, takes 4 ns
  slot* process;
  activation* method;
  fiber* waiter;
  std::size_t bytes = p.bytes;  // 0 if it was separated
  condition* next = nullptr;  // in the chain
  condition* behind = nullptr;  // the next younger one that waits for the same
  condition* last = this;  // of those behind
  std::exception_ptr error{};  // granted: what the method throws
  status state = status::waiting;
  bool expired = false;  // its time is over: it is granted when it is its turn, whatever holds
  bool held = true;  // granted: it holds
  bool told = p.told_by == nullptr;  // it is looked at

  [[nodiscard]] bool is_same(const condition& c) const noexcept {
    return process == c.process && p.holds == c.p.holds && bytes != 0 && bytes == c.bytes &&
           std::memcmp(p.what, c.p.what, bytes) == 0;
  }
};

namespace {

constexpr std::size_t fewest = 16;
constexpr std::size_t most_lines = 20;

std::string name_of(const activation* a) {
  return a != nullptr && a->method != nullptr ? fmt::format("{}::{}", a->method->class_name, a->method->method) : "?";
}

/// Calls f(before, c) for each c of a chain, oldest first, until it returns true. f may take out c,
/// if it returns true then.
template <class F>
bool search(condition* youngest, F f) {
  condition* before = youngest;
  while (before != nullptr) {
    condition* const c = before->next;
    if (f(before, *c)) return true;
    before = c != youngest ? c : nullptr;
  }
  return false;
}

}  // namespace

inline condition*& conditions::youngest_of(const slot& s) const noexcept {
  return by_slot_[of_.processes().index_of(s) & (places_ - 1)];
}

void conditions::link(condition& c) noexcept {
  condition*& youngest = youngest_of(*c.process);
  c.next = youngest != nullptr ? std::exchange(youngest->next, &c) : &c;
  youngest = &c;
}

void conditions::grow() {
  const std::size_t old = places_;
  auto before = wire::make_unique<condition*[]>(std::max(fewest, 2 * old));
  before.swap(by_slot_);
  places_ = std::max(fewest, 2 * old);
  for (std::size_t i = 0; i < old; ++i) {
    condition* at = before[i] != nullptr ? std::exchange(before[i]->next, nullptr) : nullptr;
    while (at != nullptr) link(*std::exchange(at, at->next));
  }
}

// Where others wait whose slots have this place, too.
void conditions::add_to(condition*& youngest, condition& c) noexcept {
  const bool stands_behind = search(youngest, [&](condition*, condition& of) {
    if (!of.is_same(c)) return false;
    of.last = of.last->behind = &c;
    return true;
  });
  if (!stands_behind) link(c);
}

inline void conditions::add(condition& c) {
  if (count_ >= places_) [[unlikely]]
    grow();
  ++count_;
  if (c.p.told_by != nullptr) {
    *c.p.told_by = &c;
  } else {
    ++to_look_at_;
  }
  if (condition*& youngest = youngest_of(*c.process); youngest == nullptr) [[likely]] {
    youngest = c.next = &c;
  } else {
    add_to(youngest, c);
  }
}

// The next one of those behind takes the place of a condition that leaves them.
void conditions::hand_on(condition& c) noexcept {
  condition* const next = std::exchange(c.behind, nullptr);
  if (next == nullptr) return;
  if (c.last != next) next->last = c.last;
  c.last = &c;
  link(*next);
}

// It is looked at on its own from now on, and nobody stands behind it.
void conditions::separate(condition& c) {
  const bool stood_behind = search(youngest_of(*c.process), [&](condition*, condition& of) {
    if (&of == &c || !of.is_same(c)) return false;
    condition* before = &of;
    while (before != nullptr && before->behind != &c) before = before->behind;
    if (before == nullptr) return false;
    before->behind = std::exchange(c.behind, nullptr);
    if (of.last == &c) of.last = before;
    return true;
  });
  c.bytes = 0;
  if (stood_behind) {
    link(c);
  } else {
    hand_on(c);
  }
}

// Takes out the one behind `before` in its chain, and gives it its process. The next one takes its
// place, as the youngest.
inline void conditions::grant_behind(condition*& youngest, condition* before) noexcept {
  condition& c = *before->next;
  before->next = c.next;
  if (youngest == &c) youngest = before == &c ? nullptr : before;
  if (c.behind != nullptr) [[unlikely]]
    hand_on(c);
  --count_;
  to_look_at_ -= c.told;
  c.state = condition::status::granted;
  c.process->state = process_state::running;
  c.process->active = c.method;
  of_.order().give(&c);
  of_.ready(*c.waiter);
  // It goes on soon, on a stack that has cooled down: the frames on both sides of the condition.
  fetch_lines(c.waiter->context, 4);
  fetch_lines(&c + 1, 4);
}

bool conditions::grant_first(slot& s) noexcept {
  condition*& youngest = youngest_of(s);
  return search(youngest, [&](condition* before, condition& c) {
    if (c.process != &s || !c.told) return false;
    try {
      c.held = c.p.holds(c.p.what);
    } catch (...) {
      c.error = std::current_exception();
    }
    if (!c.held && !c.expired && c.error == nullptr) {
      if (c.p.told_by != nullptr) {
        c.told = false;
        --to_look_at_;
      }
      return false;
    }
    grant_behind(youngest, before);
    return true;
  });
}

void conditions::tell(condition& c) noexcept {
  if (c.told || c.state != condition::status::waiting) return;
  c.told = true;
  ++to_look_at_;
}

void conditions::end(slot& s) noexcept {
  const auto end_one = [&](condition* before, condition& c) {
    if (c.process != &s) return false;
    c.error = std::make_exception_ptr(process_gone(name_of(c.method)));
    grant_behind(youngest_of(s), before);
    return true;
  };
  while (count_ != 0 && search(youngest_of(s), end_one)) {
  }
}

void conditions::cancel() noexcept {
  for (std::size_t i = 0; i < places_; ++i) {
    condition*& youngest = by_slot_[i];
    if (youngest == nullptr) continue;
    condition* at = std::exchange(std::exchange(youngest, nullptr)->next, nullptr);
    while (at != nullptr) {
      condition* const next = at->next;
      for (condition* c = at; c != nullptr; c = c->behind) {
        c->state = condition::status::stopped;
        of_.ready(*c->waiter);
      }
      at = next;
    }
  }
  count_ = to_look_at_ = 0;
}

bool conditions::wait(const predicate& p, std::int64_t deadline_ns) {
  activation& method = *of_.active();
  slot& s = *method.process;
  if (of_.refusing()) of_.shutdown().refuse("wait_until");
  if (s.dying) throw process_gone(name_of(&method));
  if (s.depth >= slot::most_methods)
    throw usage_error(errc::bad_argument,
                      fmt::format("wait_until: {} methods of {} wait already; a method that returns "
                                  "the future of a promise needs no stack while it waits",
                                  s.depth - 1, describe(of_, s)));
  condition c{p, &s, &method, of_.running()};
  // what has been done so far may be what others wait for
  const bool granted = s.depth > 1 && grant(s);
  add(c);
  if (!granted) {
    s.active = nullptr;
    of_.settle(s);
  }
  const char* const before = std::exchange(c.waiter->waits_in, "wait_until");
  while (c.state == condition::status::waiting) {
    if (deadline_ns < 0 || c.expired) {
      of_.park();
    } else if (of_.park_until(deadline_ns) && c.state == condition::status::waiting) {
      c.expired = true;
      separate(c);
      tell(c);
      // if it was granted itself, until its turn
      if (s.state == process_state::idle && grant_first(s)) of_.park();
    }
  }
  c.waiter->waits_in = before;
  if (c.state == condition::status::stopped) of_.shutdown().refuse("wait_until");
  of_.order().take(&c);
  of_.order().forget(&c);
  of_.order().take_process();
  if (c.error != nullptr) std::rethrow_exception(c.error);
  return c.held;
}

std::string conditions::explain() const {
  std::string text;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < places_; ++i)
    search(by_slot_[i], [&](condition*, condition& of) {
      for (const condition* c = &of; c != nullptr; c = c->behind)
        if (++lines <= most_lines)
          text += fmt::format("  {} in {} waits in wait_until\n", describe(of_, *c->process), name_of(c->method));
      return false;
    });
  if (lines > most_lines) text += fmt::format("  and {} more wait in wait_until\n", lines - most_lines);
  return text;
}

}  // namespace orrery::scheduler
