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
/// The same, and what each process did when, as a page that needs no other file. Throws
/// std::system_error.
void write_report(const std::string& file, const nlohmann::ordered_json& summary, const sweep_outcome& o);

}  // namespace fft3d
