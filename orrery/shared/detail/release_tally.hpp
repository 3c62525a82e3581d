// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/shared/release_request.hpp>

#include <cstdint>
#include <exception>
#include <source_location>
#include <string>

namespace orrery::detail {

/// Counts the writes of a release scope that travel, and tells what has come of them.
///
/// Problem: an exception that leaves a scope is the user's, and has to arrive as what it is. But
/// the code that catches it has to know which writes others see. So the count goes to the outcome
/// that the user gave, else to a line on stderr.
///
/// Owned by the scope; used on its PE. It does not park.
class release_tally {
 public:
  /// `where_to`: "other machines".
  release_tally(const release_request& r, const char* where_to) noexcept
      : where_(r.where), where_to_(where_to), outcome_(r.options.outcome) {}
  void add() noexcept { ++writes_; }
  void arrived(std::uint64_t n) noexcept { written_ += n; }
  /// Throws it; a node_lost with the counts.
  [[noreturn]] void rethrow(const std::exception_ptr& failure, const std::string& label) const;
  /// The scope has ended, and all answers are there.
  void tell(const std::string& label) const noexcept;

 private:
  std::source_location where_;
  const char* where_to_;
  release_outcome* outcome_;
  int exceptions_ = std::uncaught_exceptions();  // of the process when the scope began
  std::uint64_t writes_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace orrery::detail
