// SPDX-License-Identifier: Apache-2.0
// A carrier by itself: what a test gives it is what came from another node.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/mpi/internal/test_engine.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <functional>
#include <future>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace carrier_tests {

using testing::scripted_engine;

result<world::memory_block> no_room() {
  return std::unexpected(transport_error{transport_errc::no_space, 0, "the test takes it all"});
}

/// Node 0 of two machines of one PE each.
struct first_node {
  explicit first_node(shm_world& local, std::uint32_t nodes = 2, std::uint64_t piece = cluster_map::usual_piece)
      : memory(local),
        map{nodes == 2 ? std::vector<cluster_map::place>{{0, 0, 1, 0, 0}, {1, 1, 1, 0, 0, 64 << 20}}
                       : std::vector<cluster_map::place>{{0, 0, 1, 0, 0}, {1, 1, 1, 0, 0, 64 << 20}, {2, 2, 1, 0, 0}},
            0, piece},
        members{nodes, 0} {
    started = carrier.begin();
  }
  shm_world& memory;
  scripted_engine engine;
  cluster_map map;
  cluster_members members;
  std::vector<std::string> ends;
  std::int64_t now = 0;
  bool room = true;  // for blocks
  std::function<void()> before_memory = [] {};
  mpi_carrier carrier{engine,
                      memory,
                      map,
                      members,
                      60'000'000'000,
                      [this](const std::string& line) { ends.push_back(line); },
                      [this] { return now; },
                      [this](std::uint64_t bytes) {
                        before_memory();
                        return room ? memory.allocate_beyond(bytes) : no_room();
                      }};
  bool started = false;

  /// How node 1 was lost; empty if it was not.
  std::string loss() {
    struct : membership_observer {
      void node_joined(std::uint32_t) noexcept override {}
      void node_left(std::uint32_t) noexcept override {}
      void node_lost(std::uint32_t, std::string_view how) noexcept override { text = how; }
      void world_ending() noexcept override {}
      void world_lost(std::string_view) noexcept override {}
      std::string text;
    } observer;
    members.tell(observer);
    return observer.text;
  }

  void bring(std::span<const std::byte> bytes) {
    engine.incoming.emplace_back(bytes.begin(), bytes.end());
    (void)carrier.drive();
  }
};

wire::unique_ptr<shm_world> own_memory() {
  world_config config;
  config.program = "test";
  auto made = shm_world::create(config);
  return made ? std::move(*made) : nullptr;
}

constexpr std::uint64_t ring_bytes = 8192;

frame opening() {
  frame f;
  f.begin(1);
  f.add({section_kind::open, 0, 1, 0, 0, ring_bytes});
  return f;
}

void add_record(frame& f, std::uint64_t position) {
  wire::envelope e{};
  e.size.store(2 * wire::granule, std::memory_order_relaxed);
  e.kind = wire::record_kind::message;
  std::byte* const at = f.add({section_kind::records, 2 * wire::granule, 1, 0, position, 2 * wire::granule});
  std::memset(at, 0, 2 * wire::granule);
  std::memcpy(at, &e, sizeof e);
}

TEST(a_carrier, makes_a_ring_that_another_machine_opens_and_fills_it) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  first_node n(*memory);
  ASSERT_TRUE(n.started);
  EXPECT_FALSE(n.carrier.mirror_offset(0, 1));
  frame f = opening();
  add_record(f, 0);
  n.bring(f.finish());
  const auto at = n.carrier.mirror_offset(0, 1);
  ASSERT_TRUE(at);
  const auto bytes = memory->map(memory->node(), *at, ring_header::bytes_for(ring_bytes));
  ASSERT_TRUE(bytes);
  ring_consumer reader(*reinterpret_cast<ring_header*>(bytes->data()), ring_bytes);
  EXPECT_NE(reader.front(), nullptr);
  EXPECT_EQ(n.members.state(1), node_state::alive);
}

