// SPDX-License-Identifier: Apache-2.0
// Carriers of several machines over a simulated network with a simulated clock: whatever is late,
// cut or stopped, one world is left.
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/carrier.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::transport {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t patience = 1000 * ms;
constexpr std::uint64_t ring_bytes = 4096;

class simulated_machine;

/// The messages on their way between machines. Each pair of them has a line that keeps the order; a
/// line may be cut.
struct simulated_network {
  struct message {
    std::int64_t due;
    std::vector<std::byte> bytes;
    std::uint64_t evictions;  // that its sender knew
  };
  std::int64_t now = 0;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::deque<message>> lines;
  std::map<std::pair<std::uint32_t, std::uint32_t>, bool> cut;
  std::vector<std::unique_ptr<simulated_machine>> machines;
  std::mt19937_64 random;
  std::uint64_t below(std::uint64_t n) { return random() % n; }
};

/// One node on a machine of its own.
class simulated_machine final : public engine {
 public:
  simulated_machine(simulated_network& net, const std::vector<cluster_map::place>& places, std::uint32_t node)
      : net_(net), node_(node), map_(places, node), members_(map_.nodes(), node) {
    world_config config;
    config.program = "test";
    config.places = 16;
    memory_ = std::move(*shm_world::create(config));
    carrier_ = std::make_unique<mpi_carrier>(
        *this, *memory_, map_, members_, patience,
        [this](const std::string& line) {
          ended = true;
          if (why.empty()) why = line;
        },
        [this] { return net_.now; });
    if (!carrier_->begin()) std::abort();
  }

  bool send(std::uint32_t to, int tag, std::span<const std::byte> data, request& begun) override {
    begun = 0;
    if (tag != 0 || net_.cut[{node_, to}] || ended) return true;
    auto& line = net_.lines[{node_, to}];
    const std::int64_t due = net_.now + static_cast<std::int64_t>(net_.below(30)) * ms;
    line.push_back({line.empty() ? due : std::max(due, line.back().due), {data.begin(), data.end()}, known});
    return true;
  }
  bool receive(std::uint32_t, int tag, std::span<std::byte> into, request& begun) override {
    begun = ++requests_;
    if (tag == 0) posted_.emplace_back(begun, into);
    return true;
  }
  outcome test(request& begun, std::uint32_t& from, std::uint64_t& bytes) override {
    if (begun == 0) return outcome::done;
    if (posted_.empty() || posted_.front().first != begun) return outcome::pending;
    const std::uint64_t turn = net_.below(map_.nodes());
    for (std::uint64_t i = 0; i < map_.nodes(); ++i) {
      const auto other = static_cast<std::uint32_t>((turn + i) % map_.nodes());
      auto& line = net_.lines[{other, node_}];
      if (line.empty() || line.front().due > net_.now) continue;
      std::ranges::copy(line.front().bytes, posted_.front().second.begin());
      from = other;
      bytes = line.front().bytes.size();
      must_know[other] = line.front().evictions;
      line.pop_front();
      posted_.pop_front();
      return outcome::done;
    }
    return outcome::pending;
  }
  void cancel(request&) override {}
  [[nodiscard]] std::string error() const override { return "no error"; }

  /// The work of its helper thread.
  void tick() {
    if (ended || stopped) return;
    (void)carrier_->tick();
    known = carrier_->evictions();
    // I4: that of all machines it still listens to.
    for (const auto& [other, least] : must_know) {
      if (members_.state(other) == node_state::dead || ended) continue;
      EXPECT_GE(known, least) << "node " << node_ << " acts on what node " << other << " knew";
    }
  }
  void talk_to(std::uint32_t other) {
    auto ring = memory_->allocate(ring_header::bytes_for(ring_bytes));
    ASSERT_TRUE(ring);
    std::memset(ring->data, 0, ring_header::bytes_for(ring_bytes));
    carrier_->add_ring(node_, other, ring->offset, *make_ring(ring->data, ring_bytes, node_, other));
  }
  [[nodiscard]] std::vector<std::uint32_t> lost() const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t n = 0; n < map_.nodes(); ++n)
      if (members_.state(n) == node_state::dead) all.push_back(n);
    return all;
  }
  [[nodiscard]] mpi_carrier& carrier() noexcept { return *carrier_; }

  bool ended = false;
  bool stopped = false;
  std::string why;
  std::uint64_t known = 0;
  std::map<std::uint32_t, std::uint64_t> must_know;

 private:
  simulated_network& net_;
  std::uint32_t node_;
  cluster_map map_;
  cluster_members members_;
  std::unique_ptr<shm_world> memory_;
  std::unique_ptr<mpi_carrier> carrier_;
  std::deque<std::pair<request, std::span<std::byte>>> posted_;
  request requests_ = 0;
};

