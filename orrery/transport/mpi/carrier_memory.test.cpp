// SPDX-License-Identifier: Apache-2.0
// What a node of a large world has in memory: a carrier with its rings and mirrors, as they are.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/mpi/internal/test_engine.hpp>
#include <orrery/transport/ring_memory.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstdint>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

namespace orrery::transport {
namespace carrier_memory_tests {

constexpr std::uint64_t mib = 1 << 20;
constexpr std::uint64_t wanted = 128 << 10;
constexpr std::uint32_t machines = 1024;
constexpr std::uint32_t pes = 64;
constexpr std::uint32_t partners = 64;
constexpr std::uint64_t second = 1'000'000'000;

std::uint64_t heap_bytes() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

cluster_map map_of_world() {
  std::vector<cluster_map::place> places(machines);
  for (std::uint32_t m = 0; m < machines; ++m) places[m] = {m, m * pes, pes, 0, 0};
  return {std::move(places), 0};
}

result<wire::unique_ptr<shm_world>> world_of_one_node() {
  world_config config;
  config.program = "test";
  config.pe_count = pes;
  return shm_world::create(config);
}

/// Node 0 of that world; each of its PEs talks to random others, and is talked to by as many.
struct node_of_large_world {
  explicit node_of_large_world(shm_world& local) : memory(local) { (void)carrier.begin(); }

