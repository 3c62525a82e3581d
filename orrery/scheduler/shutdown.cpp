// SPDX-License-Identifier: Apache-2.0
// How a PE comes to its end.
//
// Problem: when the main function has returned, methods are parked in the middle of calls,
// functions wait in receive, messages lie in mailboxes and rings. All that owns things whose
// destructors have to run, and no stack may be unwound while another PE still reads an argument
// that lies on it. So the PEs of a node go through the same stages:
//   finishing   everything goes on as usual, until the PE has nothing to do or `grace` is over;
//   cancelling  messages are not executed any more, they fail with `stopped`, and so does every
//               wait but that for a call. A call ends as ever, now mostly with `stopped`: thus
//               callees are unwound before their callers;
//   quiet       nothing is parked here any more;
//   destroying  (once every PE is quiet) the objects end, the latest first; their destructors may
//               call others;
//   ended       (the PE leaves its loop once every PE has got here).
// Methods that do not end by themselves must not keep the program from ending. Their calls wait for
// each other in a circle, or they catch `stopped` and go on: when every PE of the node has been in
// its loop without progress for `patience`, it is abandoned with its stack, and one line on stderr
// says so. I/O is never abandoned: the kernel would write into memory that is somebody else's by
// then. It is cancelled in `cancelling`, or when a destructor makes no progress, and waited for
// without limit.
#include <orrery/scheduler/shutdown.hpp>

#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/nap.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/pe_parts.hpp>
#include <orrery/scheduler/quiescence_detector.hpp>
#include <orrery/scheduler/unbegun.hpp>
#include <orrery/scheduler/wait_report.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

constexpr std::int64_t grace_ns = 200'000'000;
constexpr std::int64_t patience_ns = 1'000'000'000;
// A PE that looked longer ago is inside a method.
std::int64_t fresh_ns(std::uint32_t pes) noexcept {
  return std::max<std::int64_t>(100'000'000, 3 * shutdown_nap_ns(pes));
}

