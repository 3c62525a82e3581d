// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/process/describe.hpp>
#include <orrery/process/io.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace orrery::storage {

/// Which units of a computation's sweeps are done: hands out the others to whoever asks, and keeps
/// the account in a file.
///
/// Problem: processes that share the units of a sweep should neither be given them in advance (one
/// is slower than the other) nor do one twice; and what a program that was killed has done should
/// not be done again. So they ask, one unit at a time; and the file has one byte for each unit of
/// each sweep. A unit is noted when all its pages are on their drives, so what is left by a killed
/// program is known to the byte, and the next one goes on from there. A machine that loses power
/// may keep that note and lose the pages: `redo`.
///
/// A process, made by spawn; its methods may be called by any process. They do not park for long: a
/// byte is written through the page cache.
///
///     auto units = spawn<storage::ledger>(here(), "progress", std::vector<std::int64_t>{12, 40});
///     units->begin(0);
///     for (std::int64_t n; (n = units->next()) >= 0;) {
///       ...                                       // in any number of processes
///       units->done(n);
///     }
class ledger {
 public:
  /// `units`: of each sweep. `file`: taken over if it is there; empty: nothing is kept. Throws
  /// std::system_error.
  ledger(const std::string& file, const std::vector<std::int64_t>& units);

  /// From now on units of this sweep are given, those again that were given and not done.
  void begin(std::size_t sweep);
  /// A unit that nobody has yet; -1: there is none.
  [[nodiscard]] std::int64_t next();
  /// Notes that a unit of the sweep is on its drives. Throws std::system_error, which names the
  /// file.
  void done(std::int64_t unit);
  /// Somebody has failed: until `begin` there are no more units.
  void stop() { next_ = done_.size(); }
  /// Keeps a number with a unit of the sweep, which is added up once the unit is done. Throws as
  /// done.
  void count(std::int64_t unit, std::uint64_t n);
  /// The sum of what was counted in all units that are done, by all programs.
  [[nodiscard]] std::uint64_t counted() const;
  /// Those units of the sweep are not done after all. Throws as done.
  void redo(std::size_t sweep, const std::vector<std::int64_t>& units);
  /// Returns when the account is on its drive. Throws as done.
  void flush();
  /// The units of a sweep that are done.
  [[nodiscard]] std::vector<std::int64_t> done_units(std::size_t sweep) const;
  /// How many units of all sweeps are done.
  [[nodiscard]] std::int64_t units_done() const { return count_; }
  /// True if all units of the sweep are done.
  [[nodiscard]] bool finished(std::size_t sweep) const;

 private:
  [[nodiscard]] std::size_t place_of(std::int64_t unit) const;
  void keep(std::span<const std::byte> bytes, std::uint64_t offset);

  std::vector<std::size_t> first_;  // place in `done_` of each sweep's first unit, and of the end
  std::vector<std::byte> done_;
  std::vector<std::uint64_t> counts_;  // of the same units; behind them in the file
  std::size_t sweep_ = 0;
  std::size_t next_ = 0;
  std::int64_t count_ = 0;
  std::string name_;
  io::descriptor file_;
};
ORRERY_PROCESS(ledger, begin, next, done, stop, count, counted, redo, flush, done_units, units_done, finished);

}  // namespace orrery::storage
