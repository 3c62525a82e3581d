// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/sweep.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fft3d {

using orrery::storage::domain;
using orrery::storage::element_type;
using orrery::storage::index3;
using orrery::storage::product;

enum class operation : std::uint8_t { forward, inverse, filter };

/// A filter multiplies the transform with this function of the distance from frequency zero, in
/// cycles per element (0 to 0.87).
struct transfer_function {
  enum class form : std::uint8_t { low_pass, band_pass, gaussian };
  form what = form::low_pass;
  double low = 0;  ///< of a band: where it begins
  /// The end of a band or a low pass, or the standard deviation of a Gaussian.
  double high = 0;
  [[nodiscard]] double at(double squared_frequency) const noexcept;
};

/// The task of a transform.
struct request {
  std::string input = {};
  std::string output = {};  ///< empty: in place
  operation what = operation::forward;
  transfer_function filter = {};
  bool real_output = false;  ///< of an inverse: keep the real part only
  std::uint64_t memory = 1ULL << 30;  ///< bytes, of all nodes together
  int passes = 0;  ///< 1, 2 or 3; 0: as few as fit
  std::uint32_t machines = 1;  ///< of the world
  /// One for each drive of the output; empty: its own, or those of the input if they say their
  /// machines.
  std::vector<std::string> folders = {};
};

/// The work of a sweep on all lines along each of its dimensions, in this order.
struct phase {
  bool forward = false;
  bool filter = false;
  bool inverse = false;
};

/// How it is done: sweeps over the array, and what happens in each.
struct plan {
  orrery::storage::sweep_plan work;
  std::vector<phase> phases = {};
  transfer_function filter = {};
  std::string wisdom = {};  ///< of FFTW, for all nodes; empty: each has its own
};

/// Chooses sweeps and processes. Throws std::invalid_argument for what cannot be done, and says
/// then what could (the smallest memory that works).
[[nodiscard]] plan make_plan(const request& r, const orrery::storage::data_set_info& input, std::uint32_t pes,
                             std::uint32_t nodes);

/// The task of that request: the same without what a Fourier transform is.
[[nodiscard]] orrery::storage::sweep_task task_of(const request& r, const orrery::storage::data_set_info& input);

}  // namespace fft3d
