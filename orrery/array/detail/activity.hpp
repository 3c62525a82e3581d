// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/array/detail/core.hpp>

#include <cstdint>
#include <span>
#include <utility>

// Activities that count for the quiescence of an array.
namespace orrery::detail {

/// Something of an array that has begun ends with this.
class activity_end {
 public:
  explicit activity_end(array_core* part) noexcept : part_(part) {}
  activity_end(const activity_end&) = delete;
  activity_end& operator=(const activity_end&) = delete;
  ~activity_end() {
    if (part_ != nullptr) part_->over();
  }

 private:
  array_core* part_;
};
/// The same of what may outlive the array.
class late_activity_end {
 public:
  explicit late_activity_end(std::uint32_t array) noexcept : array_(array) {}
  late_activity_end(const late_activity_end&) = delete;
  late_activity_end& operator=(const late_activity_end&) = delete;
  ~late_activity_end();

 private:
  std::uint32_t array_;
};
/// Counts for an array from where it is made to where it ends, wherever its message takes it; so it
/// is an argument of that: whether it is executed, unreadable or fails, it ends once.
class counted_activity {
 public:
  counted_activity() = default;
  explicit counted_activity(array_core& part) noexcept : array_(part.id()) { part.begins(); }
  counted_activity(counted_activity&& o) noexcept : array_(std::exchange(o.array_, 0)) {}
  counted_activity& operator=(counted_activity&&) = delete;
  ~counted_activity();
  /// It has gone to another node, as bytes.
  void has_left() noexcept { array_ = 0; }
  template <class A>
  void serialize(A& a) {
    a & array_;
  }
  /// The route of messages to a process, whose first argument this is.
  static slot* route(pe& self, scheduler::delivery& d, const wire::envelope& e, std::uint32_t size) noexcept;
  /// Their handler::lost.
  static bool lost(pe& self, const scheduler::handler& h, std::span<const std::byte> payload, std::uint32_t to,
                   const scheduler::unknown_message* unknown) noexcept;

 private:
  std::uint32_t array_ = 0;
};

/// Parks until nothing of an array is queued, running or on its way. Throws usage_error, node_lost,
/// stopped, process_gone.
void wait_for_quiescence(std::uint32_t array);
/// The sums over all PEs of what was begun there and of what has ended, looked at one after the
/// other. If two such looks find the same, and as much ended as begun, then nothing of the array
/// has happened between them. Parks. Throws node_lost, process_gone.
[[nodiscard]] array_activity activity_of(std::uint32_t array);

}  // namespace orrery::detail