  void connect() {
    std::mt19937_64 random(testing::test_seed());
    const auto far_pe = [&] { return static_cast<std::uint32_t>(pes + random() % ((machines - 1) * pes)); };
    std::set<std::pair<std::uint32_t, std::uint32_t>> from;
    while (from.size() < std::size_t{pes} * partners)
      from.insert({far_pe(), static_cast<std::uint32_t>(from.size() % pes)});
    for (auto next = from.begin(); next != from.end();) {  // one frame of each node
      const std::uint32_t node = map.node_of(next->first);
      frame f;
      f.begin(node);
      for (; next != from.end() && map.node_of(next->first) == node; ++next)
        f.add({section_kind::open, 0, next->first, next->second, 0, sizes_elsewhere.next(wanted)});
      const auto bytes = f.finish();
      engine.incoming.emplace_back(bytes.begin(), bytes.end());
    }
    while (carrier.drive()) {
    }
    for (const auto& [other, pe] : from) {
      const auto at = carrier.mirror_offset(pe, other);
      ASSERT_TRUE(at);
      const auto header = memory.map(memory.node(), *at, sizeof(ring_header));
      const std::uint64_t capacity = reinterpret_cast<ring_header*>(header->data())->capacity;
      rings.push_back(*memory.map(memory.node(), *at, ring_header::bytes_for(capacity)));
    }
    for (std::uint32_t pe = 0; pe < pes; ++pe) {
      std::set<std::uint32_t> to;
      while (to.size() < partners)
        if (const std::uint32_t other = far_pe(); to.insert(other).second) add_ring(pe, other);
    }
  }
  void add_ring(std::uint32_t from, std::uint32_t to) {
    const std::uint64_t capacity = carrier.next_ring_bytes(wanted);
    const auto block = memory.allocate_ring(ring_header::bytes_for(capacity));
    ASSERT_TRUE(block);
    const std::span bytes(block->data, ring_header::bytes_for(capacity));
    prepare_ring_memory(bytes, block->zeroed);
    ring_header& header = *make_ring(block->data, capacity, from, to);
    producers.emplace_back(header);
    rings.push_back(bytes);
    carrier.add_ring(from, to, block->offset, header);
  }
  /// Bytes of all rings and mirrors: those that are in memory, and those that may be.
  [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> ring_bytes() const {
    std::uint64_t resident = 0;
    std::uint64_t full = 0;
    for (const auto& r : rings) {
      resident += resident_bytes(r);
      full += (r.size() + ring_page - 1) / ring_page * ring_page;
    }
    return {resident, full};
  }

  shm_world& memory;
  testing::scripted_engine engine;
  cluster_map map = map_of_world();
  cluster_members members{machines, 0};
  std::int64_t now = 0;
  mpi_carrier carrier{engine, memory, map, members, 3600 * second, [](const std::string&) {}, [this] { return now; }};
  ring_sizes sizes_elsewhere;  // of nodes that have as many
  std::vector<ring_producer> producers;
  std::vector<std::span<std::byte>> rings;
};

TEST(a_node_of_1024_machines, of_64_pes_with_64_partners_each_takes_less_than_a_gibibyte) {
  const auto made = world_of_one_node();
  ASSERT_TRUE(made);
  const std::uint64_t heap_before = heap_bytes();
  node_of_large_world n(**made);
  n.connect();
  const auto [resident, full] = n.ring_bytes();
  const std::uint64_t heap = heap_bytes() - heap_before;
  // on their way to all, and spare
  constexpr std::uint64_t frames = (machines * 4ULL + 16) * frame::capacity;
  constexpr std::uint64_t scheduler = 2ULL * pes * partners * 512;  // outbound and inbound rings
  EXPECT_EQ(n.rings.size(), 2 * pes * partners);
  EXPECT_LE(resident, 2 * pes * partners * ring_page) << "new rings take more than a page each";
  EXPECT_LE(heap, 64 * mib);
  EXPECT_LE(full + heap + frames + scheduler, 1024 * mib) << "with all rings full";
  RecordProperty("mib_idle", static_cast<int>((resident + heap) / mib));
  RecordProperty("mib_full", static_cast<int>((full + heap + frames + scheduler) / mib));
}

// Each poll of a PE costs a look at each of them.
TEST(a_node_of_1024_machines, looks_only_at_those_to_which_something_may_have_to_be_sent) {
  const auto made = world_of_one_node();
  ASSERT_TRUE(made);
  node_of_large_world n(**made);
  const auto nodes_after = [&](auto&& act) {
    act();
    while (n.carrier.drive()) {
    }
    return n.carrier.active_nodes();
  };
  EXPECT_EQ(nodes_after([] {}), 0);
  EXPECT_EQ(nodes_after([&] {
              for (std::uint32_t i = 0; i < partners; ++i) n.add_ring(3, (7 + i) * pes + i);
            }),
            partners);
  // Signs of life go to all, and when they are gone, so are those to which nothing else does.
  EXPECT_EQ(nodes_after([&] {
              n.now += 1000 * second;
              (void)n.carrier.tick();
            }),
            partners);
  EXPECT_GE(n.engine.sent, static_cast<int>(machines) - 1);
  EXPECT_EQ(nodes_after([&] {
              frame f;
              f.begin(900);
              f.add({section_kind::open, 0, 900 * pes, 5, 0, wanted});
              const auto bytes = f.finish();
              n.engine.incoming.emplace_back(bytes.begin(), bytes.end());
            }),
            partners + 1);
  EXPECT_EQ(nodes_after([&] { n.carrier.report_lost(900, "was killed"); }), partners);
}

// Records of a PE are gone from its rings when the receiver's credit has come, and a second passes.
TEST(a_node_of_1024_machines, has_small_rings_again_when_it_was_busy) {
  const auto made = world_of_one_node();
  ASSERT_TRUE(made);
  node_of_large_world n(**made);
  for (std::uint32_t to = pes; to < pes + partners; ++to) n.add_ring(3, to);
  for (ring_producer& p : n.producers) {
    while (wire::envelope* const e = p.reserve(1024)) {
      e->kind = wire::record_kind::message;
      e->form = wire::payload_form::wire;
      p.commit(1024);
    }
  }
  while (n.carrier.drive()) {
  }
  EXPECT_GE(n.ring_bytes().first, partners * wanted * 3 / 4);
  (void)n.carrier.tick();
  frame f;
  f.begin(1);
  for (std::size_t i = 0; i < partners; ++i)
    f.add({section_kind::credit, 0, 3, static_cast<std::uint32_t>(pes + i), n.producers[i].written(), 0});
  const auto bytes = f.finish();
  n.engine.incoming.emplace_back(bytes.begin(), bytes.end());
  for (int i = 0; i < 3; ++i) {
    n.now += second;
    (void)n.carrier.tick();
    n.carrier.reclaim_rings(4);  // another PE's are not touched
  }
  EXPECT_GE(n.ring_bytes().first, partners * wanted * 3 / 4);
  n.carrier.reclaim_rings(3);
  EXPECT_LE(n.ring_bytes().first, partners * 2 * ring_page);
  for (ring_producer& p : n.producers) {
    EXPECT_TRUE(p.drained());
    EXPECT_NE(p.reserve(1024), nullptr);
  }
}

}  // namespace carrier_memory_tests
}  // namespace orrery::transport
