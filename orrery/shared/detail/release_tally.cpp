// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/release_tally.hpp>
#include <orrery/shared/shared_element.hpp>
#include <orrery/wire/error.hpp>

#include <cstdio>

#include <fmt/format.h>

namespace orrery::detail {

void release_tally::rethrow(const std::exception_ptr& failure, const std::string& label) const {
  try {
    std::rethrow_exception(failure);
  } catch (const node_lost& e) {
    throw node_lost(verbatim, fmt::format("{}: {} of {} writes to {} in the release scope at {} have come to their "
                                          "owners: {}",
                                          label, written_, writes_, where_to_, line_of(where_), e.what()));
  }
}

void release_tally::tell(const std::string& label) const noexcept {
  const bool by_exception = std::uncaught_exceptions() > exceptions_;
  if (outcome_ != nullptr) {
    *outcome_ = {writes_, written_, by_exception};
    return;
  }
  if (!by_exception || writes_ == 0) return;
  try {
    // what the runtime writes by itself has no place in the program
    const std::string scope = where_.line() == 0 ? "a copy of elements" : "the release scope at " + line_of(where_);
    std::fputs(fmt::format("orrery: an exception left {}: {} of {} writes to {} have come to their owners ({})\n",
                           scope, written_, writes_, where_to_, label)
                   .c_str(),
               stderr);
  } catch (...) {  // no memory: the exception that left goes on
  }
}

}  // namespace orrery::detail
