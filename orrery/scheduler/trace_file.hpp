// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::scheduler {

// A trace is one line for the world and the node, then one for each event, then one for the end: so
// that merging is a matter of lines.

/// The first line of a node's trace.
[[nodiscard]] std::string trace_first_line(std::uint64_t world, std::uint32_t node);
/// How the last line begins; the number of events that had no room and } follow.
inline constexpr std::string_view trace_last_line = R"(],"dropped":)";

/// Text of an errno.
[[nodiscard]] std::string trace_error_text(int os_error);

/// Not so is /dev/stdout, or a pipe: what may be written but not replaced or removed.
[[nodiscard]] bool is_trace_file(const std::string& path);

/// While it is there, a file that grows over its limit (ulimit -f) is an error of that file, and
/// does not kill the program. For the thread that made it.
class file_limit_is_an_error {
 public:
  file_limit_is_an_error() noexcept;
  file_limit_is_an_error(const file_limit_is_an_error&) = delete;
  file_limit_is_an_error& operator=(const file_limit_is_an_error&) = delete;
  ~file_limit_is_an_error();

 private:
  ::sigset_t signal_{};
  ::sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace orrery::scheduler
