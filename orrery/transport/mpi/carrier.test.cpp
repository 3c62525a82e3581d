// SPDX-License-Identifier: Apache-2.0
// A carrier by itself: what a test gives it is what came from another node.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/shm/world.hpp>

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace {

/// Sends into nothing, and receives what the test says.
class scripted_engine final : public engine {
 public:
  bool send(std::uint32_t, int, std::span<const std::byte>, request& begun) override {
    ++sent;
    begun = 0;
    return true;
  }
  bool receive(std::uint32_t, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    if (tag == 0) posted_.emplace_back(begun, into);
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    if (posted_.empty() || posted_.front().first != begun || incoming.empty()) return outcome::pending;
    const auto& frame = incoming.front();
    std::memcpy(posted_.front().second.data(), frame.data(), frame.size());
    from = 1;
    bytes = frame.size();
    incoming.pop_front();
    posted_.pop_front();
    return outcome::done;
  }
  void cancel(request&) override {}
  [[nodiscard]] std::string error() const override { return "no error"; }

  std::deque<std::vector<std::byte>> incoming;  // from node 1
  int sent = 0;

 private:
  std::deque<std::pair<request, std::span<std::byte>>> posted_;
  request requests_ = 0;
};

/// Node 0 of two machines of one PE each.
struct first_node {
  explicit first_node(shm_world& local) : memory(local) { started = carrier.begin(); }
  shm_world& memory;
  scripted_engine engine;
  cluster_map map{{{0, 0, 1, 0, 0}, {1, 1, 1, 0, 0}}, 0};
  cluster_members members{2, 0};
  std::vector<std::string> ends;
  mpi_carrier carrier{engine,  memory,         map,
                      members, 60'000'000'000, [this](const std::string& line) { ends.push_back(line); }};
  bool started = false;

  void bring(std::span<const std::byte> bytes) {
    engine.incoming.emplace_back(bytes.begin(), bytes.end());
    (void)carrier.drive();
  }
};

std::unique_ptr<shm_world> own_memory() {
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

TEST(a_carrier, takes_a_node_for_lost_that_sends_what_cannot_be) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  {
    first_node n(*memory);
    frame f = opening();
    add_record(f, 4096);  // nothing came before it
    n.bring(f.finish());
    EXPECT_EQ(n.members.state(1), node_state::dead);
  }
  {
    first_node n(*memory);
    frame f = opening();
    f.add({section_kind::open, 0, 1, 0, 0, ring_bytes});  // again
    n.bring(f.finish());
    EXPECT_EQ(n.members.state(1), node_state::dead);
  }
  {
    first_node n(*memory);
    const std::vector<std::byte> nonsense(100);
    n.bring(nonsense);
    EXPECT_EQ(n.members.state(1), node_state::dead);
  }
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

TEST(a_carrier, survives_frames_with_random_bytes) {
  const auto memory = own_memory();
  ASSERT_NE(memory, nullptr);
  std::mt19937_64 random(testing::test_seed());
  for (int round = 0; round < 500; ++round) {
    first_node n(*memory);
    frame f = opening();
    for (std::uint64_t p = 0; p < 4; ++p) add_record(f, p * 2 * wire::granule);
    f.add({section_kind::credit, 0, 0, 1, 0, 0});
    f.add({section_kind::ask, 0, 0, 0, 0, 1});
    f.add({section_kind::state, 0, 1, 0, 0, 1 + random() % 6});
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

}  // namespace
}  // namespace orrery::transport
