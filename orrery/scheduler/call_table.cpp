// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/call_table.hpp>

#include <orrery/wire/error.hpp>

#include <fmt/format.h>

namespace orrery::scheduler {

void throw_too_many_calls(std::uint64_t most) {
  throw world_error(errc::world_too_large, fmt::format("more than {} calls to other nodes wait on one PE", most));
}

}  // namespace orrery::scheduler
