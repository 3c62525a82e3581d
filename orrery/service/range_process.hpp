// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/spawn.hpp>
#include <orrery/service/detail/exposed_header.hpp>
#include <orrery/service/detail/packing.hpp>
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

/// The head of the requests of a batch.
struct batch_head {
  std::uint32_t count = 0;
  batch_rule rule = batch_rule::each;
  std::uint32_t from_pe = 0;  ///< of its session
  /// The newest version that the session has heard of for keys of this process (owned_keys).
  std::uint64_t known = 0;
  std::uint32_t window = 0;  ///< of its session
  bool places = false;  ///< behind all answers stands a served_at
};

/// When a batch was executed: request i of it had the place `count + i` in the order of its
/// process, which owned its keys since `version`. So requests for one key took effect in the order
/// of (version, place).
struct served_at {
  std::uint64_t version = 0;
  std::uint64_t count = 0;
};

/// The work of a process of a service, for people.
struct range_report {
  std::uint64_t items = 0;
  std::uint64_t requests = 0;
  std::uint64_t moved = 0;  ///< requests that belonged elsewhere
  std::uint64_t splits = 0;
  std::uint64_t merges = 0;  ///< with the range behind it
  std::uint64_t bytes = 0;  ///< of memory, with what keys and values take themselves
  std::uint64_t streams = 0;  ///< for which items are kept
  std::uint64_t limit = 0;  ///< of items, above which it splits; 0: none
  std::uint64_t busy_ns = 0;  ///< of processor time, by samples
  std::uint32_t pe = 0;  ///< where it is
  std::uint32_t window = 0;  ///< of the session whose batch was the last one

  friend bool operator==(const range_report&, const range_report&) = default;
};

/// A process of a service that owns some of its keys, as sessions see it: they know no types.
///
/// Problem: a data structure that many clients use must apply each operation at one moment, on any
/// PE, without locks, and without a message for each operation.
///
/// A range owns an interval of the keys, or what else the service divides. It runs one method at a
/// time, so each request that it executes takes effect at one moment. Requests come in batches. A
/// request that belongs elsewhere is answered with `moved`; behind such answers stands where it
/// belongs (owned_keys). A request that a service does not have fails with usage_error.
///
/// Made by the first process of the service, or by another one of these; lives until the service
/// ends.
class range_process {
 public:
  range_process() = default;
  range_process(const range_process&) = delete;
  range_process& operator=(const range_process&) = delete;
  virtual ~range_process() = default;

  /// Executes a batch of requests; one answer for each, in their order.
  virtual bytes serve(const batch_head& head, std::span<const std::byte> requests) = 0;
  /// Its part of statistics().
  virtual range_report report() = 0;
  /// The next part of an interval of keys; see list_scan. Its answer begins with a list_answer, as
  /// do those of the next two.
  virtual bytes scan(std::uint32_t limit, std::span<const std::byte> interval);
  /// All items of an interval of keys at one moment, here and in the ranges that follow.
  virtual bytes snapshot(std::span<const std::byte> interval);
  /// Keeps the items of an interval as they are at one moment, here and in the ranges that follow,
  /// for a stream, until the stream has read them or its presence ends. Returns these ranges
  /// (owned_keys), and behind each its number of requests so far (8 bytes).
  virtual bytes pin(remote<presence> stream, std::span<const std::byte> interval);
  /// The next `limit` of the items that are kept for a stream, behind one byte: whether there are
  /// more.
  virtual bytes read_pin(remote<presence> stream, std::uint32_t limit);
  /// The stream has ended: what is kept for it is freed.
  virtual void unpin(remote<presence>) {}
  /// With more than so many items it splits from now on.
  virtual void tune(std::uint32_t) {}
  /// Where sessions of other OS processes of its machine may read it.
  virtual exposed_place exposed() { return {}; }
};
// The figures of this PE's services for `orrery top`: W, G and K as they are now. They do not park.
void show_window(std::uint64_t window) noexcept;
void show_granularity(std::uint64_t items) noexcept;
void show_forwards(std::uint64_t requests) noexcept;

ORRERY_PROCESS(range_process, serve, report, scan, snapshot, pin, read_pin, unpin, tune, exposed);

}  // namespace orrery::service
