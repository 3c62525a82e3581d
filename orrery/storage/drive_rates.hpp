// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/storage/array.hpp>

#include <string>

namespace orrery::storage {

/// Bytes per second; 0: not measured.
struct drive_rates {
  double read = 0;
  double write = 0;
};

/// What drives give at this moment: reads some 64 MiB of pages from all over the array, and writes as many of `page_bytes` to a new file, which is removed
/// again; eight transfers at once. Arrays of less than 256 MiB are not worth it. Parks; throws what devices throw.
[[nodiscard]] drive_rates measure_drives(const array& from, const std::string& file, std::size_t page_bytes);

}  // namespace orrery::storage
