// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/call.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/wait_until.hpp>
#include <orrery/wire/exception_class.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {

/// A channel is closed, and all that was sent has been received.
struct channel_closed : std::runtime_error {
  channel_closed() : std::runtime_error("the channel is closed, and all that was sent has been received") {}
  explicit channel_closed(const std::string& what) : std::runtime_error(what) {}
};
ORRERY_EXCEPTION(channel_closed);

/// A process through which values go from any that send to any that receive, each value to one of
/// them, in the order in which they were sent.
///
///     auto lines = spawn<channel<std::string>>(here(), 100);      // at most 100 wait in it
///     lines->send("one");                                         // waits while it is full
///     std::string line = lines->receive();                        // waits while it is empty
///
/// Who waits does so with a stack, on the channel's PE if it is on another one; those that wait are
/// served in the order in which they came. A receiver whose node is lost while it waits is passed
/// over. A value that is on its way to it then is lost, too. A value whose sender waits is put in
/// also if the sender's node is lost.
template <class T>
class channel {
 public:
  /// `capacity`: values that may lie in it; 0: any number.
  explicit channel(std::size_t capacity = 0) noexcept
      : capacity_(capacity != 0 ? capacity : std::numeric_limits<std::size_t>::max()) {}
  /// Puts a value in; waits while it is full. Throws channel_closed, process_gone if it is
  /// destroyed before, stopped.
  void send(T value) {
    wait_until([this] { return size() < capacity_ || closed_; });
    put(std::move(value));
  }
  /// As send, but false where it would wait. Throws channel_closed.
  [[nodiscard]] bool try_send(T value) {
    if (size() >= capacity_ && !closed_) return false;
    put(std::move(value));
    return true;
  }
  /// The oldest value; waits while there is none. Throws channel_closed when there will be none,
  /// process_gone, stopped.
  T receive() {
    detail::wait_for_caller([this] { return oldest_ || closed_; });
    return take();
  }
  /// As receive, but empty where it would wait. Throws channel_closed when there will be none.
  [[nodiscard]] std::optional<T> try_receive() {
    if (!oldest_ && !closed_) return std::nullopt;
    return take();
  }
  /// Nothing more is sent. Messages that are there are still received.
  void close() noexcept { closed_ = true; }
  [[nodiscard]] std::size_t size() const noexcept {
    return (oldest_ ? 1 : 0) + (others_ != nullptr ? others_->size() : 0);
  }

 private:
  void put(T&& value) {
    if (closed_) throw channel_closed();
    if (!oldest_) {
      oldest_.emplace(std::move(value));
      return;
    }
    if (others_ == nullptr) others_ = wire::make_unique<std::deque<T>>();
    others_->push_back(std::move(value));
  }
  T take() {
    if (!oldest_) throw channel_closed();
    T value = *std::move(oldest_);
    oldest_.reset();
    if (others_ != nullptr && !others_->empty()) {
      oldest_.emplace(std::move(others_->front()));
      others_->pop_front();
    }
    return value;
  }

  std::size_t capacity_;
  bool closed_ = false;
  std::optional<T> oldest_;  // here, so that a value that passes touches no other memory
  wire::unique_ptr<std::deque<T>> others_;  // made when there is a second one
  ORRERY_PROCESS_MEMBERS(channel, send, try_send, receive, try_receive, close, size)
};

}  // namespace orrery
