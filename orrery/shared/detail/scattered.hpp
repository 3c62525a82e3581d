// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/future.hpp>
#include <orrery/shared/detail/guard.hpp>
#include <orrery/shared/transfer.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace orrery::detail {

struct shared_object;

/// Elements of one part, by their numbers there, as steps: numbers that follow each other in equal
/// distances.
///
/// Problem: a list of the places of a million elements is as long as what lies there. But what a
/// stride or a block meets in one part is one step, whatever the distribution; and a list without
/// any order costs 12 bytes an element.
class part_places {
 public:
  void add(std::uint64_t local);
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  /// Calls f(local) for each, in the order in which they were added.
  template <class F>
  void for_each(F f) const {
    for (const step& s : steps_)
      for (std::uint64_t i = 0; i < s.count; ++i) f(s.first + i * s.distance);
  }
  /// All are below this, though they came in a message.
  [[nodiscard]] bool inside(std::uint64_t elements) const noexcept;

  template <class A>
  void serialize(A& a) {
    a & steps_ & count_;
  }

 private:
  struct step {
    std::uint64_t first = 0;
    std::uint64_t distance = 0;  // may wrap around: below the one before
    std::uint64_t count = 0;
  };
  std::vector<step> steps_;
  std::uint64_t count_ = 0;
};

/// Reads elements of a vector or a matrix from anywhere to local memory, all that one owner has by
/// one request of at most 512 KiB of elements. Memory of this machine is read at once, in begin().
///
/// Owned by who wants them, used on one PE. The destination must outlive it; so must an index list
/// until begin() has returned.
class gather_reader {
 public:
  gather_reader() = default;
  gather_reader(const gather_reader&) = delete;
  gather_reader& operator=(const gather_reader&) = delete;
  /// May park. Throws std::out_of_range, node_lost.
  void begin(std::shared_ptr<const shared_object> from, const index_source& indices, std::byte* to);
  /// Parks until all are there. Throws node_lost, stopped, usage_error (destroyed meanwhile).
  void finish();

 private:
  struct request {
    std::vector<std::uint64_t> numbers;
    future<std::vector<std::byte>> answer;
  };
  void take_oldest();
  std::shared_ptr<const shared_object> from_;
  std::byte* to_ = nullptr;
  std::deque<request> asked_;
};

/// The same for writing. Where an index is there twice, either value may stay. When begin() has
/// returned, the values may be overwritten; when finish() has, everybody sees them.
class scatter_writer {
 public:
  explicit scatter_writer(const write_site& site) noexcept : site_(site) {}
  scatter_writer(const scatter_writer&) = delete;
  scatter_writer& operator=(const scatter_writer&) = delete;
  void begin(std::shared_ptr<const shared_object> to, const index_source& indices, const std::byte* values);
  void finish();

 private:
  void send(const index_source& indices, const std::byte* values);

  write_site site_;
  std::shared_ptr<const shared_object> to_;
  std::deque<future<void>> sent_;
};

}  // namespace orrery::detail
