// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/orrery.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fft3d {

/// Hands out the units of a pass to whoever asks, and remembers in a file, one byte for each unit of each pass, which are done. A unit is noted when all
/// its pages are on their drives; so what a killed program leaves is known to the byte, and the next one goes on from there.
///
/// A process, made by the job. `next` is called by the transforms.
class ledger {
 public:
  /// `units`: of each pass. `file` empty: nothing is kept. Throws std::system_error.
  ledger(const std::string& file, std::vector<std::int64_t> units);

  void begin(std::size_t pass);
  /// A unit that nobody has yet; -1: there is none.
  [[nodiscard]] std::int64_t next();
  void done(std::int64_t unit);
  /// Somebody has failed: from now on there are no more units.
  void stop() { next_ = done_.size(); }
  [[nodiscard]] std::int64_t units_done() const;
  [[nodiscard]] bool finished(std::size_t pass) const;

 private:
  std::vector<std::size_t> first_;  // place in `done_` of each pass's first unit, and of the end
  std::vector<std::byte> done_;
  std::size_t pass_ = 0;
  std::size_t next_ = 0;
  orrery::io::descriptor file_;
};
ORRERY_PROCESS(ledger, begin, next, done, stop, units_done, finished);

}  // namespace fft3d
