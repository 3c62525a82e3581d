// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../measure.hpp"

#include <nlohmann/json.hpp>

/// The programs of examples/shared on this world, beside what they are compared with in the same world.
void programs(const bench::effort& e, nlohmann::json& out);
/// The diffusion with access by default only: what the checker and the adviser slow down.
void plain_diffusion(const bench::effort& e, nlohmann::json& out);
/// The same loop on one PE over that on access in which nothing of the checker and the adviser is; when neither runs.
void unwatched_diffusion(const bench::effort& e, nlohmann::json& out);
