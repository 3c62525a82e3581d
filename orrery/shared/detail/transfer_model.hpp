// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/sim/settings.hpp>

#include <cstdint>
#include <unordered_map>

namespace orrery::detail {

/// How long messages take that PEs send each other at once, each PE on a machine of its own, by
/// LogGP.
///
/// Problem: the adviser compares behaviours that the program has not run. Each is a pattern of
/// requests and answers, whose time is that of a message there and back, and of what is busy for
/// longest: the processor of a PE, or the network interface of a machine. The simulator, which is
/// exact, would have to run the program again for each.
///
/// A value; used by one thread.
class transfer_model {
 public:
  explicit transfer_model(const transport::link_cost& network) noexcept : net_(network) {}

  /// A call with this many bytes beside its header, one way and back.
  [[nodiscard]] double round_trip(double bytes_there, double bytes_back) const noexcept;

  /// `count` requests of PE `from` to PE `to`, with this many bytes in all; and what `to` answers.
  void exchange(std::uint32_t from, std::uint32_t to, double count, double bytes_there, double bytes_back);
  /// The same, where each request waits for the answer to the one before it.
  void exchange_in_turn(std::uint32_t from, std::uint32_t to, double count, double bytes_there, double bytes_back);
  /// Nanoseconds until all answers are there, if all PEs begin at once; 0 if nobody has asked for
  /// anything.
  [[nodiscard]] double time() const noexcept;

 private:
  struct load {
    double processor = 0;  // ns
    double interface = 0;
    double waiting = 0;  // for answers, one after the other
  };
  transport::link_cost net_;
  std::unordered_map<std::uint32_t, load> loads_;  // by PE
  bool asked_ = false;
};

}  // namespace orrery::detail
