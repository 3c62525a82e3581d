// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/data_set.hpp>

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

namespace orrery::storage {

/// Where a sweep finds its elements, and where it leaves them. Never the same: so each unit can be
/// done again at any time, and a program that is killed has damaged nothing that it needs. (In
/// memory it may be the same, for there a sweep takes each page out before it puts it back.)
enum class sweep_place : std::uint8_t { input, output, scratch, second_scratch, memory };

/// One way over a whole array, unit by unit: a unit is a box of whole pages that is complete along
/// these dimensions.
struct sweep {
  std::vector<int> dimensions = {};
  sweep_place from = sweep_place::input;
  sweep_place to = sweep_place::output;
};

/// The dimensions that are complete in each of several sweeps.
using sweep_order = std::vector<std::vector<int>>;

/// An order in which each dimension is complete once. Three sweeps: lines of pages along each
/// dimension. Fewer: slabs that are complete in two dimensions, then lines along the third, which
/// is the one with the most pages, so that a slab is as small as it can be.
[[nodiscard]] sweep_order each_dimension_once(int sweeps, const index3& pages);

/// The input, output and memory of a sweep.
struct sweep_task {
  data_set_info input = {};
  std::string output = {};  ///< empty: in place
  std::vector<std::string> folders = {};  ///< one for each drive of the output; empty: its own
  std::uint64_t memory = 1ULL << 30;  ///< bytes, of all nodes together
  std::uint32_t machines = 1;  ///< of the world: pages go from one to another
  element_type work_type = element_type::complex128;  ///< of everything between input and output
  element_type output_type = element_type::complex128;
};

/// How it is done: sweeps, how many processes share their units, and what that takes.
struct sweep_plan {
  page_grid grid;
  element_type input_type = element_type::complex128;
  element_type work_type = element_type::complex128;
  element_type output_type = element_type::complex128;
  std::vector<sweep> sweeps = {};
  std::uint32_t processes = 0;  ///< as many as have units at once in one of the sweeps
  std::vector<std::uint32_t> at_once =
      {};  ///< in each sweep, of the processes: as many units as there is memory for, and use
  /// Pages that a process has under way; those that go to another node are in memory twice.
  std::size_t window = 0;
  std::uint64_t pool_bytes = 0;  ///< of pages that each node keeps for later ones
  std::uint64_t bytes_read = 0;  ///< from the drives, by all sweeps
  std::uint64_t bytes_written = 0;
  std::uint64_t peak_bytes = 0;  ///< of memory
  std::vector<sweep_place> created = {};  ///< data sets that are made
  /// Computations fall into boxes (sweeper::box_shape), and have a helper on each PE.
  bool helped = false;

  [[nodiscard]] index3 unit_shape(std::size_t sweep) const;  ///< in pages
  /// The number of units of that sweep.
  [[nodiscard]] std::int64_t units(std::size_t sweep) const;
  /// The pages of that unit.
  [[nodiscard]] domain unit_pages(std::size_t sweep, std::int64_t unit) const;
  /// The type of elements at that place.
  [[nodiscard]] element_type type_at(sweep_place p) const;
  [[nodiscard]] std::uint64_t bytes_at(sweep_place p) const;  ///< of all pages
  /// True if the first sweep leaves its results in memory.
  [[nodiscard]] bool in_memory() const { return sweeps.front().to == sweep_place::memory; }
};

/// Bytes that a process needs beside its unit in that sweep; with `helped`, that a helper needs.
using sweep_extra = std::function<std::uint64_t(const page_grid&, const sweep&)>;

/// Plans sweeps in that order for a world of that size: where each leaves its elements
/// (`in_memory`: between sweeps they are not on a drive), and how many processes. If that takes
/// more memory than the task has, the answer is how much would do.
///
/// While a processor computes with one unit, another one is on its way from or to the drives, and
/// there are enough of them to keep the drives busy. More would only wait, in memory that costs as
/// much to be touched for the first time as a drive takes to fill it.
[[nodiscard]] std::expected<sweep_plan, std::uint64_t> plan_sweeps(const sweep_task& task, const sweep_order& order,
                                                                   bool in_memory, const sweep_extra& extra,
                                                                   std::uint32_t pes, std::uint32_t nodes,
                                                                   bool helped = false);

}  // namespace orrery::storage
