// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/service/packing.hpp>
#include <orrery/service/presence.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace orrery::service {

/// How a batch is to be executed.
enum class batch_rule : std::uint8_t {
  each,           ///< each request that belongs here, whatever happens to those before it
  until_refused,  ///< none behind one that belongs elsewhere
};

/// What a process of a service has done, for people.
struct range_report {
  std::uint64_t items = 0;
  std::uint64_t requests = 0;
  std::uint64_t moved = 0;  ///< requests that belonged elsewhere
  std::uint64_t splits = 0;
  std::uint64_t bytes = 0;  ///< of memory, with what keys and values take themselves
  std::uint64_t streams = 0;  ///< for which items are kept
  std::uint64_t limit = 0;    ///< of items, above which it splits; 0: none

  friend bool operator==(const range_report&, const range_report&) = default;
};

/// A process of a service that owns some of its keys, as those see it that know no types.
///
/// Problem: a data structure that many clients use must apply each operation at one moment, on any
/// PE, without locks, and without a message for each operation.
///
/// A range owns an interval of the keys. It runs one method at a time, so each request that it executes
/// takes effect at one moment. Requests come in batches. What belongs to a range that was split off is
/// answered with `moved`; behind such answers stands which ranges have been split off.
///
/// The intervals of ranges follow each other. A range whose answer depends on what follows it calls
/// its successor, and waits with its own keys at rest. Such calls go forward only, so no circle comes
/// about, and the whole answer is true at one moment.
///
/// Made by the first process of the service or by a range that splits; lives until the service ends.
class range_process {
 public:
  range_process() = default;
  range_process(const range_process&) = delete;
  range_process& operator=(const range_process&) = delete;
  virtual ~range_process() = default;

  /// Executes a batch of requests; one answer for each, in their order.
  virtual bytes serve(std::uint32_t count, batch_rule rule, std::span<const std::byte> requests) = 0;
  /// The next part of an interval of keys; see scan_cursor.
  virtual bytes scan(std::uint32_t limit, std::span<const std::byte> interval) = 0;
  /// All items of an interval of keys at one moment, here and in the ranges that follow.
  virtual bytes snapshot(std::span<const std::byte> interval) = 0;
  /// Keeps the items of an interval as they are at one moment, here and in the ranges that follow, for a stream, until the stream
  /// has read them or its presence ends. Returns the addresses of these ranges.
  virtual bytes pin(remote<presence> stream, std::span<const std::byte> interval) = 0;
  /// The next `limit` of the items that are kept for a stream, behind one byte: whether there are more.
  virtual bytes read_pin(remote<presence> stream, std::uint32_t limit) = 0;
  virtual void unpin(remote<presence> stream) = 0;
  /// The least item here or in the ranges that follow; no bytes if there is none.
  virtual bytes first_item() = 0;
  /// The greatest item here or in the ranges that follow; no bytes if there is none.
  virtual bytes last_item() = 0;
  /// The number of items here and in the ranges that follow.
  virtual std::uint64_t count_from_here() = 0;
  /// Gives half of the keys to a new process if there are too many.
  virtual void split() = 0;
  /// With more than so many items it splits from now on.
  virtual void tune(std::uint32_t items) = 0;
  virtual range_report report() = 0;
};
ORRERY_PROCESS(range_process, serve, scan, snapshot, pin, read_pin, unpin, first_item, last_item, count_from_here,
               split, tune, report);

}  // namespace orrery::service
