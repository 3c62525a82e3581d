// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "log.hpp"

#include <vector>

namespace fft_servers {

/// Prints the tables of section 5.3 of the paper for one iteration: what each client did
/// (`clients`, by rank), and what servers did meanwhile.
void print_tables(const std::vector<std::vector<step>>& clients, const std::vector<server_log>& servers,
                  std::uint64_t page_bytes);
/// One line: iterations along a dimension, and how much of the array is read, transformed and
/// written in a second.
void print_summary(int dimension, const std::vector<std::vector<step>>& clients);

}  // namespace fft_servers
