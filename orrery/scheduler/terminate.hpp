// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery::scheduler {

/// Names the destructor or method in which std::terminate ends the program.
///
/// Problem: an exception that leaves a destructor, or another function that is `noexcept`, ends the
/// OS process at once, and the C++ library says at best which exception it was. So while one of
/// these lives, std::terminate on the thread of a PE first prints one line: which destructor or
/// method of which class on which PE, the exception, and that the node ends. Then the handler that
/// was there before goes on.
///
/// One for each PE, on the PE's thread, as long as its loop runs; for all PEs of a simulation one.
/// Not to be used elsewhere.
class terminate_report {
 public:
  terminate_report();
  terminate_report(const terminate_report&) = delete;
  terminate_report& operator=(const terminate_report&) = delete;
  ~terminate_report();
};

}  // namespace orrery::scheduler
