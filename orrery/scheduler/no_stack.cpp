// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/no_stack.hpp>

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include <fmt/format.h>

namespace orrery::scheduler {

void end_without_stack(std::string_view what, std::string_view option) noexcept {
  fmt::memory_buffer line;  // of its own, as there may be no memory either
  fmt::format_to(std::back_inserter(line),
                 "orrery: there is no address space for the stack of {}: have fewer of them wait at a time, raise the "
                 "limits (ulimit -v, vm.max_map_count), or have smaller stacks ({})\n",
                 what, option);
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::abort();
}

}  // namespace orrery::scheduler
