// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan.hpp"

#include <orrery/storage/sweep_job.hpp>

#include <functional>

namespace fft3d {

using orrery::storage::drive_rates;
using orrery::storage::sweep_outcome;
using orrery::storage::sweep_status;

/// The end of the name of a job's folder: OUTPUT.fft3d.
inline constexpr const char* job_name = "fft3d";

/// The observer of a job.
struct observer {
  std::function<void(const plan&, bool resumed)> planned;
  std::function<void(const sweep_status&)> progress;
};

/// Does what the request says, or goes on with it where a killed program has stopped: see
/// sweep_job. The outcome counts numbers of the input that are NaN, real and imaginary parts.
///
/// To be called in a process. `folder`: takes what sweep_job::leave_folder returns; null: the
/// folder goes at once. Throws std::invalid_argument (the request, or it is not the one that was
/// begun), std::system_error as sweep_job does.
sweep_outcome perform(const request& r, const observer& watch, std::string* folder = nullptr);

}  // namespace fft3d
