// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace orrery::wire {

/// The base of classes whose objects counted_ptr owns. A copy of an object begins without owners.
class counted {
 protected:
  counted() noexcept = default;
  counted(const counted&) noexcept {}
  counted& operator=(const counted&) noexcept { return *this; }
  ~counted() = default;

 private:
  template <class T>
  friend class counted_ptr;
  mutable std::atomic<std::uint32_t> owners_{0};
};

/// One of the owners of an object, as std::shared_ptr, in what users' programs read: the header of
/// that one reads all streams (see unique_ptr.hpp). The last owner deletes the object as a T: a T
/// with derived classes has a virtual destructor. Copies may be on different threads.
template <class T>
class counted_ptr {
 public:
  counted_ptr() noexcept = default;
  counted_ptr(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor)
  /// Owns it, too.
  explicit counted_ptr(T* of) noexcept : of_(of) { enter(); }
  counted_ptr(const counted_ptr& other) noexcept : of_(other.of_) { enter(); }
  counted_ptr(counted_ptr&& other) noexcept : of_(std::exchange(other.of_, nullptr)) {}
  counted_ptr& operator=(counted_ptr other) noexcept {
    std::swap(of_, other.of_);
    return *this;
  }
  ~counted_ptr() { leave(); }

  [[nodiscard]] T* get() const noexcept { return of_; }
  [[nodiscard]] T* operator->() const noexcept { return of_; }
  [[nodiscard]] T& operator*() const noexcept { return *of_; }
  [[nodiscard]] explicit operator bool() const noexcept { return of_ != nullptr; }
  [[nodiscard]] friend bool operator==(const counted_ptr& a, const counted_ptr& b) noexcept { return a.of_ == b.of_; }

 private:
  void enter() noexcept {
    // relaxed: there is an owner, who keeps it
    if (of_ != nullptr) of_->owners_.fetch_add(1, std::memory_order_relaxed);
  }
  // Release: what this owner did is before the end. Acquire: so is what the others did.
  void leave() noexcept {
    if (of_ != nullptr && of_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete of_;
  }

  T* of_ = nullptr;
};

}  // namespace orrery::wire
