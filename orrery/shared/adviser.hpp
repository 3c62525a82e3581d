// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace orrery {

/// The advice of `--orrery-advise` on an object at some places in the source, where it is accessed
/// by default.
struct sharing_advice {
  std::string object;  ///< "shared matrix made at mm2.cpp:12"
  /// The places that access it between two collective functions: "mm2.cpp:41, mm2.cpp:44".
  std::string places;
  /// To write there, as "read_cache(m)"; empty: default access is as fast as any.
  std::string behaviour;
  /// For messages, from the first to the last access, by the model of the network.
  double seconds_by_default = 0;
  double seconds = 0;  ///< with the behaviour
  std::uint64_t local_reads = 0;  ///< of elements of the PE itself
  std::uint64_t remote_reads = 0;
  /// Reads of elements that were not read before between the same collectives.
  std::uint64_t distinct_remote_reads = 0;
  std::uint64_t local_writes = 0;  ///< and changes
  std::uint64_t remote_writes = 0;
  std::uint64_t runs = 0;  ///< of reads or writes of elements that follow each other
  /// How long these are on average: 1 where no access goes to the element behind the last one.
  [[nodiscard]] double elements_in_a_run() const noexcept {
    const auto all = static_cast<double>(local_reads + remote_reads + local_writes + remote_writes);
    return runs == 0 ? all : all / static_cast<double>(runs);
  }
  /// All behaviours that fit, with their times.
  std::vector<std::pair<std::string, double>> considered;
};

/// The advice for what the program has done so far, the longest times first; none if it was not
/// started with `--orrery-advise`. The places in one scope should get the behaviours together.
/// Parks. Throws node_lost, stopped.
[[nodiscard]] std::vector<sharing_advice> advise_sharing();

/// One line for people: the remote accesses, the behaviour and its time; behind that the local
/// accesses, and how long runs of elements that follow each other are.
[[nodiscard]] std::string to_text(const sharing_advice& a);

}  // namespace orrery
