// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/service/session_core.hpp>
#include <orrery/wire/error.hpp>

#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <span>
#include <utility>

namespace orrery::service {

/// A session whose replies are given out as they come: what a session needs beside its requests and its routes.
///
/// A service derives its session from it, and gives route_of(), read(), and the functions that clients call: these pack a request
/// with make(), and wait for its reply with run(). `Reply` has `request`, `error` and check().
///
/// The destructor of the derived class calls end(), so that requests whose replies nobody takes are executed.
///
/// Used by one process only. make() and run() throw usage_error, stopped, what the packing throws, and run() what the
/// reply's error is.
template <class Reply>
class reply_session : protected session_core {
 public:
  using reply = Reply;
  using session_core::session_core;
  reply_session(const reply_session&) = delete;
  reply_session& operator=(const reply_session&) = delete;

  using session_core::flush;
  using session_core::outstanding;
  using session_core::set_window;
  using session_core::window;

  /// The next reply to a request of those that return a number. Parks until there is one; none if no request is left.
  [[nodiscard]] std::optional<Reply> receive() {
    while (ready_.empty() && await_answers()) {
    }
    return take_ready();
  }
  /// The same, but does not park; none if no reply has come.
  [[nodiscard]] std::optional<Reply> try_receive() {
    if (ready_.empty()) take_answers();
    return take_ready();
  }

 protected:
  /// A request: `pack(packer&)` appends it. Parks while the window is full. Returns its number.
  template <class Pack>
  number make(route_number to, Pack pack) {
    if (ready_.size() >= options().unfetched) [[unlikely]]
      throw usage_error(
          errc::bad_argument,
          "a session holds as many replies as session_options::unfetched allows: take them with receive()");
    wait_for_room();
    try {
      pack(begin(to, next_));
    } catch (...) {
      withdraw();
      throw;
    }
    const number n = next_++;
    issued();
    return n;
  }
  /// Parks until the request is answered. Its reply does not go to receive().
  Reply run(number n) {
    for (;;) {
      for (auto r = ready_.begin(); r != ready_.end(); ++r) {
        if (r->request != n) continue;
        Reply found = std::move(*r);
        ready_.erase(r);
        found.check();
        return found;
      }
      (void)await_answers();
    }
  }
  /// Takes one answer out of those to a batch.
  virtual void read(unpacker& answers, Reply& to) = 0;

 private:
  std::optional<Reply> take_ready() {
    if (ready_.empty()) return {};
    std::optional<Reply> r(std::move(ready_.front()));
    ready_.pop_front();
    return r;
  }
  void answered(route_number, std::span<const number> numbers, std::span<const std::byte> answer) final {
    unpacker u(answer);
    for (const number n : numbers) {
      Reply& r = ready_.emplace_back();
      r.request = n;
      read(u, r);
      done();
    }
  }
  void failed(std::span<const number> numbers, const std::exception_ptr& why) final {
    for (const number n : numbers) {
      ready_.emplace_back().request = n;
      ready_.back().error = why;
    }
  }

  number next_ = 0;
  std::deque<Reply> ready_;
};

}  // namespace orrery::service
