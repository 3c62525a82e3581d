// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::transport {

/// The PEs that a thread is to wake once it has let the library go.
///
/// Problem: a PE may run at once, on the core of the thread that has woken it. As long as that one
/// has the lock, the PE can do nothing with the carrier: it would spin until it sleeps again.
///
/// Owned by the carrier, under its lock.
class late_wakes {
 public:
  struct wake {
    std::uint32_t pe = 0;
    bool always = false;  ///< also a PE that has not said that it sleeps
    bool operator==(const wake&) const = default;
  };

  /// False if there is no room: then the caller wakes it at once.
  [[nodiscard]] bool add(wake w) noexcept {
    if (count_ != 0 && wakes_[count_ - 1] == w) return true;
    if (count_ == wakes_.size()) return false;
    wakes_[count_++] = w;
    return true;
  }
  /// Moves all that were added out of here.
  [[nodiscard]] late_wakes take() noexcept {
    late_wakes all = *this;
    count_ = 0;
    return all;
  }
  [[nodiscard]] std::span<const wake> all() const noexcept { return std::span(wakes_).first(count_); }

 private:
  std::array<wake, 8> wakes_;
  std::size_t count_ = 0;
};

}  // namespace orrery::transport
