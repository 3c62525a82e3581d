// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/wire/unique_ptr.hpp>

#include <cstddef>

namespace orrery::scheduler {

/// Names the method that ran out of stack.
///
/// Problem: a method that recurses too deep runs into the guard of its stack, and the program would
/// end with a bare SIGSEGV. So while one of these lives, a SIGSEGV inside such a guard prints one
/// line that says which method of which process it was and what to do, and then ends the program as
/// it would have ended anyway. Every other SIGSEGV goes to the handler that was there before.
///
/// One for each PE, on the PE's thread, as long as its loop runs: the handler needs a stack of its
/// own there, since the one that overflowed has no room. Not to be used elsewhere.
class overflow_report {
 public:
  overflow_report();
  overflow_report(const overflow_report&) = delete;
  overflow_report& operator=(const overflow_report&) = delete;
  ~overflow_report();

 private:
  wire::unique_ptr<std::byte[]> stack_;  ///< null if the thread had one already
};

}  // namespace orrery::scheduler