TEST(a_carrier, gives_parts_of_a_file_to_who_makes_it_in_their_order) {
  const auto memory = own_memory();
  first_node n(*memory);
  std::string file;
  n.carrier.take_parts([&](std::uint32_t node, std::span<const std::byte> bytes) {
    EXPECT_EQ(node, 1);
    file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  });
  for (const char* const text : {"one ", "two ", "three"}) {
    frame f;
    f.begin(1);
    const auto size = static_cast<std::uint32_t>(std::strlen(text));
    std::memcpy(f.add({section_kind::part, size, 1, 0, 0, 0}), text, size);
    n.bring(f.finish());
  }
  EXPECT_EQ(file, "one two three");
}

void add_block(frame& f, std::uint64_t position, std::uint64_t bytes, std::uint64_t tag = 1) {
  wire::envelope e{};
  e.size.store(2 * wire::granule, std::memory_order_relaxed);
  e.kind = wire::record_kind::message;
  e.form = wire::payload_form::block;
  const wire::block_ref ref{4096, bytes};
  std::byte* const at = f.add({section_kind::block, sizeof e + sizeof ref, 1, 0, position, tag});
  std::memcpy(at, &e, sizeof e);
  std::memcpy(at + sizeof e, &ref, sizeof ref);
}

/// The fault of such frames after the ring was opened, as the loss of their sender says it.
template <class Add>
std::string fault_of(Add&& add) {
  const auto memory = own_memory();
  first_node n(*memory);
  frame f = opening();
  add(f);
  n.bring(f.finish());
  EXPECT_TRUE(n.ends.empty()) << "the receiver ends";
  return n.loss();
}

TEST(a_carrier, ends_the_link_of_who_sends_what_cannot_be_and_says_what) {
  EXPECT_EQ(fault_of([](frame& f) { add_record(f, 4096); }),
            "has sent node 0 64 bytes of a ring from PE 1 to PE 0 that have no place there at 4096");
  EXPECT_EQ(fault_of([](frame& f) { f.add({section_kind::open, 0, 1, 0, 0, ring_bytes}); }),
            "has sent node 0 the begin of a ring of 8192 bytes from PE 1 to PE 0, which cannot be");
  EXPECT_EQ(fault_of([](frame& f) { f.add({static_cast<section_kind>(77), 0, 1, 0, 0, 0}); }),
            "has sent node 0 a part of unknown kind 77");
  EXPECT_EQ(fault_of([](frame& f) { f.add({section_kind::eviction, 0, 1, 0, 1, 0}); }),
            "has sent node 0 eviction 1 of node 1, which the first node has not decided");
  EXPECT_EQ(fault_of([](frame& f) { f.add({section_kind::counters, 0, 0, 1, 0, 0}); }),
            "has sent node 0 counters of 1 PEs from PE 0 on, which are not its own");
  EXPECT_EQ(fault_of([](frame& f) { f.add({section_kind::part, 8, 1, 0, 0, 0}); }),
            "has sent node 0 8 bytes of a file that this node does not make");
  const auto memory = own_memory();
  first_node n(*memory);
  n.bring(std::vector<std::byte>(100));
  EXPECT_EQ(n.loss(), "has sent node 0 a frame of 100 bytes whose parts do not fit together");
}

