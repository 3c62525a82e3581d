// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/program_code.hpp>

#include <link.h>

namespace orrery::scheduler {

const program_code& code_of_program() noexcept {
  static const program_code found = [] {
    program_code code;
    // The first object is the program. A linker's symbol would be of what this is linked into.
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) -> int {
          auto& c = *static_cast<program_code*>(to);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            const auto& segment = info->dlpi_phdr[i];
            if (segment.p_type != PT_LOAD) continue;
            const auto* const begin = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
            if (c.begin == nullptr) c.begin = begin;  // they ascend
            if ((segment.p_flags & PF_X) != 0) c.end = begin + segment.p_memsz;
          }
          return 1;
        },
        &code);
    return code;
  }();
  return found;
}

}  // namespace orrery::scheduler
