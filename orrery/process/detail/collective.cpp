// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/collective.hpp>

#include <orrery/wire/error.hpp>

#include <fmt/format.h>

namespace orrery::detail {
namespace {

// Names of types can be very long.
std::string_view beginning(std::string_view text) { return text.substr(0, 100); }

}  // namespace

std::string collective::text() const {
  if (value.empty()) return name;
  if (operation.empty()) return fmt::format("{} of {}", name, beginning(value));
  return fmt::format("{} of {} with {}", name, beginning(value), beginning(operation));
}

std::string disagreement(const collective& one, const collective& other) {
  return fmt::format(
      "{} and {}: members of the group called both at the same point, so that neither can end; all members must call the "
      "same, in the same order (later collectives of this group fail too)",
      one.text(), other.text());
}

void throw_other_root(const char* name, std::uint64_t one, std::uint64_t other) {
  throw usage_error(
      errc::bad_argument,
      fmt::format("{}: one member has named rank {} as the root and another rank {}; all members must name the "
                  "same",
                  name, one, other));
}

}  // namespace orrery::detail
