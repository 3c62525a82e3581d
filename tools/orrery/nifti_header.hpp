// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace orrery::tool {

/// Reads the header of a file in NIfTI's format by itself, before libnifti2 does, which trusts what it says: sides that cannot be, or whose product cannot be counted, would
/// let it end the program. What is no such header at all is left to the library. Throws std::invalid_argument, which names the file and the side.
void check_nifti_header(const std::string& path);

}  // namespace orrery::tool