struct simulated_cluster {
  simulated_network net;

  explicit simulated_cluster(std::uint32_t nodes, std::uint64_t seed = testing::test_seed()) {
    net.random.seed(seed);
    std::vector<cluster_map::place> places;
    for (std::uint32_t n = 0; n < nodes; ++n) places.push_back({n, n, 1, 0, 0});
    for (std::uint32_t n = 0; n < nodes; ++n)
      net.machines.push_back(std::make_unique<simulated_machine>(net, places, n));
  }
  [[nodiscard]] simulated_machine& at(std::uint32_t n) { return *net.machines[n]; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(net.machines.size()); }
  void run_for(std::int64_t time) {
    for (const std::int64_t end = net.now + time; net.now < end; net.now += 5 * ms)
      for (std::uint32_t i = 0; i < nodes(); ++i) at(static_cast<std::uint32_t>(net.below(nodes()))).tick();
  }
  void cut(std::uint32_t from, std::uint32_t to, bool is_cut = true) {
    net.cut[{from, to}] = is_cut;
    if (is_cut) net.lines[{from, to}].clear();
  }
  void cut_both(std::uint32_t a, std::uint32_t b) {
    cut(a, b);
    cut(b, a);
  }
  /// All that run agree with the first node who is lost, and nobody runs that is. Empty if so.
  std::string disagreement() {
    const auto lost = at(0).lost();
    for (std::uint32_t n = 1; n < nodes(); ++n) {
      const bool is_lost = std::ranges::find(lost, n) != lost.end();
      if (at(n).ended != is_lost)
        return fmt::format("node {} {}, but for the first node it is {}", n, at(n).ended ? "has ended" : "runs",
                           is_lost ? "lost" : "there");
      if (!is_lost && at(n).lost() != lost) return fmt::format("node {} takes others for lost than the first node", n);
    }
    return {};
  }
};

TEST(machines_in_a_world, lose_nobody_while_messages_are_late) {
  simulated_cluster c(4);
  c.at(1).talk_to(2);
  c.run_for(20 * patience);
  for (std::uint32_t n = 0; n < 4; ++n) {
    EXPECT_FALSE(c.at(n).ended) << c.at(n).why;
    EXPECT_TRUE(c.at(n).lost().empty());
  }
}

