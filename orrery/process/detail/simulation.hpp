// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <orrery/transport/sim/settings.hpp>

#include <string>
#include <string_view>

namespace orrery::scheduler {
struct sim_report;
}

namespace orrery {

/// Reads what --orrery-sim says: `key=value` pairs with commas between them.
///
///   machines, nodes, pes   machines; nodes of each; PEs of each node (default 1)
///   net, local             messages between machines, and between the PEs of one: `shm`, `10g`,
///                          `200g`, or L:o:g:B as in 900ns:150ns:10ns:25G: latency, overhead, gap,
///                          bytes a second (LogGP; G is 2^30)
///   drive                  RATE:SEEK: bytes a second of each simulated_drive, and time for each of
///                          its transfers (they take none)
///   message                what the execution of a message costs its PE (20ns)
///   jitter                 each message takes up to that much longer, and what is due at once
///                          comes in random order (0)
///   seed                   of all randomness (1)
///   compute                `given`: methods take the time that they give to orrery::compute;
///                          `measured`: what they take here
///   carriers               `on`: messages between machines go through the carriers of a cluster
///                          (off)
///   lose                   `NODE@TIME`: that node is lost then. As often as wanted
///   detect                 time until the others learn of a loss (100us)
///   cut                    `FROM:TO@TIME+LENGTH`, with carriers: what node FROM sends to node TO
///                          is held up then, for so long, or without LENGTH for ever. As often as
///                          wanted
///   silence                with carriers and cuts: a node that is silent for so long is lost (5s)
///   slow                   NODE*FACTOR: a slow node. As often as wanted
///
/// Throws world_error (world_bad_setting) that names the key, its value and what is allowed.
[[nodiscard]] transport::sim_settings parse_simulation(std::string_view text);

/// The networks that `net` above may name, as a clause that follows "allowed is".
inline constexpr std::string_view allowed_networks = "shm, 10g, 200g, or L:o:g:B like 900ns:150ns:10ns:25G";
/// A network as `net` above names it. `option` is what was given, for the error. Throws world_error
/// (world_bad_setting).
[[nodiscard]] transport::link_cost parse_network(std::string_view text, std::string_view option);

/// One line for people: what was simulated, and what came of it.
[[nodiscard]] std::string describe(const transport::sim_settings& settings, const scheduler::sim_report& report);

}  // namespace orrery
