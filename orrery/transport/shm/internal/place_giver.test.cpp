// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/place_giver.hpp>
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>

namespace orrery::transport {
namespace place_giver_tests {

using testing::expect_error;
using testing::other;
using testing::take;

/// Tables without a world: nodes are entries whose states the test changes.
class places : public testing::shm_test {
 protected:
  explicit places(std::uint32_t limit = 0) {
    take(memory.back(0, layout::page));
    world_config c;
    c.places = limit;
    table.create("t", c, self, 1);
  }
  result<place_giver::given> try_join(std::uint32_t pes = 1, std::uint32_t nodes = 1) {
    world_config c;
    c.pe_count = pes;
    c.nodes = nodes;
    place_giver giver(table, memory);
    auto given = giver.give(c, no_vocabulary, self);
    may_succeed_later = giver.may_succeed_later();
    return given;
  }
  place_giver::given join(std::uint32_t pes = 1) {
    const auto to = take(try_join(pes));
    auto& e = table.entry(to.node);
    e.lives = e.lives | 1;
    notice(to, pes);
    EXPECT_TRUE(table.change_state(to.node, node_state::joining, node_state::alive));
    return to;
  }
  void leave(const place_giver::given& who) {
    EXPECT_TRUE(table.change_state(who.node, node_state::alive, node_state::left));
  }
  void notice(const place_giver::given& who, std::uint32_t pes = 1) {
    const std::uint64_t gone = table.gone_nodes();
    table.entry(who.node).noticed = gone;
    for (std::uint32_t i = 0; i < pes; ++i) table.pe(who.first_pe + i).noticed = gone;
  }

