// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

namespace orrery::transport {

/// Why the transport could not do what was asked. Codes that a caller can act upon; the sentence
/// for people is in `transport_error::message`.
enum class transport_errc : std::uint8_t {
  bad_argument,  ///< asked for something that cannot be, or a setting cannot be read
  no_space,  ///< memory, a limit of the shell or the file system has no room
  refused,  ///< the system denies an access that the node needs
  foreign_owner,  ///< what was found belongs to another user, or others may write to it
  different_build,  ///< the world runs another program or another build of it
  damaged,  ///< what was found is not what Orrery writes there
  full,  ///< the world has no places for the nodes or their PEs
  ended,  ///< the world is ending, has ended, or its first node is gone
  gone,  ///< the OS process behind a node has ended
  not_found,  ///< there is no world of that name
  timed_out,  ///< others did not do their part before the deadline
  system,  ///< a system call failed for another reason
};

/// One sentence for each code.
[[nodiscard]] std::string_view describe(transport_errc code) noexcept;

/// A sentence: what happened, where, and what to do about it.
struct transport_error {
  transport_errc code = transport_errc::system;
  int os_error = 0;  ///< errno where a system call was the reason, else 0
  std::string message;
};

template <class T>
using result = std::expected<T, transport_error>;

}  // namespace orrery::transport
