// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/view.hpp>
#include <orrery/transport/shm/world.hpp>

#include <fstream>

#include <sys/stat.h>

namespace orrery::transport {
namespace view_tests {

using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;
using condition = world_info::condition;

class view_test : public testing::shm_test {
 protected:
  [[nodiscard]] world_config config(std::uint32_t pes = 2) const {
    return {.pe_count = pes,
            .build_id = 7,
            .program = "viewed",
            .memory_limit = 1 << 20,
            .rendezvous_dir = directory.path()};
  }
  testing::scratch_directory directory;
};

TEST_F(view_test, shows_a_world_without_being_a_member) {
  auto first = take(shm_world::create_or_join("a", config()));
  auto second = take(shm_world::create_or_join("a", config(3)));
  first->counters(1)[5].store(42);
  first->bell(0).sleeping.store(1);
  const world_view view = take(world_view::attach("a", directory.path()));
  EXPECT_EQ(view.name(), "a");
  EXPECT_EQ(view.program(), "viewed");
  EXPECT_EQ(view.build_id(), 7U);
  EXPECT_EQ(view.creator(), take(this_peer()));
  EXPECT_TRUE(view.creator_running());
  EXPECT_EQ(view.state(), world_state::running);
  EXPECT_EQ(view.node_limit(), 2U);
  EXPECT_EQ(view.pe_limit(), 5U);
  EXPECT_EQ(view.pe_node(4), 1U);
  EXPECT_EQ(view.pe_node(5), no_node);
  EXPECT_EQ(view.info(1).pe_count, 3U);
  EXPECT_EQ(view.counter(1, 5), 42U);
  EXPECT_TRUE(view.sleeping(0));
  EXPECT_FALSE(view.sleeping(1));
  EXPECT_EQ(first->node_limit(), 2U);
  const std::uint32_t epoch = view.epoch();
  second->leave();
  EXPECT_NE(view.epoch(), epoch);
  EXPECT_EQ(view.info(1).state, node_state::left);
  first->leave();
  EXPECT_EQ(view.state(), world_state::ending);
}

TEST_F(view_test, outlives_the_world) {
  other child{[&](link& l) {
    auto world = take(shm_world::create_or_join("a", config()));
    world->counters(0)[0].store(1);
    l.say("up");
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(child.hear(), "up");
  const world_view view = take(world_view::attach("a", directory.path()));
  child.kill();
  child.wait();
  EXPECT_FALSE(view.creator_running());
  EXPECT_EQ(view.counter(0, 0), 1U);
  EXPECT_EQ(view.info(0).state, node_state::alive) << "nobody was there to see it die";
  expect_error(world_view::attach("a", directory.path()), transport_errc::gone, {"has ended"});
}

TEST_F(view_test, finds_no_world_where_there_is_none) {
  expect_error(world_view::attach("none", directory.path()), transport_errc::not_found, {"'none'"});
  EXPECT_TRUE(directory.empty()) << "looking must not make anything";
}

TEST_F(view_test, lists_worlds_in_every_condition_and_removes_what_is_stale) {
  auto running = take(shm_world::create_or_join("running", config()));
  auto member = take(shm_world::create_or_join("running", config(3)));
  {
    other child{[&](link& l) {
      auto world = take(shm_world::create_or_join("killed", config()));
      l.say("up");
      (void)l.hear();
      return 0;
    }};
    EXPECT_EQ(child.hear(), "up");
  }
  std::ofstream{directory.file("garbage")} << "garbage";
  ASSERT_EQ(::chmod(directory.file("garbage").c_str(), 0600), 0);
  std::ofstream{directory.file("open")} << "";
  ASSERT_EQ(::chmod(directory.file("open").c_str(), 0644), 0);
  std::ofstream{directory.path() + "/orrery-999999-foreign"} << "";
  std::ofstream{directory.path() + "/unrelated"} << "";

  const auto worlds = take(list_worlds(directory.path()));
  ASSERT_EQ(worlds.size(), 4U);
  EXPECT_EQ(worlds[0].name, "garbage");
  EXPECT_EQ(worlds[0].state, condition::unreadable);
  EXPECT_EQ(worlds[1].name, "killed");
  EXPECT_EQ(worlds[1].state, condition::stale);
  EXPECT_NE(worlds[1].problem.find("has ended"), std::string::npos);
  EXPECT_EQ(worlds[2].name, "open");
  EXPECT_EQ(worlds[2].state, condition::unreadable);
  EXPECT_EQ(worlds[3].name, "running");
  EXPECT_EQ(worlds[3].state, condition::running);
  EXPECT_EQ(worlds[3].program, "viewed");
  EXPECT_EQ(worlds[3].nodes, 2U);
  EXPECT_EQ(worlds[3].pes, 5U);
  EXPECT_EQ(worlds[3].creator, take(this_peer()));

  EXPECT_EQ(take(remove_stale_worlds(directory.path())), 1U);
  EXPECT_FALSE(std::filesystem::exists(directory.file("killed")));
  EXPECT_TRUE(std::filesystem::exists(directory.file("running")));
  EXPECT_TRUE(std::filesystem::exists(directory.file("garbage")));
}

TEST_F(view_test, cannot_list_a_directory_that_is_not_there) {
  expect_error(list_worlds(directory.path() + "/none"), transport_errc::system, {"/none"});
}

}  // namespace view_tests
}  // namespace orrery::transport
