// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/address.hpp>

#include <orrery/wire/envelope.hpp>

#include <fmt/core.h>

namespace orrery {

std::string to_string(const address& a) {
  if (!a) return a.slot == wire::no_slot ? fmt::format("PE {}", a.pe) : "null";
  return fmt::format("{}.{}#{}", a.pe, a.slot, a.generation);
}

}  // namespace orrery