TEST(a_carrier, refuses_a_block_that_its_sender_cannot_have) {
  EXPECT_EQ(fault_of([](frame& f) { add_block(f, 0, std::uint64_t{5} << 30); }),
            "has sent node 0 a block of 5368709120 bytes from PE 1 to PE 0, but its memory has 67108864");
  EXPECT_EQ(fault_of([](frame& f) { add_block(f, 0, 0); }),
            "has sent node 0 a block of 0 bytes from PE 1 to PE 0, but its memory has 67108864");
  EXPECT_EQ(fault_of([](frame& f) { add_block(f, 0, 4096, 70'000); }),
            "has sent node 0 a block from PE 1 to PE 0 that has no place there at 0");
  // A record that names a block, which did not come as one.
  EXPECT_EQ(fault_of([](frame& f) {
              wire::envelope e{};
              e.size.store(2 * wire::granule, std::memory_order_relaxed);
              e.kind = wire::record_kind::message;
              e.form = wire::payload_form::block;
              std::byte* const at = f.add({section_kind::records, 2 * wire::granule, 1, 0, 0, 2 * wire::granule});
              std::memset(at, 0, 2 * wire::granule);
              std::memcpy(at, &e, sizeof e);
            }),
            "has sent node 0 records of PE 1 to PE 0 that cannot be, at 0");
}

TEST(a_carrier, refuses_a_block_that_is_shorter_than_it_was_said_to_be) {
  const auto memory = own_memory();
  first_node n(*memory);
  frame f = opening();
  add_block(f, 0, 100'000);
  n.bring(f.finish());
  ASSERT_EQ(n.engine.pieces.size(), 1);
  EXPECT_EQ(n.engine.pieces.begin()->second, 100'000);
  n.engine.pieces.begin()->second = 10;
  n.engine.blocks_are_there = true;
  (void)n.carrier.drive();
  EXPECT_TRUE(n.loss().starts_with("has sent node 0 a block that did not come as it was announced"));
}

TEST(a_carrier, takes_a_node_for_lost_when_the_library_reports_it) {
  const auto memory = own_memory();
  first_node n(*memory, 3);
  n.engine.failed = {1, 77};  // of the second, which cannot be, nothing follows
  (void)n.carrier.drive();
  EXPECT_EQ(n.loss(), "was reported as failed by the MPI library");
  EXPECT_EQ(n.members.state(2), node_state::alive);
  (void)n.carrier.drive();
  EXPECT_EQ(n.carrier.evictions(), 1) << "it was lost twice";
}

TEST(a_carrier, refuses_frames_of_epochs_that_its_sender_cannot_be_in) {
  const auto memory = own_memory();
  {
    first_node n(*memory);
    frame f = opening();
    n.bring(f.finish(1));
    EXPECT_EQ(n.loss(), "has sent node 0 a frame of epoch 1, but this node knows 0 evictions");
    EXPECT_FALSE(n.carrier.mirror_offset(0, 1)) << "it was looked at";
  }
  first_node n(*memory, 3);
  n.carrier.report_lost(2, "was killed");
  frame first = opening();
  n.bring(first.finish(1));
  EXPECT_TRUE(n.carrier.mirror_offset(0, 1));
  frame second;
  second.begin(1);
  add_record(second, 0);
  n.bring(second.finish(0));
  EXPECT_EQ(n.members.state(1), node_state::dead) << "a frame of an earlier epoch was taken";
}

// Blocks of two nodes: what is given back to one does not give back what lies at the same place for
// the other.
TEST(a_carrier, gives_blocks_back_to_the_node_that_has_sent_them_alone) {
  const auto memory = own_memory();
  first_node n(*memory, 3);
  n.engine.blocks_are_there = true;
  frame f = opening();
  add_block(f, 0, 8192);
  n.bring(f.finish());
  while (n.carrier.drive()) {
  }
  const auto mirror = memory->map(memory->node(), *n.carrier.mirror_offset(0, 1), ring_header::bytes_for(ring_bytes));
  ring_consumer reader(*reinterpret_cast<ring_header*>(mirror->data()), ring_bytes);
  wire::envelope* const e = reader.front();
  ASSERT_NE(e, nullptr);
  wire::block_ref ref{};
  std::memcpy(&ref, e->payload(), sizeof ref);
  // A late record of this node's PE gives that place back to PE 2.
  for (const std::uint32_t to : {2U, 1U}) {
    auto ring = memory->allocate(ring_header::bytes_for(ring_bytes));
    ASSERT_TRUE(ring);
    std::memset(ring->data, 0, ring_header::bytes_for(ring_bytes));
    ring_header& header = *make_ring(ring->data, ring_bytes, 0, to);
    n.carrier.add_ring(0, to, ring->offset, header);
    ring_producer writer(header);
    wire::envelope* const release = writer.reserve(wire::granule);
    release->kind = wire::record_kind::release;
    release->reply = ref.offset;
    writer.commit(wire::granule);
    n.engine.last_sent.clear();
    (void)n.carrier.drive();
    frame_reader sent(n.engine.last_sent, 0);
    std::uint64_t there = 0;
    while (const auto item = sent.next())
      if (item->head.kind == section_kind::records)
        std::memcpy(&there, item->payload.data() + offsetof(wire::envelope, reply), sizeof there);
    EXPECT_EQ(there, to == 2 ? ~std::uint64_t{0} : 4096U) << "to PE " << to;
  }
}

TEST(a_carrier, lets_a_block_wait_until_there_is_memory_for_it) {
  const auto memory = own_memory();
  first_node n(*memory);
  frame f = opening();
  n.room = false;
  add_block(f, 0, 8192);
  add_block(f, 64, 4096, 2);
  add_record(f, 128);
  n.bring(f.finish());
  const auto bytes = memory->map(memory->node(), *n.carrier.mirror_offset(0, 1), ring_header::bytes_for(ring_bytes));
  ring_consumer reader(*reinterpret_cast<ring_header*>(bytes->data()), ring_bytes);
  n.engine.blocks_are_there = true;
  (void)n.carrier.drive();
  EXPECT_TRUE(n.engine.pieces.empty());
  EXPECT_EQ(reader.front(), nullptr);
  n.room = true;
  while (n.carrier.drive()) {
  }
  EXPECT_EQ(n.engine.pieces.size(), 2);
  int records = 0;
  for (; reader.front() != nullptr; ++records) (void)reader.pop();
  EXPECT_EQ(records, 3);
  EXPECT_TRUE(n.ends.empty());
}

// Tags come again after 16,000 blocks. The library would give the second block what the first one
// has not asked for yet.
TEST(a_carrier, begins_no_block_while_an_earlier_one_still_asks_under_its_tag) {
  const auto memory = own_memory();
  first_node n(*memory, 2, 4096);
  frame f = opening();
  add_block(f, 0, 3 * 4096, 7);
  add_block(f, 64, 100, 7);
  add_block(f, 128, 200, 8);
  n.bring(f.finish());
  // A thread gets memory for several parts.
  while (n.engine.pieces.size() < 2) (void)n.carrier.drive();
  for (int i = 0; i < 5; ++i) (void)n.carrier.drive();
  EXPECT_EQ(n.engine.pieces.size(), 2) << "a later block has begun";
  n.engine.blocks_are_there = true;
  while (n.carrier.drive()) {
  }
  std::vector<std::uint64_t> asked;
  for (const auto& [request, bytes] : n.engine.pieces) asked.push_back(bytes);
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{4096, 4096, 4096, 100, 200}));
  const auto bytes = memory->map(memory->node(), *n.carrier.mirror_offset(0, 1), ring_header::bytes_for(ring_bytes));
  ring_consumer reader(*reinterpret_cast<ring_header*>(bytes->data()), ring_bytes);
  int records = 0;
  for (; reader.front() != nullptr; ++records) (void)reader.pop();
  EXPECT_EQ(records, 3);
}

TEST(a_carrier, ends_its_node_with_a_sentence_if_no_memory_comes) {
  const auto memory = own_memory();
  first_node n(*memory);
  frame f = opening();
  n.room = false;
  add_block(f, 0, 8192);
  n.bring(f.finish());
  EXPECT_TRUE(n.ends.empty());
  n.now += 12 * 60'000'000'000;
  (void)n.carrier.drive();
  ASSERT_FALSE(n.ends.empty());
  EXPECT_NE(n.ends[0].find("node 0 has had no memory for a block of 8192 bytes from PE 1 for 720 s"), std::string::npos)
      << n.ends[0];
}

// Messages behind a block in the library's queues, as signs of life, wait for two pieces at most.
TEST(a_carrier, has_two_pieces_of_blocks_on_their_way_at_most) {
  const auto memory = own_memory();
  first_node n(*memory, 2, 4096);
  n.engine.holds_pieces = true;
  auto ring = memory->allocate(ring_header::bytes_for(ring_bytes));
  auto block = memory->allocate(5 * 4096);
  ASSERT_TRUE(ring && block);
  std::memset(ring->data, 0, ring_header::bytes_for(ring_bytes));
  ring_header& header = *make_ring(ring->data, ring_bytes, 0, 1);
  n.carrier.add_ring(0, 1, ring->offset, header);
  ring_producer writer(header);
  wire::envelope* const e = writer.reserve(2 * wire::granule);
  e->kind = wire::record_kind::message;
  e->form = wire::payload_form::block;
  const wire::block_ref ref{block->offset, 4 * 4096 + 1};
  std::memcpy(e->payload(), &ref, sizeof ref);
  writer.commit(2 * wire::granule);
  (void)n.carrier.drive();
  (void)n.carrier.drive();
  EXPECT_EQ(n.engine.going, (std::vector<std::uint64_t>{4096, 4096}));
  EXPECT_FALSE(n.carrier.is_flushed());
  n.engine.holds_pieces = false;
  while (n.carrier.drive()) {
  }
  EXPECT_TRUE(n.carrier.is_flushed());
  EXPECT_EQ(n.engine.going, (std::vector<std::uint64_t>{4096, 4096, 4096, 4096, 1}));
}

TEST(a_carrier, needs_its_first_pe_that_is_awake_while_the_library_has_parts_of_blocks) {
  const auto memory = own_memory();
  first_node n(*memory);
  EXPECT_FALSE(n.carrier.needs(0));
  frame f = opening();
  add_block(f, 0, 8192);
  n.bring(f.finish());
  (void)n.carrier.drive();
  EXPECT_TRUE(n.carrier.needs(0));
  n.now += 2'000'000'000;
  (void)n.carrier.drive();
  EXPECT_FALSE(n.carrier.needs(0)) << "nothing has moved for long";
  n.engine.blocks_are_there = true;
  while (n.carrier.drive()) {
  }
  EXPECT_FALSE(n.carrier.needs(0));
}

TEST(a_carrier, gives_signs_of_life_while_the_system_gives_memory_for_a_large_block) {
  const auto memory = own_memory();
  first_node n(*memory, 2, 4096);
  std::promise<void> given;
  n.before_memory = [&] { given.get_future().wait(); };
  n.engine.blocks_are_there = true;
  frame f = opening();
  add_block(f, 0, 3 * 4096);
  n.bring(f.finish());
  const int before = n.engine.sent;
  n.now += 13'000'000'000;
  (void)n.carrier.tick();
  EXPECT_GT(n.engine.sent, before);
  const auto bytes = memory->map(memory->node(), *n.carrier.mirror_offset(0, 1), ring_header::bytes_for(ring_bytes));
  ring_consumer reader(*reinterpret_cast<ring_header*>(bytes->data()), ring_bytes);
  EXPECT_EQ(reader.front(), nullptr);
  given.set_value();
  while (reader.front() == nullptr) (void)n.carrier.drive();
  EXPECT_EQ(n.engine.pieces.size(), 3);
}
TEST(a_carrier, gives_memory_back_whose_block_does_not_come_any_more) {
  const auto memory = own_memory();
  const std::uint64_t before = memory->memory().stats().in_use;
  std::promise<void> given;
  {
    first_node n(*memory, 2, 4096);
    n.before_memory = [&] { given.get_future().wait(); };
    frame f = opening();
    add_block(f, 0, 3 * 4096);
    n.bring(f.finish());
    n.carrier.report_lost(1, "was killed");
    n.carrier.release_memory_of(1);
    given.set_value();
  }
  EXPECT_EQ(memory->memory().stats().in_use, before);
}

TEST(a_carrier, keeps_memory_of_blocks_into_which_the_library_may_still_write) {
  for (const bool lost : {false, true}) {
    const auto memory = own_memory();
    const std::uint64_t before = memory->memory().stats().in_use;
    first_node n(*memory);
    frame f = opening();
    add_block(f, 0, 8192 - page_lead);
    n.bring(f.finish());
    ASSERT_EQ(n.engine.pieces.size(), 1);
    if (lost) {
      n.carrier.report_lost(1, "was killed");
    } else {
      frame last;
      last.begin(1);
      last.add({section_kind::state, 0, 1, 0, 0, static_cast<std::uint64_t>(node_news::left)});
      n.bring(last.finish());
    }
    n.carrier.release_memory_of(1);
    EXPECT_EQ(memory->memory().stats().in_use, before + 8192) << (lost ? "lost" : "left");
    EXPECT_FALSE(n.carrier.end());
  }
}
TEST(a_carrier, keeps_no_memory_when_all_blocks_have_come) {
  const auto memory = own_memory();
  first_node n(*memory);
  n.engine.blocks_are_there = true;
  frame f = opening();
  add_block(f, 0, 8192);
  n.bring(f.finish());
  while (n.carrier.drive()) {
  }
  EXPECT_TRUE(n.carrier.end());
}

TEST(a_block, travels_in_pieces_that_every_library_can_count) {
  constexpr std::uint64_t gib = std::uint64_t{1} << 30;
  for (const std::uint64_t bytes : {std::uint64_t{1}, gib - 1, gib, 2 * gib - 1, 2 * gib, 2 * gib + 1, 5 * gib}) {
    std::uint64_t next = 0;
    int pieces = 0;
    EXPECT_TRUE(for_each_piece(bytes, cluster_map::largest_piece, [&](std::uint64_t at, std::uint64_t n) {
      EXPECT_EQ(at, next);
      EXPECT_LE(n, gib);
      EXPECT_GT(n, 0);
      next += n;
      ++pieces;
      return true;
    }));
    EXPECT_EQ(next, bytes);
    EXPECT_EQ(pieces, static_cast<int>((bytes + gib - 1) / gib));
  }
  int pieces = 0;
  EXPECT_FALSE(for_each_piece(5 * gib, gib, [&](std::uint64_t, std::uint64_t) { return ++pieces < 2; }));
  EXPECT_EQ(pieces, 2);
}

TEST(a_carrier, answers_who_asks_for_counters_and_waits_for_those_it_asks) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  first_node n(*memory);
  const std::uint64_t round = n.carrier.ask_for_counters();
  (void)n.carrier.drive();
  EXPECT_EQ(n.engine.sent, 1);
  EXPECT_LT(n.carrier.counters_round(), round);
  frame f;
  f.begin(1);
  std::vector<std::uint64_t> words(counters_per_pe, 7);
  std::memcpy(
      f.add({section_kind::counters, static_cast<std::uint32_t>(words.size() * sizeof words[0]), 1, 1, 1, round}),
      words.data(), words.size() * sizeof words[0]);
  n.bring(f.finish());
  EXPECT_EQ(n.carrier.counters_round(), round);
  EXPECT_EQ(n.carrier.copy_of_counters(1)[3].load(), 7);
  EXPECT_GT(n.carrier.ask_for_counters(), round) << "an old answer would do for a new question";
}

TEST(a_carrier, does_not_wait_for_counters_of_a_node_that_is_lost) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  first_node n(*memory);
  const std::uint64_t round = n.carrier.ask_for_counters();
  (void)n.carrier.drive();
  n.carrier.report_lost(1, "was killed");
  EXPECT_EQ(n.carrier.counters_round(), round);
  EXPECT_EQ(n.members.gone(), 1);
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
void add_names(frame& f, std::string_view text, std::uint64_t position, std::uint64_t all) {
  const auto n = static_cast<std::uint32_t>(text.size());
  std::memcpy(f.add({section_kind::names, n, 1, 0, position, all}), text.data(), n);
}

TEST(a_carrier, tells_its_names_only_to_who_asks_for_them) {
  const auto memory = own_memory();
  first_node n(*memory);
  n.carrier.show_names([](std::size_t) { return bytes_of("names"); });
  for (const bool names : {false, true}) {
    frame f;
    f.begin(1);
    f.add({section_kind::ask, 0, 0, 0, names ? 1U : 0U, 7});
    n.bring(f.finish());
    frame_reader sent(n.engine.last_sent, 0);
    std::string told;
    bool counters = false;
    while (const auto item = sent.next()) {
      if (item->head.kind == section_kind::names) {
        EXPECT_FALSE(counters) << "names come before counters, which end the answer";
        told.assign(reinterpret_cast<const char*>(item->payload.data()), item->payload.size());
      }
      counters |= item->head.kind == section_kind::counters;
    }
    EXPECT_TRUE(counters);
    EXPECT_EQ(told, names ? "names" : "");
  }
}

TEST(a_carrier, hears_names_in_parts_and_forgets_those_that_are_not_told_again) {
  const auto memory = own_memory();
  first_node n(*memory);
  (void)n.carrier.ask_for_names();
  (void)n.carrier.drive();
  frame_reader asked(n.engine.last_sent, 0);
  const auto question = asked.next();
  ASSERT_TRUE(question);
  EXPECT_EQ(question->head.kind, section_kind::ask);
  EXPECT_EQ(question->head.position, 1);
  frame first;
  first.begin(1);
  add_names(first, "one ", 0, 7);
  n.bring(first.finish());
  EXPECT_TRUE(n.carrier.names_of(1).empty());
  frame second;
  second.begin(1);
  add_names(second, "two", 4, 7);
  n.bring(second.finish());
  EXPECT_EQ(n.carrier.names_of(1), bytes_of("one two"));
  frame third;
  third.begin(1);
  add_names(third, "", 0, 0);
  n.bring(third.finish());
  EXPECT_TRUE(n.carrier.names_of(1).empty());
  EXPECT_EQ(n.loss(), "");
}

TEST(a_carrier, refuses_names_that_have_no_place) {
  EXPECT_EQ(fault_of([](frame& f) { add_names(f, "two", 4, 7); }),
            "has sent node 0 3 bytes of names at 4 of 7, which have no place there");
  EXPECT_EQ(fault_of([](frame& f) { add_names(f, "long", 0, 3); }),
            "has sent node 0 4 bytes of names at 0 of 3, which have no place there");
  EXPECT_EQ(fault_of([](frame& f) { add_names(f, "x", 0, std::uint64_t{1} << 40); }),
            "has sent node 0 1 bytes of names at 0 of 1099511627776, which have no place there");
}

TEST(a_carrier, survives_frames_with_random_bytes) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 500; ++round) {
    first_node n(*memory);
    frame f = opening();
    for (std::uint64_t p = 0; p < 4; ++p) add_record(f, p * 2 * wire::granule);
    f.add({section_kind::credit, 0, 0, 1, 0, 0});
    f.add({section_kind::ask, 0, 0, 0, random() % 2, 1});
    f.add({section_kind::state, 0, 1, 0, 0, 1 + random() % 6});
    add_names(f, "names", 0, 10);
    add_block(f, 256, 5000);
    const auto good = f.finish();
    std::vector<std::byte> changed(good.begin(), good.end());
    for (int i = 0; i < 3; ++i)
      changed[sizeof(frame_head) + random() % (changed.size() - sizeof(frame_head))] = static_cast<std::byte>(random());
    n.bring(changed);
    n.carrier.report_lost(1, "was killed");
    n.carrier.release_memory_of(1);
    EXPECT_TRUE(memory->memory().consistent());
  }
}

}  // namespace carrier_tests
}  // namespace orrery::transport
