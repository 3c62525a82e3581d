// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sample.hpp"

#include <expected>
#include <string>
#include <vector>

namespace orrery::tool {

/// A world by its name, or why not: with the names of those that run.
[[nodiscard]] std::expected<watched_world, std::string> attach(const std::string& name, const std::string& directory);

/// The line above a table.
[[nodiscard]] std::string headline(const world_sample& w);

/// Says what went wrong, without control characters, and is the exit code for it.
[[nodiscard]] int fail(const std::string& why);
/// Without control characters: names of worlds and programs are others'.
void print_lines(const std::vector<std::string>& lines);
/// One line.
void print_json(const nlohmann::ordered_json& value);

}  // namespace orrery::tool
