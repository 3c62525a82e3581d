// SPDX-License-Identifier: Apache-2.0
// How a PE comes to its end.
//
// Problem: when the main function has returned, methods are parked in the middle of calls, functions wait in receive, messages
// lie in mailboxes and rings. All that owns things whose destructors have to run, and no stack may be unwound while another
// PE still reads an argument that lies on it.
// So the PEs of a node go through the same stages:
//   finishing   everything goes on as usual, until the PE has nothing to do or `grace` is over;
//   cancelling  messages are not executed any more, they fail with `stopped`, and so does every wait but that for a call.
//               A call ends as ever, now mostly with `stopped`: thus callees are unwound before their callers;
//   quiet       nothing is parked here any more;
//   destroying  (once every PE is quiet) the objects end, the latest first; their destructors may call others;
//   ended       (the PE leaves its loop once every PE has got here).
// What does not end by itself, because its calls wait for each other in a circle or because it catches `stopped` and goes
// on, must not keep the program from ending: when every PE of the node has been in its loop without progress for `patience`,
// it is abandoned with its stack, and one line on stderr says so.
// I/O is never abandoned: the kernel would write into memory that is somebody else's by then. It is cancelled in
// `cancelling`, or when a destructor makes no progress, and waited for without limit.
#include <orrery/scheduler/io.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>

#include <cstdio>
#include <limits>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace orrery::scheduler {