TEST(machines_in_a_world, lose_one_that_no_longer_reaches_the_first_and_it_ends) {
  simulated_cluster c(3);
  c.cut_both(0, 2);
  c.run_for(5 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
  EXPECT_NE(c.at(2).why.find("the first node of the world was silent for 1000 ms: node 2 ends too"), std::string::npos)
      << c.at(2).why;
}

TEST(machines_in_a_world, end_one_that_is_heard_by_others_but_does_not_hear_the_first) {
  simulated_cluster c(3);
  c.cut(0, 2);
  c.run_for(5 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{2});
}

// One hears the other, and is not heard: the first node believes who misses somebody.
TEST(machines_in_a_world, lose_one_whose_messages_do_not_reach_another_that_it_talks_to) {
  simulated_cluster c(4);
  c.at(1).talk_to(2);
  c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.cut(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_EQ(c.at(0).lost(), std::vector<std::uint32_t>{1});
  EXPECT_NE(c.at(1).why.find("as it was silent for 1500 ms (seen by node 2)"), std::string::npos) << c.at(1).why;
}

TEST(machines_in_a_world, lose_one_of_two_that_talk_and_are_cut_from_each_other) {
  simulated_cluster c(4);
  c.at(1).talk_to(2);
  c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.cut_both(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  ASSERT_EQ(c.at(0).lost().size(), 1);
  const std::uint32_t lost = c.at(0).lost()[0];
  EXPECT_TRUE(lost == 1 || lost == 2);
  EXPECT_NE(
      c.at(lost).why.find("is taken for lost by the first node of the world, as it was silent for 1500 ms (seen by"),
      std::string::npos)
      << c.at(lost).why;
}

TEST(machines_in_a_world, keep_two_that_are_cut_from_each_other_and_never_talk) {
  simulated_cluster c(4);
  c.cut_both(1, 2);
  c.run_for(6 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_TRUE(c.at(0).lost().empty());
}

TEST(machines_in_a_world, end_one_that_was_stopped_for_too_long_when_it_goes_on) {
  simulated_cluster c(3);
  c.at(2).talk_to(1);
  c.run_for(patience / 2);
  c.at(2).stopped = true;
  c.run_for(4 * patience);
  EXPECT_FALSE(c.at(2).ended);
  c.at(2).stopped = false;
  c.run_for(patience / 2);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_NE(c.at(2).why.find("node 2 is taken for lost by the first node of the world, as it was silent"),
            std::string::npos)
      << c.at(2).why;
}

TEST(machines_in_a_world, keep_one_that_was_stopped_for_less) {
  simulated_cluster c(3);
  c.at(2).stopped = true;
  c.run_for(patience * 6 / 10);
  c.at(2).stopped = false;
  c.run_for(4 * patience);
  EXPECT_EQ(c.disagreement(), "");
  EXPECT_TRUE(c.at(0).lost().empty());
}

// Random cuts of single directions, stops, suspicions and damaged frames; then quiet. The first
// node is never stopped.
TEST(machines_in_a_world, are_one_world_after_any_cuts_stops_and_suspicions) {
  const std::uint64_t seed = testing::test_seed();
  for (std::uint64_t round = 0; round < 60; ++round) {
    simulated_cluster c(5, seed + round);
    for (std::uint32_t a = 0; a < 5; ++a)
      for (std::uint32_t b = 0; b < 5; ++b)
        if (a != b && c.net.below(3) == 0) c.at(a).talk_to(b);
    for (int step = 0; step < 12; ++step) {
      const auto a = static_cast<std::uint32_t>(c.net.below(5));
      const auto b = static_cast<std::uint32_t>(c.net.below(5));
      switch (c.net.below(8)) {
        case 0:
          if (a != b) c.cut(a, b);
          break;
        case 1:
          if (a != 0) c.at(a).stopped = !c.at(a).stopped;
          break;
        case 2:
          if (a != b && !c.at(a).ended && c.net.below(3) == 0) c.at(a).carrier().report_lost(b, "was reported");
          break;
        case 3:
          if (c.net.below(3) == 0 && !c.net.lines[{a, b}].empty())
            c.net.lines[{a, b}].front().bytes.back() ^= std::byte{0x40};
          break;
        default:
          break;
      }
      c.run_for(static_cast<std::int64_t>(c.net.below(1500)) * ms);
    }
    for (std::uint32_t n = 0; n < 5; ++n) c.at(n).stopped = false;
    c.run_for(8 * patience);
    ASSERT_FALSE(c.at(0).ended) << c.at(0).why;
    ASSERT_EQ(c.disagreement(), "") << "round " << round;
  }
}

}  // namespace
}  // namespace orrery::transport