// `waits`: lines that say who waits for what, if that is known.
void say_abandoned(std::uint32_t pe, std::uint32_t count, std::string_view one, std::string_view many,
                   std::string_view waits) noexcept {
  const std::string line = fmt::format("orrery: PE {}: {} {} did not end when the program did; {} abandoned{}\n{}", pe,
                                       count, count == 1 ? one : many, count == 1 ? "it was" : "they were",
                                       waits.empty() ? "" : ", while waiting so:", waits);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void shutdown::refuse(const char* what) {
  // A method that catches it and tries again for ever must not hold the PE.
  if (of_.active() != nullptr) {
    of_.ready(*of_.running());
    of_.park();
  }
  std::rethrow_exception(ending(what));
}

std::exception_ptr shutdown::ending(std::string_view about) const {
  if (of_.owner().idleness_of(0).found_dead())
    return make_error(
        errc::stopped, verbatim,
        fmt::format("{}{}the world ends, as all that it does is to wait (a deadlock); stderr says for what", about,
                    about.empty() ? "" : ": "));
  // The sentence of `stopped` explains what this program's own end cuts short; whoever joined a
  // world has no part in its end.
  if (of_.owner().world() == nullptr || of_.owner().index() == 0 || of_.owner().world_runs())
    return make_error(errc::stopped, about);
  return make_error(
      errc::stopped, verbatim,
      fmt::format(
          "{}{}the first node of the world has ended, and the world with it; what others do there is to be finished before",
          about, about.empty() ? "" : ": "));
}

void shutdown::set_stalled(std::int64_t since) noexcept {
  const std::int64_t before = stalled_.exchange(since, std::memory_order_relaxed);
  if (before == 0 && since != 0) of_.owner().stages().stall();
  if (before != 0 && since == 0) of_.owner().stages().go_on();
}

// The last PE to come wakes the first ones, and they the others.
void shutdown::set_stage(shutdown_stage s) noexcept {
  node& own = of_.owner();
  measure_ = std::numeric_limits<std::uint64_t>::max();
  set_stalled(0);
  stage_.store(s, std::memory_order_release);  // SYNC: with everyone
  if (own.stages().reach(s) < own.pe_count()) return;
  for (std::uint32_t i = 0; i < std::min(own.pe_count(), woken_at_once); ++i) own.wake(own.first_pe() + i);
}

// Each PE that goes on to a stage, as it was asked to or as all are there, wakes two others: see
// woken_at_once.
void shutdown::wake_next() const noexcept {
  node& own = of_.owner();
  const std::uint64_t first = of_.id() - own.first_pe();
  for (const std::uint64_t next : {2 * first + 1, 2 * first + 2})
    if (next < own.pe_count()) own.wake(own.first_pe() + static_cast<std::uint32_t>(next));
}

// True if all PEs of the node have come that far, or are in the stage before and get no further.
bool shutdown::everyone(shutdown_stage s, std::int64_t now) const noexcept {
  if (of_.owner().stages().at(s) == of_.owner().pe_count()) return true;
  if (of_.owner().stages().stalled() == 0) return false;
  for (std::uint32_t i = 0; i < of_.owner().pe_count(); ++i) {
    const shutdown& p = of_.owner().local(of_.owner().first_pe() + i).shutdown_;
    // SYNC: acquire, with set_stage
    const shutdown_stage at = p.stage_.load(std::memory_order_acquire);
    if (at >= s) continue;
    const bool before = static_cast<int>(at) + 1 == static_cast<int>(s);
    if (!before || now - p.stalled_.load(std::memory_order_relaxed) > fresh_ns(of_.owner().pe_count())) return false;
  }
  return true;
}

// `measure` falls as long as there is progress.
void shutdown::watch_progress(std::uint64_t measure, std::int64_t now) noexcept {
  if (measure < measure_) {
    measure_ = measure;
    deadline_ = now + patience_ns;
    set_stalled(0);
  } else if (now >= deadline_) {
    set_stalled(now);
  }
}

bool shutdown::wind_down(bool busy) {
  const counters& n = of_.count();
  for (;;) {
    const std::int64_t now = transport::now_ns();
    switch (stage_.load(std::memory_order_relaxed)) {
      case shutdown_stage::running:
        wake_next();
        of_.quiescence().tell_waits();
        set_stage(shutdown_stage::finishing);
        deadline_ = now + grace_ns;
        break;
      case shutdown_stage::finishing:
        if (busy && now < deadline_) return false;
        set_stage(shutdown_stage::cancelling);
        cancel_waits();
        return false;
      case shutdown_stage::cancelling:
        if (of_.io_active_ != nullptr) {
          of_.io_active_->cancel_all();
          return false;
        }
        if (const std::uint32_t left = of_.parked_methods_ + of_.functions().count(); busy || left != 0) {
          if (!busy && now >= deadline_ && refuse_where_parked()) return false;
          watch_progress(left, now);
          if (!everyone(shutdown_stage::quiet, now)) return false;
          say_abandoned(of_.id(), left, "parked process", "parked processes", describe_waits(of_));
        }
        set_stage(shutdown_stage::quiet);
        break;
      case shutdown_stage::quiet:
        if (!everyone(shutdown_stage::quiet, now)) return false;
        wake_next();
        set_stage(shutdown_stage::destroying);
        destroy_all();
        break;
      case shutdown_stage::destroying:  // a destructor is parked
        if (of_.waits_for_files()) return false;
        watch_progress(~(n.executed + n.sent + n.received + n.io_requests), now);
        if (!everyone(shutdown_stage::ended, now)) return false;
        if (of_.io_active_ != nullptr) {
          of_.io_active_->cancel_all();
          return false;
        }
        say_abandoned(of_.id(), 1, "destructor", "destructors", describe_waits(of_));
        end_stages();
        break;
      case shutdown_stage::ended:
        if (of_.io_active_ != nullptr) {  // started by a destructor, which did not wait
          of_.io_active_->cancel_all();
          return false;
        }
        if (!everyone(shutdown_stage::ended, now)) return false;
        wake_next();
        return true;
    }
  }
}

void shutdown::end_stages() noexcept {
  of_.refusing_ = true;
  set_stage(shutdown_stage::ended);
}

void shutdown::cancel_waits() {
  of_.refusing_ = true;
  of_.fire_all_timers();
  for (slot& s : of_.processes().all()) {
    if (!s.is_function || !s.has_object || unbegun::in(s) != nullptr) continue;
    static_cast<fiber*>(s.object())->cancelled = 1;
    if (s.state == process_state::receiving) of_.make_runnable(s);
  }
  of_.flow().cancel_waits();
  of_.links().cancel_waits();
  of_.quiescence().let_go();
  of_.conditions().cancel();
  of_.layers().watchers().for_each([&](wait_watcher& w) { w.cancel_waits(of_); });
  of_.replies().cancel();
  (void)refuse_where_parked();
}

std::exception_ptr shutdown::refusal(const handler* method) const {
  return ending(method == nullptr ? std::string{} : fmt::format("{}::{}", method->class_name, method->method));
}

void shutdown::refuse_all(slot& s) {
  while (s.has_messages()) {
    delivery d;
    d.load(of_, *s.pop());
    const bool one_way = d.reply == 0 && d.method != nullptr && d.method->lost != &nobody_misses;
    if (one_way && unexecuted_++ == 0) first_unexecuted_ = d.method;
    d.fail(refusal(d.method));
  }
}

// A method may wait for a call to its own process, and for others that are as unable to be
// executed, in ways that no probe follows (then). None of them will be executed any more. True if
// there were any.
bool shutdown::refuse_where_parked() {
  bool any = false;
  for (std::size_t i = 0; i < of_.processes().used(); ++i) {
    slot& s = of_.processes().all()[i];
    if (s.state != process_state::running || s.is_function || !s.has_messages()) continue;
    refuse_all(s);
    any = true;
  }
  return any;
}

void shutdown::say_unexecuted() const noexcept {
  if (unexecuted_ == 0 || of_.owner().idleness_of(0).found_dead()) return;
  const std::string line =
      fmt::format("orrery: PE {}: {} one-way message{} not executed when the program ended: {}::{}{}\n", of_.id(),
                  unexecuted_, unexecuted_ == 1 ? " was" : "s were", first_unexecuted_->class_name,
                  first_unexecuted_->method, unexecuted_ == 1 ? "" : " the first of them");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Instead of executing what is in the mailbox.
void shutdown::refuse_mailbox(slot& s) {
  s.state = process_state::running;
  refuse_all(s);
  if (!s.has_object) {
    of_.free_slot(s);
  } else {
    of_.settle(s);
  }
}

void shutdown::destroy_all() {
  of_.refusing_ = false;
  for (bool again = true; again && stage_.load(std::memory_order_relaxed) == shutdown_stage::destroying;) {
    again = false;
    for (std::uint32_t i = of_.processes().used(); i-- > 0;) {
      slot& s = of_.processes().all()[i];
      if (s.state == process_state::free || !s.has_object || s.is_function) continue;
      if (s.state == process_state::idle && s.depth == 0) {
        of_.destroy(s);
      } else {
        again = true;  // a destructor has called it, or it was abandoned
      }
    }
    if (again) {
      of_.ready(*of_.running());
      of_.park();
    }
  }
  if (stage_.load(std::memory_order_relaxed) == shutdown_stage::destroying) end_stages();
}

// Resources that messages own.
void shutdown::drop_leftovers() noexcept {
  for (slot& s : of_.processes().all()) {
    for (message* m = s.take_all(); m != nullptr;) {
      message* next = m->next;
      delivery d;
      d.load(of_, *m);
      if (d.form == wire::payload_form::owned) d.method->drop(d.payload);
      of_.messages().release(m);
      m = next;
    }
  }
  of_.links().drop_leftovers();
}

void shutdown::finish() noexcept {
  drop_leftovers();
  say_unexecuted();
  of_.failures().report_more_unsent();
  of_.links().await_receivers();
  of_.when_idle_.clear();  // layers count what waits there
  of_.layers().clear();
  of_.io_.reset();  // on the thread that made it
  of_.flow().excess().measure();
  of_.publisher_.publish(of_.count(), transport::now_ns());
}

}  // namespace orrery::scheduler