namespace {

constexpr std::int64_t grace_ns = 200'000'000;
constexpr std::int64_t patience_ns = 1'000'000'000;
constexpr std::int64_t fresh_ns = 100'000'000;  // a PE that looked longer ago is inside a method

void say_abandoned(std::uint32_t pe, std::uint32_t count, const char* what) noexcept {
  const std::string line =
      fmt::format("orrery: PE {}: {} {} did not end when the program did; they were abandoned\n", pe, count, what);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void pe::refuse(const char* what) {
  // Who catches it and tries again for ever must not hold the PE.
  if (active_ != nullptr) {
    ready(*current_);
    park();
  }
  std::rethrow_exception(ending(what));
}

std::exception_ptr pe::ending(std::string_view about) const {
  if (node_.idleness_of(0).dead.load(std::memory_order_relaxed) != 0)
    return make_error(
        errc::stopped, verbatim,
        fmt::format("{}{}the world ends, as all that it does is to wait (a deadlock); stderr says for what", about,
                    about.empty() ? "" : ": "));
  // What this program's own end cuts short is explained by the sentence of `stopped`; whoever joined a world has no part in its end.
  if (node_.world() == nullptr || node_.index() == 0 || node_.world_runs()) return make_error(errc::stopped, about);
  return make_error(
      errc::stopped, verbatim,
      fmt::format(
          "{}{}the first node of the world has ended, and the world with it; what others do there is to be finished before",
          about, about.empty() ? "" : ": "));
}

void pe::set_stage(shutdown_stage s) noexcept {
  stage_measure_ = std::numeric_limits<std::uint64_t>::max();
  stalled_.store(0, std::memory_order_relaxed);
  stage_.store(s, std::memory_order_release);  // SYNC: with everyone
  for (std::uint32_t i = 0; i < node_.pe_count(); ++i) node_.wake(node_.first_pe() + i);
}

// True if all PEs of the node have come that far, or are in the stage before and get no further.
bool pe::everyone(shutdown_stage s, std::int64_t now) const noexcept {
  for (std::uint32_t i = 0; i < node_.pe_count(); ++i) {
    const pe& p = node_.local(node_.first_pe() + i);
    // SYNC: acquire, with set_stage
    const shutdown_stage at = p.stage_.load(std::memory_order_acquire);
    if (at >= s) continue;
    const bool before = static_cast<int>(at) + 1 == static_cast<int>(s);
    if (!before || now - p.stalled_.load(std::memory_order_relaxed) > fresh_ns) return false;
  }
  return true;
}

// `measure` falls as long as there is progress.
void pe::watch_progress(std::uint64_t measure, std::int64_t now) noexcept {
  if (measure < stage_measure_) {
    stage_measure_ = measure;
    stage_deadline_ = now + patience_ns;
    stalled_.store(0, std::memory_order_relaxed);
  } else if (now >= stage_deadline_) {
    stalled_.store(now, std::memory_order_relaxed);
  }
}

// Called by the loop since stop(). `busy`: there is something to run. True when the loop is to be left.
bool pe::wind_down(bool busy) {
  for (;;) {
    const std::int64_t now = transport::now_ns();
    switch (stage_.load(std::memory_order_relaxed)) {
      case shutdown_stage::running:
        tell_waits();
        set_stage(shutdown_stage::finishing);
        stage_deadline_ = now + grace_ns;
        break;
      case shutdown_stage::finishing:
        if (busy && now < stage_deadline_) return false;
        set_stage(shutdown_stage::cancelling);
        cancel_waits();
        return false;
      case shutdown_stage::cancelling:
        if (io_active_ != nullptr) {
          io_active_->cancel_all();
          return false;
        }
        if (const std::uint32_t left = parked_methods_ + functions_; busy || left != 0) {
          watch_progress(left, now);
          if (!everyone(shutdown_stage::quiet, now)) return false;
          say_abandoned(id_, left, "parked processes");
        }
        set_stage(shutdown_stage::quiet);
        break;
      case shutdown_stage::quiet:
        if (!everyone(shutdown_stage::quiet, now)) return false;
        set_stage(shutdown_stage::destroying);
        destroy_all();
        break;
      case shutdown_stage::destroying:  // a destructor is parked
        if (waits_for_files()) return false;
        watch_progress(~(count_.executed + count_.sent + count_.received + count_.io_requests), now);
        if (!everyone(shutdown_stage::ended, now)) return false;
        if (io_active_ != nullptr) {
          io_active_->cancel_all();
          return false;
        }
        say_abandoned(id_, 1, "destructors");
        end_stages();
        break;
      case shutdown_stage::ended:
        if (io_active_ != nullptr) {  // started by a destructor, which did not wait
          io_active_->cancel_all();
          return false;
        }
        return everyone(shutdown_stage::ended, now);
    }
  }
}

// Requests that end by themselves, soon or late.
bool pe::waits_for_files() const noexcept { return io_active_ != nullptr && io_active_->bounded() != 0; }

void pe::make_io() { io_ = io_engine::make(*this); }

std::uint32_t pe::io_outstanding() const noexcept { return io_active_ != nullptr ? io_active_->outstanding() : 0; }

void pe::end_stages() noexcept {
  refusing_ = true;
  set_stage(shutdown_stage::ended);
}

void pe::cancel_waits() {
  refusing_ = true;
  while (!timers_.empty()) {
    timer* t = timers_.begin()->second;
    timers_.erase(timers_.begin());
    fire(*t);
  }
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    slot& s = slots_[i];
    if (s.is_function && s.has_object) {
      static_cast<fiber*>(s.object())->cancelled = 1;
      if (s.state == process_state::receiving) make_runnable(s);
    }
    if (s.has_extra) {
      wake_all(std::exchange(extra_of(s)->senders, nullptr));
      made_room(s);
    }
  }
  for (auto& held : stopped_) wake_all(std::exchange(held.second.waiters, nullptr));
  stopped_.clear();
  for (const auto& c : channels_) wake_waiters(*c);
  wake_all(std::exchange(quiescence_waiters_, nullptr));
  for (std::size_t i = 0; i < watchers_.size(); ++i) watchers_[i]->cancel_waits(*this);
  // What other nodes were asked: they end as well. Their arguments were sent as copies.
  for (std::uint32_t i = 1; i < pending_.size(); ++i) {
    sink* s = pending_[i].waiting;
    if (s == nullptr) continue;
    (void)take_pending(s->entry);
    s->error = refusal(s->method);
    s->state = sink::status::error;
    complete(*s);
  }
}

std::exception_ptr pe::refusal(const handler* method) const {
  return ending(method == nullptr ? std::string{} : fmt::format("{}::{}", method->class_name, method->method));
}

// Instead of executing what is in the mailbox.
void pe::refuse_mailbox(slot& s) {
  s.state = process_state::running;
  while (s.has_messages()) {
    delivery d;
    load(d, *s.pop());
    fail(d, refusal(d.method));
  }
  if (!s.has_object) {
    free_slot(s);
  } else {
    settle(s);
  }
}

void pe::destroy_all() {
  refusing_ = false;
  for (bool again = true; again && stage_.load(std::memory_order_relaxed) == shutdown_stage::destroying;) {
    again = false;
    for (std::uint32_t i = slot_count_; i-- > 0;) {
      slot& s = slots_[i];
      if (s.state == process_state::free || !s.has_object || s.is_function) continue;
      if (s.state == process_state::idle && s.depth == 0) {
        destroy(s);
      } else {
        again = true;  // a destructor has called it, or it was abandoned
      }
    }
    if (again) {
      ready(*current_);
      park();
    }
  }
  if (stage_.load(std::memory_order_relaxed) == shutdown_stage::destroying) end_stages();
}

// After the loop, on the thread's own stack: what messages own.
void pe::drop_leftovers() noexcept {
  for (std::uint32_t i = 0; i < slot_count_; ++i) {
    slot& s = slots_[i];
    for (message* m = s.take_all(); m != nullptr;) {
      message* next = m->next;
      delivery d;
      load(d, *m);
      if (d.form == wire::payload_form::owned) d.method->drop(d.payload);
      release_message(m);
      m = next;
    }
  }
  {
    const std::lock_guard lock(arrivals_mutex_);
    for (auto& in : arrivals_) inbound_.push_back(std::move(in));
    arrivals_.clear();
  }
  for (const auto& [f, argument] : errands_) f(argument);
  for (const auto& in : inbound_) {
    if (in->remote || in->lost) continue;
    while (wire::envelope* e = in->ring.front()) {
      if (e->kind == wire::record_kind::message && e->form == wire::payload_form::owned)
        reinterpret_cast<const handler*>(e->handler)->drop(e->payload());
      (void)in->ring.pop();
    }
  }
}

}  // namespace orrery::scheduler
