// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <utility>

namespace orrery::service {

/// A session whose replies are given out as they come, or in the order of the requests: what a
/// session needs beside its requests and its routes.
///
/// A service derives its session from it, and gives route_of(), read(), and the functions that
/// clients call: these pack a request with make(), and wait for its reply with run(), or call
/// check_unfetched() before and return its number. `Reply` has `request`, `error` and check().
///
/// The destructor of the derived class calls end(), so that requests whose replies nobody takes are
/// executed.
///
/// Used by one process only. make() and run() throw stopped, what the packing throws, and run()
/// what the reply's error is; check_unfetched() throws usage_error.
template <class Reply>
class reply_session : protected session_core {
 public:
  /// A reply to a request that was started.
  using reply = Reply;
  /// Throws usage_error if an option has a value that there is not.
  using session_core::session_core;
  reply_session(const reply_session&) = delete;
  reply_session& operator=(const reply_session&) = delete;

  using session_core::flush;
  using session_core::flush_idle;
  using session_core::outstanding;
  using session_core::set_window;
  /// How many requests may be outstanding at once.
  using session_core::window;

  /// The next reply to a request of those that return a number. Parks until there is one; none if
  /// no request is left.
  [[nodiscard]] std::optional<Reply> receive() {
    while (!ready() && await_answers()) {
    }
    return take_ready();
  }
  /// The same, but does not wait for a reply; none if none has come. It sends what was gathered for
  /// processes that have answered since, and parks only while one of these is full.
  [[nodiscard]] std::optional<Reply> try_receive() {
    if (!ready()) take_answers();
    return take_ready();
  }

 protected:
  /// Before the request of a function that returns its number: its reply may stay in the session.
  void check_unfetched() const {
    if (ready_.size() >= options().unfetched) [[unlikely]]
      throw usage_error(
          errc::bad_argument,
          "a session holds as many replies as session_options::unfetched allows: take them with receive()");
  }
  /// A request: `pack(packer&)` appends it. Parks while the window is full. Returns its number.
  template <class Pack>
  number make(route_number to, Pack pack) {
    wait_for_room();
    try {
      pack(begin(to, next_));
    } catch (...) {
      withdraw();
      throw;
    }
    const number n = next_++;
    if (in_order()) due_.push_back(n);
    issued();
    return n;
  }
  /// Parks until the request is answered. Its reply does not go to receive().
  Reply run(number n) {
    if (in_order()) due_.pop_back();
    for (;;) {
      for (auto r = ready_.begin(); r != ready_.end(); ++r) {
        if (r->request != n) continue;
        Reply found = std::move(*r);
        ready_.erase(r);
        found.check();
        return found;
      }
      await_more_answers();
    }
  }
  /// Takes one answer out of those to a batch, also if this throws. The batch was executed on this
  /// PE.
  virtual void read(unpacker& answers, Reply& to, std::uint32_t pe) = 0;

 private:
  std::optional<Reply> take_ready() {
    if (!ready()) return {};
    std::optional<Reply> r(std::move(ready_.front()));
    ready_.pop_front();
    if (in_order()) due_.pop_front();
    return r;
  }
  [[nodiscard]] bool in_order() const noexcept { return options().replies == reply_order::as_requested; }
  [[nodiscard]] bool ready() const noexcept {
    return !ready_.empty() && (!in_order() || ready_.front().request == due_.front());
  }
  Reply& reply_to(number n) {
    const auto behind = in_order() ? std::ranges::upper_bound(ready_, n, {}, &Reply::request) : ready_.end();
    Reply& r = *ready_.emplace(behind);
    r.request = n;
    return r;
  }
  void answered(route_number from, std::span<const number> numbers, std::span<const std::byte> answer) final {
    unpacker u(answer);
    for (const number n : numbers) {
      Reply& r = reply_to(n);
      try {
        read(u, r, owner_of(from).address().pe);
      } catch (...) {  // what the program's value throws
        r.error = std::current_exception();
      }
      done();
    }
  }
  void failed(std::span<const number> numbers, const std::exception_ptr& why) final {
    for (const number n : numbers) reply_to(n).error = why;
  }

  number next_ = 0;
  std::deque<Reply> ready_;  // as requested: ascending
  std::deque<number> due_;  // as requested: those whose replies receive() has not given
};

}  // namespace orrery::service
