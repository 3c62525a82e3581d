// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace orrery::scheduler {

class pe;
struct slot;

/// A process as reports call it: its address, and the name that a layer above has for it.
[[nodiscard]] std::string describe(pe& on, const slot& s);

/// The text of an exception, which is not null.
[[nodiscard]] std::string text_of(std::exception_ptr why);

/// The waits on the PE, and what they wait for: a line for each of the first processes, and what
/// the wait watchers add. Empty: nothing waits.
[[nodiscard]] std::string describe_waits(pe& on);

}  // namespace orrery::scheduler
