// SPDX-License-Identifier: Apache-2.0
#pragma once

// What memory this OS process has. The figures do not depend on time, so tests may assert them.

#include <cstddef>
#include <fstream>
#include <string>

#include <unistd.h>

namespace orrery::testing {

/// Pages that are there, in bytes.
inline std::size_t resident_bytes() {
  std::ifstream f("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  f >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

/// A line of a file like /proc/meminfo: its number, in bytes. 0 if there is none.
inline std::size_t kilobytes_of(const char* file, const std::string& name) {
  std::ifstream f(file);
  for (std::string word; f >> word;)
    if (word == name + ":") {
      std::size_t kb = 0;
      f >> kb;
      return kb * 1024;
    }
  return 0;
}

/// Page tables, which sparsely used stacks need many of.
inline std::size_t page_table_bytes() { return kilobytes_of("/proc/self/status", "VmPTE"); }
inline std::size_t available_bytes() { return kilobytes_of("/proc/meminfo", "MemAvailable"); }

/// Mappings, of which the kernel allows vm.max_map_count.
inline std::size_t mappings() {
  std::ifstream f("/proc/self/maps");
  std::size_t n = 0;
  for (std::string line; std::getline(f, line);) ++n;
  return n;
}

}  // namespace orrery::testing
