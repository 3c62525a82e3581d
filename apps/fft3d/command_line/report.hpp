// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verify.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace fft3d {

/// "2 forward, 1 forward": what is done in a pass along which dimensions.
[[nodiscard]] std::string dimensions_text(const plan& p, std::size_t pass);

/// All that is known of a transform, for programs: the plan, times, bytes and rates of each pass,
/// utilization, memory, findings.
[[nodiscard]] nlohmann::ordered_json summary(const request& r, const plan& p, const sweep_outcome& o,
                                             const std::vector<finding>& verified);
/// JSON as a file has it: bytes of names that are no UTF-8 are replaced.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& j, int indent = -1);
/// Throws std::system_error unless the file takes all of the text.
void write_text(const std::string& file, const std::string& text);
/// A page that needs no other file: a summary, and when each process did which work. Throws
/// std::system_error.
void write_report(const std::string& file, const nlohmann::ordered_json& summary, const sweep_outcome& o);

}  // namespace fft3d
