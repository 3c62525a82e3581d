// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/error.hpp>
#include <orrery/transport/shm/internal/fail.hpp>

#include <system_error>

namespace orrery::transport {

std::string_view describe(transport_errc code) noexcept {
  switch (code) {
    case transport_errc::bad_argument:
      return "what was asked for cannot be";
    case transport_errc::no_space:
      return "there is no memory or space left";
    case transport_errc::refused:
      return "the system denies the access";
    case transport_errc::foreign_owner:
      return "it belongs to another user";
    case transport_errc::different_build:
      return "the world runs a different build";
    case transport_errc::damaged:
      return "it is not what Orrery writes there";
    case transport_errc::full:
      return "all numbers of the world are used up";
    case transport_errc::ended:
      return "the world has ended";
    case transport_errc::gone:
      return "the node has ended";
    case transport_errc::not_found:
      return "there is no such world";
    case transport_errc::timed_out:
      return "others did not answer in time";
    case transport_errc::system:
      return "a system call failed";
  }
  return "unknown error";
}

namespace internal {

std::string os_text(int os_error) { return std::generic_category().message(os_error); }

}  // namespace internal

}  // namespace orrery::transport