  peer_id self = take(this_peer());
  segment memory = take(segment::create("t", layout::world_bytes));
  world_table table{memory.data()};
  bool may_succeed_later = false;
};

class few_places : public places {
 protected:
  few_places() : places(2) {}
};

TEST_F(places, are_given_again_when_all_have_noticed_who_has_left) {
  const auto host = join(2);
  const auto first = join(1);
  leave(first);
  EXPECT_EQ(join(1).node, 2U) << "the host has not noticed";
  notice(host, 2);
  notice({2, 3});
  const auto second = join(1);
  EXPECT_EQ(second.node, number_of(1, 1));
  EXPECT_EQ(second.first_pe, number_of(2, 1));
  EXPECT_EQ(table.pe_node(second.first_pe), second.node);
  EXPECT_EQ(table.pe_node(first.first_pe), no_node);
  EXPECT_EQ(table.state_of(first.node), node_state::left);
  EXPECT_EQ(table.state_of(number_of(1, 2)), node_state::empty);
  EXPECT_EQ(table.info(first.node).pe_count, 0U);
  EXPECT_FALSE(table.mark_dead(first.node));
  EXPECT_EQ(table.state_of(second.node), node_state::alive);
  EXPECT_EQ(table.numbers().nodes, 3U);
  EXPECT_EQ(table.numbers().pes, 4U);
}

TEST_F(places, wait_for_the_one_pe_that_has_not_noticed) {
  const auto host = join(3);
  leave(join(1));
  table.entry(host.node).noticed = table.gone_nodes();
  table.pe(host.first_pe).noticed = table.gone_nodes();
  table.pe(host.first_pe + 2).noticed = table.gone_nodes();
  EXPECT_EQ(join(1).node, 2U);
  table.pe(host.first_pe + 1).noticed = table.gone_nodes();
  EXPECT_EQ(join(1).node, number_of(1, 1));
}

TEST_F(places, hold_nothing_of_who_was_there_before) {
  const auto host = join(1);
  const auto first = join(1);
  const std::uint32_t pe = first.first_pe;
  table.ring(pe, host.first_pe) = 65;
  table.ring(host.first_pe, pe) = 129;
  table.counters()[pe * counters_per_pe + 28] = 7;
  table.bells()[pe].sleeping = 1;
  table.entry(first.node).board_fd = 5;
  leave(first);
  notice(host);
  EXPECT_EQ(place_of(join(1).first_pe), pe);
  EXPECT_EQ(table.ring(pe, host.first_pe), 0U);
  EXPECT_EQ(table.ring(host.first_pe, pe), 0U);
  EXPECT_EQ(table.counters()[pe * counters_per_pe + 28], 0U);
  EXPECT_EQ(table.bells()[pe].sleeping, 0U);
  EXPECT_EQ(table.entry(first.node).board_fd, 0);
}

TEST_F(places, of_whoever_was_killed_while_taking_them_are_taken_by_the_next) {
  const auto host = join(1);
  const auto killed = take(try_join(2, 2));
  table.entry(killed.node).state = layout::state_word(killed.node, layout::claimed);
  EXPECT_EQ(table.state_of(killed.node), node_state::empty);
  EXPECT_EQ(table.state_of(killed.node + 1), node_state::reserved);
  notice(host);
  const auto next = join(4);
  EXPECT_EQ(next.node, number_of(1, 1));
  EXPECT_EQ(next.first_pe, number_of(1, 1));
  EXPECT_EQ(join(1).node, number_of(2, 1));
  EXPECT_EQ(table.gone_nodes(), 0U) << "nobody was ever there";
}

TEST_F(places, of_whoever_died_before_it_was_there_are_taken_by_the_next) {
  const auto host = join(1);
  const auto died = take(try_join(1));
  table.entry(died.node).pid = other([](testing::link&) { return 0; }).pid();
  notice(host);
  EXPECT_EQ(join(1).node, number_of(1, 1));
}

TEST_F(places, are_taken_in_a_row_by_one_program_and_never_by_two) {
  std::minstd_rand random{7};
  const auto host = join(1);
  struct guest {
    place_giver::given at;
    std::uint32_t pes;
  };
  std::vector<guest> there;
  std::map<std::uint32_t, std::uint32_t> last;  // by place
  std::vector<std::uint32_t> taken(64);
  for (int i = 0; i < 3000; ++i) {
    if (there.size() > random() % 12) {
      const std::size_t who = random() % there.size();
      leave(there[who].at);
      for (std::uint32_t k = 0; k < there[who].pes; ++k) --taken[place_of(there[who].at.first_pe + k)];
      there.erase(there.begin() + static_cast<std::ptrdiff_t>(who));
      notice(host);
      for (const guest& g : there) notice(g.at, g.pes);
    }
    const std::uint32_t pes = 1 + static_cast<std::uint32_t>(random() % 4);
    const auto to = join(pes);
    there.push_back({to, pes});
    ASSERT_LT(place_of(to.first_pe) + pes, 64U) << "the tables grow though places are free";
    for (std::uint32_t pe = to.first_pe; pe < to.first_pe + pes; ++pe) {
      ASSERT_EQ(++taken[place_of(pe)], 1U);
      ASSERT_EQ(epoch_of(pe), epoch_of(to.first_pe));
      ASSERT_EQ(table.pe_node(pe), to.node);
      const auto before = last.find(place_of(pe));
      ASSERT_TRUE(before == last.end() || pe > before->second);
      last[place_of(pe)] = pe;
    }
  }
}

TEST_F(places, whose_numbers_are_used_up_are_left_alone) {
  const auto host = join(1);
  leave(join(1));
  notice(host);
  table.entry(1).state = layout::state_word(number_of(1, max_epoch), static_cast<std::uint32_t>(node_state::left));
  EXPECT_EQ(join(1).node, 2U);
  table.entry(1).state = layout::state_word(number_of(1, max_epoch - 1), static_cast<std::uint32_t>(node_state::left));
  table.entry(1).gone_at = 1;
  EXPECT_EQ(join(1).node, number_of(1, max_epoch));
}

// With ORRERY_TEST_JOINS=1000000: a million.
TEST_F(places, last_for_any_number_of_programs_that_come_and_go) {
  const char* const asked = std::getenv("ORRERY_TEST_JOINS");  // NOLINT(concurrency-mt-unsafe)
  const int joins = asked != nullptr ? std::atoi(asked) : 20'000;
  const auto host = join(2);
  std::uint32_t last = 0;
  for (int i = 1; i <= joins; ++i) {
    const auto guest = join(1);
    ASSERT_GT(guest.first_pe, last);
    last = guest.first_pe;
    if (i % 3 == 0) {
      ASSERT_TRUE(table.mark_dead(guest.node));
    } else {
      leave(guest);
    }
    ASSERT_EQ(table.gone_nodes(), static_cast<std::uint64_t>(i));
    notice(host, 2);
  }
  EXPECT_EQ(table.numbers().nodes, 2U);
  EXPECT_EQ(table.numbers().pes, 3U);
}

TEST_F(few_places, are_full_until_who_has_left_is_noticed) {
  const auto host = join(1);
  const auto guest = join(1);
  expect_error(try_join(), transport_errc::full, {"2 of its 2 places", "start a new world"});
  EXPECT_FALSE(may_succeed_later);
  leave(guest);
  expect_error(try_join(), transport_errc::full, {"node 0 (pid", "notices"});
  EXPECT_TRUE(may_succeed_later);
  notice(host);
  EXPECT_EQ(join(1).node, number_of(1, 1));
}

class silent final : public membership_observer {
  void node_joined(std::uint32_t) noexcept override {}
  void node_left(std::uint32_t) noexcept override {}
  void node_lost(std::uint32_t, std::string_view) noexcept override {}
  void world_ending() noexcept override {}
  void world_lost(std::string_view) noexcept override {}
};

class reused_world : public testing::shm_test {
 protected:
  [[nodiscard]] world_config config() const {
    return {.pe_count = 1,
            .build_id = 7,
            .program = "tested",
            .memory_limit = 8 << 20,
            .places = 2,
            .rendezvous_dir = directory.path(),
            .patience = std::chrono::milliseconds{20'000}};
  }
  [[nodiscard]] wire::unique_ptr<shm_world> come() const { return take(shm_world::create_or_join("w", config())); }
  testing::scratch_directory directory;
};

TEST_F(reused_world, lets_a_program_wait_until_a_place_is_free) {
  const auto host = come();
  come().reset();
  silent observer;
  const auto monitor = take(membership_monitor::start(*host, observer));
  std::atomic<bool> is_in{false};
  std::thread pe([&] {
    while (!is_in) host->acknowledge(0, host->gone_nodes());
  });
  const auto guest = come();
  EXPECT_EQ(guest->node(), number_of(1, 1));
  EXPECT_EQ(guest->first_pe(), number_of(1, 1));
  is_in = true;
  pe.join();
}

TEST_F(reused_world, maps_the_memory_of_each_node_that_had_a_place) {
  const auto host = come();
  std::byte* before = nullptr;
  {
    const auto first = come();
    const auto block = take(first->memory().allocate(64));
    first->memory().data()[block.offset] = std::byte{1};
    before = take(host->map(1, block.offset, 1)).data();
  }
  const std::uint64_t gone = host->gone_nodes();
  host->acknowledge_node(gone);
  host->acknowledge(0, gone);
  const auto second = come();
  const auto block = take(second->memory().allocate(64));
  second->memory().data()[block.offset] = std::byte{2};
  std::byte* const now = take(host->map(second->node(), block.offset, 1)).data();
  EXPECT_EQ(*before, std::byte{1}) << "a message in a mailbox still lies there";
  EXPECT_EQ(*now, std::byte{2});
  EXPECT_EQ(take(host->map(1, block.offset, 1)).data(), before);
  host->unmap(1);
  expect_error(host->map(1), transport_errc::gone, {"node 1", "left"});
  EXPECT_EQ(take(host->map(second->node(), block.offset, 1)).data(), now);
  host->unmap(second->node());
}

TEST_F(reused_world, goes_on_after_many_programs_of_which_some_are_killed) {
  const auto host = come();
  silent observer;
  const auto monitor = take(membership_monitor::start(*host, observer));
  std::set<std::string> numbers;
  for (int i = 0; i < 30; ++i) {
    other guest([&](testing::link& l) {
      const auto world = come();
      l.say(std::to_string(world->first_pe()));
      (void)l.hear();
      return 0;
    });
    EXPECT_TRUE(numbers.insert(guest.hear()).second);
    if (i % 2 == 0) guest.kill();
    guest.say("go");
    guest.wait();
    while (host->gone_nodes() != static_cast<std::uint64_t>(i) + 1) std::this_thread::yield();
    host->acknowledge(0, host->gone_nodes());
  }
  EXPECT_EQ(host->pe_limit(), 2U);
  EXPECT_EQ(host->node_limit(), 2U);
  EXPECT_EQ(host->pe_at(1), number_of(1, 29));
}

}  // namespace place_giver_tests
}  // namespace orrery::transport
