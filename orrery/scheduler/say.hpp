// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>
#include <string>

namespace orrery::scheduler {

/// Writes a line, with its end, to stderr in one piece. Text that cannot be written is lost.
inline void say(const std::string& line) noexcept { std::fwrite(line.data(), 1, line.size(), stderr); }

}  // namespace orrery::scheduler
