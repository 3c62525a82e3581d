// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/storage.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fft3d {

using orrery::storage::domain;
using orrery::storage::element_type;
using orrery::storage::index3;
using orrery::storage::product;

enum class operation : std::uint8_t { forward, inverse, filter };

/// What a filter multiplies the transform with: a function of the distance from frequency zero, in cycles per element (0 to 0.87).
struct transfer_function {
  enum class form : std::uint8_t { low_pass, band_pass, gaussian };
  form what = form::low_pass;
  double low = 0;  ///< of a band: where it begins
  double high = 0;  ///< of a band and a low pass: where it ends; of a Gaussian: its standard deviation
  [[nodiscard]] double at(double squared_frequency) const noexcept;
};

/// What is to be done.
struct request {
  std::string input = {};
  std::string output = {};  ///< empty: in place
  operation what = operation::forward;
  transfer_function filter = {};
  bool real_output = false;  ///< of an inverse: keep the real part only
  std::uint64_t memory = 1ULL << 30;  ///< bytes, of all nodes together
  int passes = 0;  ///< 1, 2 or 3; 0: as few as fit
  std::vector<std::string> folders = {};  ///< one for each drive of the output; empty: its own
};

/// What is done to all lines along one dimension, in this order.
struct phase {
  int dimension = 2;
  bool forward = false;
  bool filter = false;
  bool inverse = false;
};

/// Where a pass finds its numbers, and where it leaves them. Never the same: so each unit can be done again at any time, and a program that is killed
/// has damaged nothing that it needs. (In memory it may be the same, for there a pass takes each page out before it puts it back.)
enum class place : std::uint8_t { input, output, scratch, second_scratch, memory };

/// One way over the whole array, unit by unit: a unit is a box of pages that is complete along the dimensions of the phases.
struct pass {
  std::vector<phase> phases = {};
  index3 unit{};  ///< pages
  place from = place::input;
  place to = place::output;
};

/// How it is done.
struct plan {
  orrery::storage::page_grid grid;
  element_type input_type = element_type::complex128;
  element_type work_type = element_type::complex128;  ///< of everything between input and output
  element_type output_type = element_type::complex128;
  transfer_function filter = {};
  std::vector<pass> passes = {};
  std::uint32_t processes = 0;  ///< transforms at once: as many units as there is memory for
  std::uint64_t pool_bytes = 0;  ///< of pages that each node keeps for later ones
  std::uint64_t bytes_read = 0;  ///< from the drives, by all passes
  std::uint64_t bytes_written = 0;
  std::uint64_t peak_bytes = 0;  ///< of memory
  std::vector<place> created = {};  ///< data sets that are made

  [[nodiscard]] domain unit_pages(std::size_t pass, std::int64_t unit) const;
  [[nodiscard]] std::int64_t units(std::size_t pass) const;
  [[nodiscard]] element_type type_at(place p) const;
  [[nodiscard]] std::uint64_t bytes_at(place p) const;  ///< of all pages
  [[nodiscard]] bool in_memory() const { return passes.front().to == place::memory; }
};

/// Chooses passes and processes. Throws std::invalid_argument for what cannot be done, and says then what could (the smallest memory that works).
[[nodiscard]] plan make_plan(const request& r, const orrery::storage::data_set_info& input, std::uint32_t pes,
                             std::uint32_t nodes);

}  // namespace fft3d
