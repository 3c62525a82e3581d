// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/task/task.h>

#include <cstddef>
#include <span>
#include <utility>

namespace orrery::tasks {

/// A buffer (task.h) with an owner in C++: memory that messages pass on without a copy.
///
/// It belongs to the process that has made it or received it, and is given back when this object
/// ends; in a message that was sent there is none any more. Moved, not copied; used by its process
/// only. A buffer of another process is never given back by this one.
///
///     orrery::tasks::buffer pixels(width * height);
///     std::ranges::fill(pixels.bytes(), std::byte{0});
///     send(printer, Printer::PRINT, {.pixels = std::move(pixels)});
class buffer {
 public:
  buffer() noexcept = default;  ///< none
  /// Memory for so many bytes, which are not set. Does not park. Throws std::bad_alloc, usage_error
  /// outside of a process.
  explicit buffer(std::size_t size);
  /// The buffer of a message that was received, which has none then. Throws usage_error if it is
  /// not this process's any more.
  explicit buffer(orrery_buffer& received);
  buffer(buffer&& o) noexcept : of_(std::exchange(o.of_, orrery_buffer{})) {}
  buffer& operator=(buffer&& o) noexcept {
    buffer old(std::move(*this));
    of_ = std::exchange(o.of_, orrery_buffer{});
    return *this;
  }
  ~buffer();

  /// The bytes, to be read and changed.
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(of_.data), of_.size}; }
  [[nodiscard]] explicit operator bool() const noexcept { return of_.data != nullptr; }

  /// The structure that C uses; it stays this object's.
  [[nodiscard]] const orrery_buffer& c() const noexcept { return of_; }
  /// It was passed on.
  void forget() noexcept { of_ = {}; }

 private:
  orrery_buffer of_ = {};
};

}  // namespace orrery::tasks
