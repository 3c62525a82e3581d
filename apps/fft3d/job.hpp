// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan.hpp"
#include "transform.hpp"

#include <functional>
#include <string>
#include <vector>

namespace fft3d {

/// Bytes per second of the drives of the output, as a quick measurement found them.
struct drive_rates {
  double read = 0;
  double write = 0;
};

/// What is known while it runs.
struct status {
  std::size_t pass = 0;
  std::int64_t units_done = 0;
  std::int64_t units = 0;
};

struct pass_record {
  double begin = 0;
  double end = 0;
  std::int64_t units = 0;  ///< done now: the others were found done
  std::vector<work_log> logs = {};
};
struct outcome {
  double begin = 0;
  double end = 0;
  std::vector<pass_record> passes = {};
  bool resumed = false;
  std::uint64_t not_a_number = 0;  ///< elements of the input that were read now
};

/// Who wants to see what happens.
struct observer {
  std::function<void(const plan&, const drive_rates&, bool resumed)> planned;
  std::function<void(const status&)> progress;
};

/// Does what the request says, or goes on with it where a killed program has stopped. The progress, and what is between the passes, is in a folder beside the
/// output, OUTPUT.fft3d, which is removed at the end.
///
/// To be called in a process. Throws std::invalid_argument (the request, or it is not the one that was begun), std::system_error: EBUSY (somebody else is at
/// it), ENOSPC (before it starts, or while it runs), EEXIST (the output), EBADMSG (a damaged or unfinished input), what drives say. What was done until then is kept.
outcome perform(const request& r, const observer& watch);

}  // namespace fft3d
