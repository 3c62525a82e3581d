// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/function.hpp>
#include <orrery/process/future.hpp>
#include <orrery/service/range_process.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace orrery::service {

/// Where a walking list answers. It stands between sessions on one PE and the head of the list.
///
/// Problem: a session calls; a walking request is passed on from process to process, and the last one answers.
///
/// The gate takes a batch like a range, posts its requests to the head, one after the other, and parks until all
/// are answered. It is reentrant, so it takes answers and further batches meanwhile: no client can hold
/// the list up. All its requests reach the head in the order in which they came.
class walk_gate : public range_process {
 public:
  static constexpr bool orrery_reentrant = true;

  void answer(std::uint64_t request, std::span<const std::byte> packed);

  range_report report() final { return report_; }

 protected:
  /// A batch under way.
  class batch {
   public:
    batch(walk_gate& at, std::uint32_t count);
    batch(const batch&) = delete;
    batch& operator=(const batch&) = delete;
    ~batch();
    [[nodiscard]] std::uint64_t first() const noexcept { return first_; }
    /// Parks until all requests are answered; their answers in the order of the requests.
    bytes wait();

   private:
    friend class walk_gate;
    walk_gate& at_;
    std::uint64_t first_;
    std::vector<bytes> answers_;
    std::size_t left_;
    detail::future_state<void>* waiting_ = nullptr;
  };
  range_report report_;

 private:
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, batch*> open_;  // by their first requests
};
ORRERY_PROCESS(walk_gate, answer);

/// What travels from process to process of a walking list.
struct walk_request {
  remote<walk_gate> gate;
  std::uint64_t number = 0;
  std::uint64_t count = 0;  ///< of size: items of the processes behind
};

/// What a process of a walking list knows of the next one. Keys are packed.
struct walk_link {
  address next;  ///< null: there is none
  bytes least;   ///< its least key
};

/// A process of a walking list, as the others see it; see walk_node.
class walk_process {
 public:
  walk_process() = default;
  walk_process(const walk_process&) = delete;
  walk_process& operator=(const walk_process&) = delete;
  virtual ~walk_process() = default;

  /// A request that is for this process or one behind it.
  virtual void walk(const walk_request& r, std::span<const std::byte> request) = 0;
  /// A free process becomes one of the list, with these items.
  virtual void begin(const walk_link& next, std::span<const std::byte> items) = 0;
  /// Its least item is erased. It is free if none is left; says whom its predecessor now precedes.
  virtual walk_link erase_least() = 0;
  /// Returns when all has been done that its predecessor sent before.
  void acknowledge() {}
  virtual void tune(std::uint32_t granularity, std::uint32_t forwards) = 0;
};
ORRERY_PROCESS(walk_process, walk, begin, erase_least, acknowledge, tune);

/// The free processes of one PE.
///
/// Problem: a list grows and shrinks all the time, and a process that is made for each item costs more than the item.
///
/// A manager has a pool of free processes. If it is empty, it asks the next manager, around the ring of all
/// of them; if all are empty, the list is full. It is reentrant: two may ask each other.
class walk_manager {
 public:
  static constexpr bool orrery_reentrant = true;

  void join(remote<walk_manager> next) { next_ = next; }
  void adopt(const std::vector<remote<walk_process>>& all);
  /// Null if there is none here or at the next `managers` of the ring.
  remote<walk_process> take(std::uint32_t managers);
  void put(remote<walk_process> p) { free_.push_back(p); }
  [[nodiscard]] std::uint64_t free() const { return free_.size(); }
  void tune(std::uint32_t granularity, std::uint32_t forwards);
  /// Destroys all processes that it was given by adopt().
  void end();

 private:
  remote<walk_manager> next_;
  std::vector<remote<walk_process>> all_;
  std::vector<remote<walk_process>> free_;
};
ORRERY_PROCESS(walk_manager, join, adopt, take, put, free, tune, end);

}  // namespace orrery::service
