// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/part_migration.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/wire/exception.hpp>

#include <fmt/format.h>

namespace orrery::detail {

void report_no_arrival(pe& self, const std::string& element, const std::exception_ptr& why) noexcept {
  try {
    const wire_exception e = encode_exception(why);
    self.failures().report(fmt::format("{} is lost: it has moved to PE {}, where its serialize() threw {}",
                                       element.empty() ? "an element" : element, self.id(), e.type),
                           why);
  } catch (...) {
    self.failures().report("an element is lost that has moved here", why);
  }
}

}  // namespace orrery::detail
