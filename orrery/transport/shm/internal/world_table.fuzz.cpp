// SPDX-License-Identifier: Apache-2.0
// What another node can write into the world segment must neither crash nor fool whoever reads it.
#include <orrery/transport/shm/internal/place_giver.hpp>
#include <orrery/transport/shm/internal/table.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace orrery::transport;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const segment memory = std::move(segment::create("fuzz", layout::world_bytes).value());
  static const world_table table{memory.data()};
  static const bool made = [] {
    table.create("fuzzed", {}, {1, 1}, 1);
    return true;
  }();
  (void)made;

  // The input overwrites the header, then some entries of nodes, then the nodes of some PEs.
  const auto place = [&](std::uint64_t at, std::size_t room) {
    const std::size_t n = std::min(room, bytes);
    std::memset(memory.data() + at, 0, room);
    std::memcpy(memory.data() + at, data, n);
    data += n;
    bytes -= n;
  };
  constexpr std::uint32_t nodes = 8;
  constexpr std::uint32_t pes = 64;
  place(offsetof(layout::world_header, name), sizeof(layout::world_header) - offsetof(layout::world_header, name));
  place(layout::pe_nodes_at, pes * sizeof(layout::pe_entry));
  place(layout::nodes_at, nodes * sizeof(layout::node_entry));

  const handed_out given = table.numbers();
  require(given.nodes <= max_nodes && given.pes <= max_pes);
  require(table.name().size() <= 64 && table.program().size() <= 32);
  require(table.state() == world_state::running || table.state() == world_state::ending ||
          table.state() == world_state::lost);
  (void)table.check(layout::world_bytes, "the world");
  for (std::uint32_t n : {0U, 1U, nodes - 1, nodes, max_nodes - 1, max_nodes, no_node}) {
    const node_info i = table.info(n);
    require(i.state <= node_state::dead && i.program.size() <= 32);
    require(i.pe_count <= max_pes - place_of(i.first_pe));
  }
  for (std::uint32_t pe = 0; pe <= pes; ++pe) {
    const std::uint32_t n = table.pe_node(pe);
    require(n == no_node || place_of(n) < given.nodes);
  }
  for (std::uint32_t i = 0; i < pes; ++i) (void)(table.node_at(i) + table.pe_at(i));
  (void)table.gone_nodes();
  world_config config;
  config.pe_count = 2;
  config.nodes = 2;
  if (const auto to = place_giver(table, memory).give(config, no_vocabulary, {1, 1})) {
    require(place_of(to->node) + 2 <= max_nodes && place_of(to->first_pe) + 4 <= max_pes);
  }
  return 0;
}
