// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/page_lead.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/shm/internal/table.hpp>
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/rendezvous.hpp>
#include <orrery/transport/shm/view.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <cstring>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace orrery::transport {
namespace world_tests {

using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

class world_test : public testing::shm_test {
 protected:
  [[nodiscard]] world_config config(std::uint32_t pes = 2) const {
    return {.pe_count = pes,
            .build_id = 7,
            .program = "tested",
            .memory_limit = 8 << 20,
            .rendezvous_dir = directory.path()};
  }
  [[nodiscard]] result<wire::unique_ptr<shm_world>> come(std::uint32_t pes = 2) const {
    return shm_world::create_or_join("w", config(pes));
  }
  /// A node of world "w" in another OS process: says its number and stays until it is told to go.
  [[nodiscard]] other node_elsewhere(std::uint32_t pes = 2) const {
    return other{[this, pes](link& l) {
      auto world = come(pes);
      l.say(world ? std::to_string((*world)->node()) : world.error().message);
      (void)l.hear();
      return 0;
    }};
  }
  [[nodiscard]] static std::string line_of(const shm_world& w) {
    return std::to_string(w.nonce()) + ' ' + std::to_string(w.node()) + ' ' + std::to_string(w.first_pe());
  }
  /// The tables of a world, to break them.
  struct tables {
    explicit tables(const shm_world& world)
        : memory(take(segment::adopt(unique_fd{::fcntl(world.world_fd(), F_DUPFD_CLOEXEC, 3)}, 0, "t"))),
          table(memory.data()) {}
    segment memory;
    world_table table;
  };
  testing::scratch_directory directory;
};

TEST_F(world_test, of_one_node_begins_with_number_zero) {
  auto world = take(shm_world::create(config(3)));
  EXPECT_EQ(world->node(), 0U);
  EXPECT_TRUE(world->is_first());
  EXPECT_EQ(world->first_pe(), 0U);
  EXPECT_EQ(world->pe_count(), 3U);
  EXPECT_EQ(world->node_limit(), 1U);
  EXPECT_EQ(world->pe_limit(), 3U);
  EXPECT_TRUE(world->alive(0));
  EXPECT_FALSE(world->alive(1));
  EXPECT_FALSE(world->alive(no_node));
  EXPECT_EQ(world->pe_node(2), 0U);
  EXPECT_EQ(world->pe_node(3), no_node);
  EXPECT_EQ(world->state(), world_state::running);
  const node_info info = world->info(0);
  EXPECT_EQ(info.id, take(this_peer()));
  EXPECT_EQ(info.program, "tested");
  EXPECT_EQ(info.launcher, 0U);
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, of_a_name_is_made_by_the_first_and_joined_by_the_next) {
  auto first = take(come(2));
  auto second = take(come(3));
  EXPECT_TRUE(first->is_first());
  EXPECT_EQ(second->node(), 1U);
  EXPECT_EQ(second->first_pe(), 2U);
  EXPECT_EQ(second->pe_count(), 3U);
  EXPECT_EQ(second->nonce(), first->nonce());
  EXPECT_EQ(second->name(), "w");
  EXPECT_TRUE(first->alive(1));
  EXPECT_EQ(first->pe_node(4), 1U);
  EXPECT_EQ(first->pe_limit(), 5U);
}

TEST_F(world_test, shares_doorbells_counters_rings_and_memory_among_nodes) {
  auto first = take(come());
  auto second = take(come());
  first->bell(3).sleeping.store(1);
  EXPECT_EQ(second->bell(3).sleeping.load(), 1U);
  first->bell(3).sleeping.store(0);
  second->counters(2)[23].store(9);
  EXPECT_EQ(first->counters(2)[23].load(), 9U);

  EXPECT_FALSE(second->ring_offset(3, 0));
  const auto block = take(first->memory().allocate(ring_header::bytes_for(4096)));
  auto* ring = make_ring(first->memory().data() + block.offset, 4096, 0, 3);
  first->publish_ring(3, 0, block.offset);
  EXPECT_EQ(second->bell(3).announce.load(), 1U);
  ASSERT_TRUE(second->ring_offset(3, 0));
  const auto seen = take(second->map(0, *second->ring_offset(3, 0), ring_header::bytes_for(4096)));
  auto& header = *reinterpret_cast<ring_header*>(seen.data());
  EXPECT_EQ(header.magic, ring_header::magic_value);
  EXPECT_EQ(header.consumer_pe, 3U);
  header.head.store(77);
  EXPECT_EQ(ring->head.load(), 77U);
  EXPECT_FALSE(second->ring_offset(0, 3)) << "the other direction is another ring";
  first->withdraw_ring(3, 0);
  EXPECT_FALSE(second->ring_offset(3, 0));
}

// Copies from and to the beginning of a page are slow a few bytes behind it.
TEST_F(world_test, gives_memory_that_begins_behind_the_beginning_of_a_page) {
  auto world = take(come());
  const auto in_use = [&] { return world->memory().stats().in_use; };
  const std::uint64_t before = in_use();
  for (const std::uint64_t bytes : {4097, 65'536, 500'000}) {
    for (const bool beyond : {false, true}) {
      const auto block = take(beyond ? world->allocate_beyond(bytes) : world->allocate(bytes));
      EXPECT_EQ(block.offset % page_bytes, page_lead);
      EXPECT_EQ(take(world->map(0, block.offset, bytes)).data(), block.data);
      std::memset(block.data, 1, bytes);
      EXPECT_GE(in_use(), before + (beyond ? 0 : bytes + page_lead));
      world->release(block.offset);
      EXPECT_EQ(in_use(), before) << bytes;
    }
  }
  const std::uint64_t all = world->memory().limit() - before;
  const auto whole = take(world->allocate(all));
  world->release(whole.offset);
  EXPECT_EQ(in_use(), before) << "a block of all there is";
}

TEST_F(world_test, maps_the_memory_of_another_os_process_once) {
  auto world = take(come());
  other child = node_elsewhere();
  EXPECT_EQ(child.hear(), "1");
  const auto all = take(world->map(1));
  EXPECT_EQ(take(world->map(1)).data(), all.data());
  EXPECT_EQ(all.size(), world->info(1).segment_bytes);
  EXPECT_EQ(take(world->map(0)).data(), world->memory().data());
}

TEST_F(world_test, checks_every_range_of_memory) {
  auto first = take(come());
  auto second = take(come());
  const std::uint64_t size = take(second->map(0)).size();
  EXPECT_EQ(take(second->map(0, size, 0)).size(), 0U);
  EXPECT_EQ(take(second->map(0, size - 5, 5)).size(), 5U);
  for (const auto& [offset, bytes] :
       {std::pair{size, std::uint64_t{1}}, {size - 5, 6UL}, {0UL, size + 1}, {~0UL, 1UL}, {64UL, ~0UL}, {~0UL, ~0UL}}) {
    expect_error(second->map(0, offset, bytes), transport_errc::damaged, {"node 0"});
  }
  expect_error(second->map(2), transport_errc::bad_argument, {"no node 2"});
  expect_error(second->map(max_nodes), transport_errc::bad_argument, {"no node 4096"});
  expect_error(second->map(no_node), transport_errc::bad_argument, {"no node"});
}

TEST_F(world_test, stays_readable_after_a_node_has_left_for_those_who_mapped_it) {
  auto first = take(come());
  auto second = take(come());
  auto third = take(come());
  const auto block = take(second->memory().allocate(100));
  second->memory().data()[block.offset] = std::byte{5};
  const auto seen = take(first->map(1, block.offset, 1));
  second.reset();
  EXPECT_EQ(first->state(1), node_state::left);
  EXPECT_EQ(seen[0], std::byte{5});
  EXPECT_EQ(take(first->map(1, block.offset, 1)).data(), seen.data());
  expect_error(third->map(1), transport_errc::gone, {"node 1", "left"});
  first->unmap(1);
  expect_error(first->map(1), transport_errc::gone, {"node 1", "left"});
}

TEST_F(world_test, never_uses_a_number_twice) {
  auto first = take(come(2));
  std::set<std::uint32_t> pes{0, 1};
  for (std::uint32_t i = 1; i <= 20; ++i) {
    auto next = take(come(2));
    EXPECT_EQ(next->node(), i);
    EXPECT_TRUE(pes.insert(next->first_pe()).second);
    EXPECT_TRUE(pes.insert(next->first_pe() + 1).second);
  }
  EXPECT_EQ(first->pe_limit(), 42U);
  EXPECT_EQ(first->state(3), node_state::left);
}

TEST_F(world_test, says_so_when_all_its_places_are_in_use) {
  auto first = take(come(max_pes - 3));
  auto second = take(come(2));
  expect_error(come(2), transport_errc::full, {"4095 of its 4096 places for PEs", "new world"});
  auto last = take(come(1));
  EXPECT_EQ(last->first_pe(), max_pes - 1);
  EXPECT_EQ(first->pe_node(max_pes - 1), 2U);
  EXPECT_EQ(first->pe_node(max_pes), no_node);
  first->publish_ring(max_pes - 1, 0, 64);
  EXPECT_EQ(last->ring_offset(max_pes - 1, 0), 64U);
  expect_error(come(1), transport_errc::full, {"4096 of its 4096"});
}

TEST_F(world_test, refuses_what_cannot_be) {
  expect_error(shm_world::create(config(0)), transport_errc::bad_argument, {"at least 1"});
  expect_error(shm_world::create(config(max_pes + 1)), transport_errc::bad_argument, {"4097", "4096"});
  auto many = config(0x8000'0000);
  many.nodes = 0x8000'0000;
  expect_error(shm_world::create(many), transport_errc::bad_argument, {"2147483648"});
  many = config(64);
  many.nodes = 65;
  expect_error(shm_world::create(many), transport_errc::bad_argument, {"65 nodes with 64"});
  auto small = config();
  small.memory_limit = 5;
  expect_error(shm_world::create(small), transport_errc::bad_argument, {"5 bytes"});
  expect_error(shm_world::create_or_join("a b", config()), transport_errc::bad_argument, {"'a b'"});
}

TEST_F(world_test, is_open_to_the_same_build_only) {
  auto first = take(come());
  auto different = config();
  different.build_id = 8;
  different.program = "renewed";
  expect_error(shm_world::create_or_join("w", different), transport_errc::different_build,
               {"'tested'", "'renewed'", "0000000000000007", "0000000000000008"});
  EXPECT_EQ(first->node_limit(), 1U);
  auto good = take(come());
}

TEST_F(world_test, that_is_closed_is_joined_by_nobody_and_needs_a_free_name) {
  auto closed = config();
  closed.closed = true;
  {
    auto open = take(come());
    expect_error(shm_world::create_or_join("w", closed), transport_errc::refused, {"'w' runs on this host already"});
  }
  auto first = take(shm_world::create_or_join("w", closed));
  expect_error(come(), transport_errc::refused, {"'w' was started by an MPI launcher"});
  expect_error(shm_world::create_or_join("w", closed), transport_errc::refused, {"runs on this host already"});
  EXPECT_EQ(first->node_limit(), 1U);
  first.reset();
  first = take(shm_world::create_or_join("w", closed));
}

TEST_F(world_test, gathers_twenty_that_race_for_its_name) {
  std::vector<other> nodes;
  for (int i = 0; i < 20; ++i) {
    nodes.emplace_back([&](link& l) {
      (void)l.hear();
      auto world = come(1);
      if (!world) {
        l.say(world.error().message);
        return 1;
      }
      for (std::uint32_t n = 0; n < 20; ++n) {
        for (;;) {
          const std::uint32_t epoch = (*world)->epoch();
          if ((*world)->alive(n)) break;
          (*world)->wait_epoch(epoch, -1);
        }
      }
      l.say(line_of(**world));
      (void)l.hear();
      return 0;
    });
  }
  for (other& n : nodes) n.say("go");
  std::set<std::string> lines;
  std::set<std::string> nonces;
  for (other& n : nodes) {
    const std::string line = n.hear();
    lines.insert(line);
    nonces.insert(line.substr(0, line.find(' ')));
  }
  EXPECT_EQ(nonces.size(), 1U) << *lines.begin();
  EXPECT_EQ(lines.size(), 20U) << "every node and PE number is different";
  for (other& n : nodes) n.say("leave");
  for (other& n : nodes) EXPECT_EQ(n.wait(), 0);
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, survives_many_that_come_go_and_are_killed) {
  // A node that gets in must find a whole world; one that is killed must keep nobody out.
  std::vector<other> nodes;
  for (unsigned i = 0; i < 6; ++i) {
    nodes.emplace_back([&, i](link& l) {
      std::minstd_rand random{i + 1};
      for (int turn = 0; turn < 60; ++turn) {
        auto world = come(1);
        if (!world) {
          // The numbers of a world may run out; nothing else may go wrong.
          if (world.error().code == transport_errc::full) continue;
          l.say(world.error().message);
          return 1;
        }
        if ((*world)->pe_node((*world)->first_pe()) != (*world)->node() || !(*world)->alive((*world)->node())) {
          l.say("a node is not in the tables");
          return 1;
        }
        const std::uint32_t first = 0;
        auto mapped = (*world)->map(first);
        if (!mapped && mapped.error().code != transport_errc::gone) {
          l.say(mapped.error().message);
          return 1;
        }
      }
      l.say("done");
      return 0;
    });
  }
  std::vector<other> victims;
  for (int i = 0; i < 25; ++i) {
    victims.emplace_back([&](link& l) {
      l.say("up");
      for (;;) (void)come(1);
      return 0;
    });
    EXPECT_EQ(victims.back().hear(), "up");
    if (i >= 3) {
      victims[static_cast<std::size_t>(i) - 3].kill();
      victims[static_cast<std::size_t>(i) - 3].wait();
    }
  }
  victims.clear();
  for (other& n : nodes) EXPECT_EQ(n.hear(), "done");
  nodes.clear();
  (void)take(remove_stale_worlds(directory.path()));
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, of_a_killed_creator_is_made_anew) {
  std::uint64_t old = 0;
  {
    other child = node_elsewhere();
    EXPECT_EQ(child.hear(), "0");
    old = take(come())->nonce();
    child.kill();  // and not reaped: a zombie must not count
    while (find_peer(child.pid())) std::this_thread::yield();
    auto world = take(come());
    EXPECT_TRUE(world->is_first());
    EXPECT_NE(world->nonce(), old);
  }
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, replaces_a_file_that_means_nothing) {
  std::ofstream{directory.file("w")} << "garbage";
  ASSERT_EQ(::chmod(directory.file("w").c_str(), 0600), 0);
  EXPECT_TRUE(take(come())->is_first());
  // A creator that runs, and a descriptor that is no world.
  auto door = take(rendezvous::enter("w", directory.path(), std::chrono::seconds{10}));
  take(door->write({take(this_peer()), 0, 5, pid_namespace()}));
  door.reset();
  EXPECT_TRUE(take(come())->is_first());
}

TEST_F(world_test, says_so_when_a_file_that_means_nothing_cannot_be_removed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  const std::string file = directory.path() + "/orrery-65534-w";
  std::ofstream{file} << "garbage";
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  ASSERT_EQ(::chown(file.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  other child{[&](link& l) {
    testing::become_nobody();
    const auto world = come();
    l.say(!world && world.error().code == transport_errc::refused ? world.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("cannot be removed"), std::string::npos);
}

TEST_F(world_test, leaves_nothing_behind_when_it_ends) {
  {
    auto first = take(come());
    auto second = take(come());
    EXPECT_FALSE(directory.empty());
    first->end_world();
    EXPECT_EQ(second->state(), world_state::ending);
    EXPECT_TRUE(directory.empty());
    auto anew = take(come());
    EXPECT_TRUE(anew->is_first()) << "the name is free at once";
    second->leave();
    EXPECT_FALSE(directory.empty()) << "a node of the old world removed the file of the new one";
    second->end_world();
    EXPECT_FALSE(directory.empty());
    EXPECT_EQ(anew->state(), world_state::running);
  }
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, is_ended_by_any_node) {
  auto first = take(come());
  auto second = take(come());
  second->end_world();
  EXPECT_EQ(first->state(), world_state::ending);
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, wakes_a_sleeping_pe_of_another_node_when_it_ends) {
  auto world = take(come(1));
  other child{[&](link& l) {
    auto mine = take(come(1));
    doorbell& bell = mine->bell(mine->first_pe());
    const std::uint32_t seen = bell.futex.load();
    bell.sleeping.store(1);
    fence_heavy();
    l.say("sleeping");
    while (mine->state() == world_state::running) futex_wait(bell.futex, seen, -1, true);
    l.say("woken");
    return 0;
  }};
  EXPECT_EQ(child.hear(), "sleeping");
  world->end_world();
  EXPECT_EQ(child.hear(), "woken");
}

TEST_F(world_test, wakes_a_sleeping_pe_when_a_ring_is_published) {
  auto world = take(come(1));
  other child{[&](link& l) {
    auto mine = take(come(1));
    doorbell& bell = mine->bell(1);
    const std::uint32_t seen = bell.futex.load();
    bell.sleeping.store(1);
    fence_heavy();
    l.say("sleeping");
    while (bell.announce.load() == 0) futex_wait(bell.futex, seen, -1, true);
    l.say(std::to_string(mine->ring_offset(1, 0).value_or(0)));
    return 0;
  }};
  EXPECT_EQ(child.hear(), "sleeping");
  world->publish_ring(1, 0, 4096);
  EXPECT_EQ(child.hear(), "4096");
}

// Memory that it may read is used again only when it has ended: it goes through all of this in this
// order, whatever else happens.
TEST_F(world_test, a_node_that_is_leaving_answers_and_has_not_ended) {
  auto first = take(come());
  auto second = take(come());
  const auto seen = [&](node_state s, bool answers, bool ended) {
    return first->state(1) == s && first->answers(1) == answers && first->has_ended(1) == ended;
  };
  EXPECT_FALSE(first->has_ended(7)) << "it never was there";
  EXPECT_TRUE(seen(node_state::alive, true, false));
  second->begin_leave();
  second->begin_leave();
  EXPECT_TRUE(seen(node_state::leaving, true, false));
  EXPECT_TRUE(first->map(1, 0, layout::page)) << "its answers can still be read";
  second->leave();
  second->leave();
  second->begin_leave();
  EXPECT_TRUE(seen(node_state::left, false, true));
  auto third = take(come());
  third->begin_leave();
  EXPECT_TRUE(first->mark_dead(2)) << "it was killed while it left";
  EXPECT_TRUE(first->has_ended(2));
}

TEST_F(world_test, the_first_node_ends_it_when_it_begins_to_leave) {
  auto first = take(come());
  auto second = take(come());
  first->begin_leave();
  EXPECT_EQ(second->state(), world_state::ending);
  EXPECT_TRUE(directory.empty()) << "the name is free";
  EXPECT_TRUE(second->answers(0));
  first->leave();
  EXPECT_TRUE(second->has_ended(0));
}

TEST_F(world_test, counts_every_change_of_its_membership) {
  auto first = take(come());
  std::uint32_t epoch = first->epoch();
  EXPECT_FALSE(first->wait_epoch(epoch, now_ns()));
  const auto changed = [&] { return std::exchange(epoch, first->epoch()) != first->epoch(); };
  auto second = take(come());
  EXPECT_TRUE(first->wait_epoch(epoch, -1));
  EXPECT_TRUE(changed());
  second->begin_leave();
  EXPECT_EQ(first->state(1), node_state::leaving);
  EXPECT_TRUE(changed());
  second->leave();
  EXPECT_EQ(first->state(1), node_state::left);
  EXPECT_TRUE(changed());
  EXPECT_FALSE(first->mark_dead(1)) << "it has left";
  EXPECT_FALSE(changed());
  auto third = take(come());
  EXPECT_TRUE(changed());
  EXPECT_TRUE(first->mark_dead(2));
  EXPECT_FALSE(third->mark_dead(2)) << "once";
  EXPECT_TRUE(changed());
  EXPECT_EQ(third->state(2), node_state::dead);
  third->leave();
  EXPECT_EQ(first->state(2), node_state::dead) << "the dead stay dead";
}

TEST_F(world_test, reserves_numbers_for_nodes_that_are_yet_to_be_launched) {
  auto four = config(2);
  four.nodes = 4;
  auto first = take(shm_world::create_or_join("w", four));
  EXPECT_EQ(first->reserved_nodes(), 4U);
  EXPECT_EQ(first->node_limit(), 4U);
  EXPECT_EQ(first->pe_limit(), 8U);
  EXPECT_EQ(first->pe_node(7), 3U);
  EXPECT_EQ(first->state(3), node_state::reserved);
  expect_error(first->map(3), transport_errc::gone, {"node 3", "reserved"});
  auto joiner = take(come(1));
  EXPECT_EQ(joiner->node(), 4U);
  EXPECT_EQ(joiner->first_pe(), 8U);

  auto launched = take(shm_world::join_inherited(::dup(first->world_fd()), 2, config(2)));
  EXPECT_EQ(launched->node(), 2U);
  EXPECT_EQ(launched->first_pe(), 4U);
  EXPECT_EQ(launched->pe_count(), 2U);
  EXPECT_EQ(launched->name(), "w");
  EXPECT_TRUE(first->alive(2));
  EXPECT_EQ(first->info(2).launcher, 0U);
}

TEST_F(world_test, gives_a_reserved_number_to_nobody_else) {
  auto two = config(1);
  two.nodes = 2;
  auto first = take(shm_world::create_or_join("w", two));
  const auto join = [&](std::uint32_t node) {
    return shm_world::join_inherited(::dup(first->world_fd()), node, config(1));
  };
  expect_error(join(0), transport_errc::bad_argument, {"number 0", "ORRERY_INTERNAL_JOIN"});
  expect_error(join(2), transport_errc::bad_argument, {"number 2"});
  expect_error(join(max_nodes + 5), transport_errc::bad_argument, {"number 4101"});
  EXPECT_TRUE(first->mark_started(1, {1, 1}));
  expect_error(join(1), transport_errc::ended, {"pid 1 "});
  expect_error(shm_world::join_inherited(999, 1, config(1)), transport_errc::system, {"not open"});
  const unique_fd null{::open("/dev/null", O_RDWR)};
  EXPECT_FALSE(shm_world::join_inherited(::dup(null.get()), 1, config(1)));
}

TEST_F(world_test, gives_up_numbers_that_a_dead_launcher_had_reserved) {
  auto first = take(come(1));
  auto three = config(1);
  three.nodes = 3;
  auto launcher = take(shm_world::create_or_join("w", three));
  EXPECT_EQ(first->state(3), node_state::reserved);
  EXPECT_TRUE(first->mark_dead(1));
  EXPECT_EQ(first->state(2), node_state::dead);
  EXPECT_EQ(first->state(3), node_state::dead);
  expect_error(shm_world::join_inherited(::dup(first->world_fd()), 2, config(1)), transport_errc::ended,
               {"node 1", "has ended"});
}

TEST_F(world_test, that_is_damaged_is_refused) {
  auto first = take(come());
  tables t{*first};
  auto& head = t.table.head();
  const auto refused_with = [&](auto& field, auto value, transport_errc code, const char* word) {
    const auto before = field;
    field = value;
    expect_error(come(), code, {word});
    field = before;
  };
  refused_with(head.magic, std::uint64_t{5}, transport_errc::damaged, "not a world");
  refused_with(head.version, 99U, transport_errc::different_build, "layout 99");
  refused_with(head.bytes, std::uint64_t{5}, transport_errc::damaged, "damaged");
  refused_with(head.uid, 4711U, transport_errc::damaged, "damaged");
  refused_with(head.nonce, std::uint64_t{5}, transport_errc::damaged, "not the one");
  const std::uint64_t numbers = head.numbers.exchange(~std::uint64_t{0});
  expect_error(come(), transport_errc::damaged, {"damaged"});
  EXPECT_EQ(first->node_limit(), max_nodes);
  EXPECT_EQ(first->pe_limit(), max_pes);
  head.numbers = numbers;
  EXPECT_EQ(take(come())->node(), 1U);
}

TEST_F(world_test, refuses_the_memory_of_a_node_whose_entry_is_wrong) {
  auto first = take(come());
  auto second = take(come());
  auto third = take(come());
  tables t{*first};
  auto& entry = t.table.entry(1);
  const int fd = entry.segment_fd;
  entry.segment_fd = 1000;
  expect_error(first->map(1), transport_errc::damaged, {"/fd/1000"});
  entry.segment_fd = second->world_fd();
  expect_error(first->map(1), transport_errc::damaged, {"node 1"});
  entry.segment_fd = t.table.entry(2).segment_fd.load();
  expect_error(first->map(1), transport_errc::damaged, {"node 1", "not what its entry says"});
  entry.segment_fd = fd;
  const std::uint64_t bytes = entry.segment_bytes.exchange(4096);
  expect_error(first->map(1), transport_errc::damaged, {"4096"});
  entry.segment_bytes = bytes;
  const std::uint64_t start = entry.start_time.exchange(5);
  expect_error(first->map(1), transport_errc::gone, {"has ended"});
  entry.start_time = start;
  const int pid = entry.pid.exchange(-5);
  expect_error(first->map(1), transport_errc::gone, {"-5"});
  entry.pid = pid;
  (void)take(first->map(1));
}

TEST_F(world_test, believes_no_number_of_tables_that_hold_noise) {
  auto first = take(come());
  tables t{*first};
  std::minstd_rand random{42};
  const auto noise = [&](std::uint64_t at, std::uint64_t bytes) {
    take(t.memory.back(at / 4096 * 4096, (bytes + 4095) / 4096 * 4096));
    for (std::uint64_t i = 0; i < bytes; ++i) t.memory.data()[at + i] = static_cast<std::byte>(random());
  };
  for (int round = 0; round < 20; ++round) {
    noise(layout::nodes_at, 64 * sizeof(layout::node_entry));
    noise(layout::pe_nodes_at, 4096);
    noise(offsetof(layout::world_header, numbers), 8);
    noise(offsetof(layout::world_header, state), 4);
    noise(offsetof(layout::world_header, name), 96);
    EXPECT_LE(first->node_limit(), max_nodes);
    EXPECT_LE(first->pe_limit(), max_pes);
    for (std::uint32_t pe = 0; pe < 1024; ++pe) {
      const std::uint32_t node = first->pe_node(pe);
      EXPECT_TRUE(node == no_node || place_of(node) < first->node_limit());
    }
    for (std::uint32_t n = 0; n < 64; ++n) {
      const node_info info = first->info(n);
      EXPECT_LE(place_of(info.first_pe) + info.pe_count, max_pes);
      EXPECT_LT(info.program.size(), 33U);
      EXPECT_TRUE(info.state <= node_state::dead);
      EXPECT_TRUE(n == 0 || !first->map(n));
    }
    EXPECT_LE(t.table.name().size(), 64U);
    EXPECT_FALSE(come().has_value());
    (void)first->mark_dead(5);
    first->kick_self();
  }
}

TEST_F(world_test, fails_cleanly_whatever_system_call_fails) {
  // UBSan opens a pipe where it meets an object of a class for the first time. It meets them here,
  // where pipes can be had.
  EXPECT_TRUE(come());
  struct fault {
    const char* name;
    long call;
    int error;
    transport_errc code;
  };
  for (const fault& f : {fault{"memfd_create", SYS_memfd_create, EMFILE, transport_errc::no_space},
                         fault{"fchmod", SYS_fchmod, EPERM, transport_errc::refused},
                         fault{"ftruncate", SYS_ftruncate, ENOMEM, transport_errc::no_space},
                         fault{"fallocate", SYS_fallocate, ENOSPC, transport_errc::no_space},
                         fault{"pipe2", SYS_pipe2, ENFILE, transport_errc::no_space},
                         fault{"getrandom", SYS_getrandom, ENOSYS, transport_errc::system},
                         fault{"pwrite", SYS_pwrite64, ENOSPC, transport_errc::no_space},
                         fault{"flock", SYS_flock, ENOLCK, transport_errc::system}}) {
    other child{[&](link& l) {
      // The text of the error is the only thing that may be written.
      testing::fail_system_call(f.call, f.error);
      auto world = come();
      l.say(!world && world.error().code == f.code ? "good" : world ? "none" : world.error().message);
      return 0;
    }};
    EXPECT_EQ(child.hear(), "good") << f.name;
    child.wait();
    // Where flock fails the file cannot be removed either.
    EXPECT_TRUE(f.call == SYS_flock || directory.empty()) << f.name;
  }
}

TEST_F(world_test, keeps_its_nodes_when_one_cannot_join_for_lack_of_memory) {
  auto first = take(come());
  for (const auto& [call, error] :
       {std::pair{SYS_fallocate, ENOSPC}, {SYS_memfd_create, EMFILE}, {SYS_pipe2, EMFILE}}) {
    other child{[&](link& l) {
      testing::fail_system_call(call, error);
      auto world = come();
      l.say(!world && world.error().code == transport_errc::no_space ? "good" : "wrong");
      return 0;
    }};
    EXPECT_EQ(child.hear(), "good");
  }
  for (std::uint32_t n = 1; n < first->node_limit(); ++n) EXPECT_FALSE(first->alive(n));
  EXPECT_TRUE(take(come())->alive(0));
}

TEST_F(world_test, needs_room_for_its_tables) {
  other child{[&](link& l) {
    const rlimit limit{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto world = come();
    l.say(!world && world.error().code == transport_errc::no_space ? world.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("ulimit -f"), std::string::npos);
  EXPECT_EQ(child.wait(), 0);
  EXPECT_TRUE(directory.empty());
}

TEST_F(world_test, of_another_container_is_refused_while_it_lives_and_replaced_afterwards) {
  const auto contained = [&](link& l, auto&& body) {
    if (::unshare(CLONE_NEWPID) != 0) {
      l.say("no namespace");
      return 0;
    }
    const pid_t inner = ::fork();
    if (inner == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
          ::mount("proc", "/proc", "proc", 0, nullptr) != 0) {
        l.say("no namespace");
        ::_exit(0);
      }
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(inner, &status, 0);
    return 0;
  };
  auto world = take(come());
  {
    other child{[&](link& l) {
      return contained(l, [&] {
        auto mine = come();
        l.say(!mine && mine.error().code == transport_errc::refused ? mine.error().message : "wrong");
      });
    }};
    const std::string said = child.hear();
    if (said == "no namespace") GTEST_SKIP() << "this user may not make namespaces";
    EXPECT_NE(said.find("container"), std::string::npos) << said;
  }
  world.reset();
  other child{[&](link& l) {
    return contained(l, [&] {
      auto mine = come();
      l.say(mine && (*mine)->is_first() ? "up" : "wrong");
      (void)l.hear();
      mine->release();  // as if it was killed
    });
  }};
  EXPECT_EQ(child.hear(), "up");
  expect_error(come(), transport_errc::refused, {"container"});
  child.say("die");
  child.wait();
  EXPECT_TRUE(take(come())->is_first());
}

TEST_F(world_test, lets_no_other_user_in) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  other child{[&](link& l) {
    testing::become_nobody();
    auto world = come();
    l.say(world ? "up" : world.error().message);
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(child.hear(), "up");
  // Names are per user, so only who makes the file of another by hand gets to see this.
  std::filesystem::copy(directory.path() + "/orrery-65534-w", directory.file("w"));
  ASSERT_EQ(::chmod(directory.file("w").c_str(), 0600), 0);
  expect_error(come(), transport_errc::foreign_owner, {"belongs to user 65534"});
}

}  // namespace world_tests
}  // namespace orrery::transport
