// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/machines.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace orrery {
namespace machines_tests {

using testing::in_simulation;
using testing::in_world;

std::uint32_t own_machine() { return this_machine(); }

TEST(machines, of_a_world_on_threads_are_this_host) {
  in_world(2, [] {
    EXPECT_EQ(machine_names(), std::vector{transport::own_host()});
    const machine_state s = describe_machine(0);
    EXPECT_EQ(s.number, 0);
    EXPECT_EQ(s.name, transport::own_host());
    EXPECT_EQ(s.pes, (std::vector{0U, 1U}));
    EXPECT_EQ(s.nodes, std::vector{0U});
    EXPECT_TRUE(s.system.starts_with("Linux ")) << s.system;
    EXPECT_GE(s.memory, s.free_memory);
    EXPECT_GT(s.free_memory, 0);
    EXPECT_EQ(call<&own_machine>(machine(transport::own_host())), 0);
  });
}
TEST(machines, have_the_file_systems_on_which_files_can_be) {
  in_world(1, [] {
    const machine_state s = describe_machine(0);
    ASSERT_FALSE(s.file_systems.empty());
    EXPECT_EQ(s.cores, static_cast<std::uint32_t>(::sysconf(_SC_NPROCESSORS_ONLN)));
    EXPECT_TRUE(std::ranges::is_sorted(s.file_systems, {}, &file_system::folder));
    for (const file_system& f : s.file_systems) {
      EXPECT_EQ(f.folder.find('/'), 0) << f.folder;
      EXPECT_GE(f.bytes, f.free_bytes) << f.folder;
      EXPECT_NE(f.bytes, 0) << f.folder;
      EXPECT_NE(f.type, "proc");
    }
  });
}
TEST(machines, of_a_simulation_have_numbered_names_and_their_own_pes) {
  in_simulation("machines=3,nodes=2,pes=2", [] {
    const std::string host = transport::own_host();
    EXPECT_EQ(machine_names(), (std::vector{host, host + "#2", host + "#3"}));
    const machine_state s = describe_machine(1);
    EXPECT_EQ(s.name, host + "#2");
    EXPECT_EQ(s.nodes, (std::vector{2U, 3U}));
    EXPECT_EQ(s.pes, (std::vector{4U, 5U, 6U, 7U}));
    EXPECT_EQ(s.cores, 4);
    for (std::uint32_t m = 0; m < 3; ++m) EXPECT_EQ(call<&own_machine>(machine(machine_names()[m])), m);
  });
}
TEST(machines, are_found_by_the_first_part_of_their_names) {
  const std::vector<std::string> names{"a.x.org", "b.x.org", "b"};
  EXPECT_EQ(detail::find_machine(names, "a"), 0);
  EXPECT_EQ(detail::find_machine(names, "b"), 2);
  EXPECT_EQ(detail::find_machine(names, "b.x.org"), 1);
  EXPECT_FALSE(detail::find_machine(names, "b.x"));
  EXPECT_FALSE(detail::find_machine(names, ""));
}
TEST(machines, that_are_not_there_are_refused_with_the_names_of_those_that_are) {
  in_simulation("machines=2", [] {
    const std::string host = transport::own_host();
    try {
      (void)machine("no-such-host");
      ADD_FAILURE() << "it was found";
    } catch (const usage_error& e) {
      EXPECT_EQ(e.code(), errc::no_such_place);
      EXPECT_NE(std::string(e.what()).find("machine(\"no-such-host\"): the machines of this world are " + host + ", " +
                                           host + "#2"),
                std::string::npos)
          << e.what();
    }
    EXPECT_THROW((void)describe_machine(2), usage_error);
  });
}

}  // namespace machines_tests
}  // namespace orrery
