// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/io.hpp>

#include <orrery/scheduler/io_pool.hpp>
#include <orrery/scheduler/io_ring.hpp>
#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cassert>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

namespace orrery::scheduler {
namespace {

constexpr std::uint32_t bounded_limit = 1024;  // requests on files that may be on their way at once

}  // namespace

std::string_view to_string(io_call call) noexcept {
  switch (call) {
    case io_call::read:
      return "read";
    case io_call::write:
      return "write";
    case io_call::readv:
      return "readv";
    case io_call::writev:
      return "writev";
    case io_call::fsync:
      return "fsync";
    case io_call::fdatasync:
      return "fdatasync";
    case io_call::fallocate:
      return "fallocate";
    case io_call::open:
      return "open";
    case io_call::close:
      return "close";
    case io_call::poll:
      return "poll";
  }
  return "?";
}

wire::unique_ptr<io_engine> io_engine::make(pe& owner) {
  const char* variable = std::getenv("ORRERY_IO");
  const std::string_view wish = variable != nullptr ? variable : "";
  if (wish == "threads") return wire::make_unique<io_pool_engine>(owner, owner.owner().io_helpers());
  const bool forced = wish == "uring" || wish == "uring-basic";
  if (!forced && !wish.empty())
    throw usage_error(errc::bad_argument,
                      fmt::format("ORRERY_IO is '{}'; it must be uring, uring-basic or threads", wish));
  auto ring = io_ring_engine::make(owner, wish == "uring-basic");
  if (ring) return std::move(*ring);
  const std::string why = fmt::format("io_uring is not to be had here ({})", ring.error());
  if (forced) throw usage_error(errc::bad_argument, fmt::format("ORRERY_IO is '{}', but {}", wish, why));
  owner.owner().io_helpers().explain(why + ": files are read and written by helper threads");
  return wire::make_unique<io_pool_engine>(owner, owner.owner().io_helpers());
}

io_engine::~io_engine() { assert(outstanding_ == 0); }

void io_engine::start(io_request& r) {
  r.done = r.cancelled = r.awaits_readiness = false;
  r.waiter = nullptr;
  r.link = r.previous = nullptr;
  r.next = all_;
  if (all_ != nullptr) all_->previous = &r;
  all_ = &r;
  if (outstanding_++ == 0) owner_.io_begins();
  if (!r.open_ended()) ++bounded_;
  try {
    submit(r);
  } catch (...) {
    unlink(r);
    throw;
  }
}

void io_engine::unlink(io_request& r) noexcept {
  (r.previous != nullptr ? r.previous->next : all_) = r.next;
  if (r.next != nullptr) r.next->previous = r.previous;
  if (--outstanding_ == 0) owner_.io_ends();
  if (!r.open_ended() && --bounded_ < bounded_limit && room_waiters_ != nullptr) wake_for_room();
}

void io_engine::wake_for_room() {
  fiber* f = room_waiters_;
  room_waiters_ = f->next;
  f->next = nullptr;
  owner_.ready(*f);
}

bool io_engine::submit_again(io_request& r) noexcept {
  try {
    submit(r);
    return true;
  } catch (...) {
    return false;
  }
}

void io_engine::finish(io_request& r, std::int64_t result) {
  if (r.awaits_readiness) {
    r.awaits_readiness = false;
    if (result >= 0) result = -EAGAIN;
  } else if (result == -EAGAIN && r.transfers() && r.open_ended()) {
    r.awaits_readiness = true;
  }
  if (result == -EAGAIN && r.open_ended()) {
    const bool ending = r.cancelled || owner_.refusing();
    if (!ending && submit_again(r)) return;
    result = ending ? -ECANCELED : -ENOMEM;
  }
  unlink(r);
  ++owner_.count().io_requests;
  if (result > 0 && r.transfers()) owner_.count().io_bytes += static_cast<std::uint64_t>(result);
  r.result = result;
  r.done = true;
  if (r.on_done != nullptr) {
    r.on_done(owner_, r);
  } else if (r.waiter != nullptr) {
    owner_.ready(*r.waiter);
  }
}

void io_engine::run(io_request& r) {
  owner_.require_process();
  start(r);
  while (!r.done) {
    r.waiter = owner_.running();
    owner_.park();
  }
}

void io_engine::run_until(io_request& r, std::int64_t deadline_ns) {
  owner_.require_process();
  start(r);
  while (!r.done) {
    r.waiter = owner_.running();
    // park_until would throw, and the kernel has the request
    if (r.cancelled || owner_.refusing()) {
      cancel(r);
      if (!r.done) owner_.park();
    } else if (owner_.park_until(deadline_ns) && !r.done) {
      cancel(r);
    }
  }
}

void io_engine::cancel(io_request& r) {
  if (r.done || r.cancelled) return;
  r.cancelled = true;
  submit_cancel(r);
}

void io_engine::cancel_all() {
  while (room_waiters_ != nullptr) wake_for_room();
  for (io_request* r = all_; r != nullptr;) {
    io_request* next = r->next;
    r->cancelled = true;
    // also if that was done before: what was just changing hands may not have been found
    submit_cancel(*r);
    r = next;
  }
}

void io_engine::wait_for_room() {
  while (bounded_ >= bounded_limit) {
    owner_.require_process();
    fiber* f = owner_.running();
    f->next = nullptr;
    (room_waiters_ != nullptr ? last_room_waiter_->next : room_waiters_) = f;
    last_room_waiter_ = f;
    owner_.park();
    if (owner_.refusing()) owner_.shutdown().refuse("io");
  }
}

// Requests that end by themselves, soon or late.
bool pe::waits_for_files() const noexcept { return io_active_ != nullptr && io_active_->bounded() != 0; }

void pe::make_io() { io_ = io_engine::make(*this); }

}  // namespace orrery::scheduler
