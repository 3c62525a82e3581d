// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/launch.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/world.hpp>

#include <atomic>
#include <set>
#include <thread>

#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace orrery::transport {
namespace launch_tests {

using std::chrono::milliseconds;
using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

constexpr milliseconds for_ever = milliseconds::max();
constexpr const char* role_variable = "ORRERY_TEST_ROLE";

world_config config(std::uint32_t nodes, std::uint32_t pes = 2) {
  world_config c;
  c.pe_count = pes;
  c.nodes = nodes;
  c.build_id = 7;
  c.program = "launched";
  c.memory_limit = 1 << 20;
  return c;
}

/// Ends the OS process when the world is lost.
struct leaver final : membership_observer {
  void node_joined(std::uint32_t) noexcept override {}
  void node_left(std::uint32_t) noexcept override {}
  void node_lost(std::uint32_t, std::string_view) noexcept override {}
  void world_ending() noexcept override {}
  void world_lost(std::string_view) noexcept override { ::_exit(9); }
};

/// The work of this program when one of the tests below launched it as a node.
int run_as_node(const std::string& role) {
  ::alarm(100);
  ::prctl(PR_SET_PDEATHSIG, role == "survive" ? 0 : SIGKILL);
  if (role == "refuse") return 5;
  if (role == "sleep") return ::pause();
  const auto inherited = take_inherited_world();
  if (!inherited || !*inherited) return 6;
  if (std::getenv("ORRERY_INTERNAL_JOIN") != nullptr) return 7;
  auto world = shm_world::join_inherited((*inherited)->fd, (*inherited)->node, config(1));
  if (!world) {
    std::fprintf(stderr, "%s\n", world.error().message.c_str());
    return 8;
  }
  shm_world& w = **world;
  if (role == "look") {
    struct stat input{};
    struct stat null{};
    const bool no_input = ::fstat(0, &input) == 0 && ::stat("/dev/null", &null) == 0 && input.st_rdev == null.st_rdev;
    w.counters(w.first_pe())[0].store(no_input ? 1 : 2);
    w.counters(w.first_pe())[1].store(static_cast<std::uint64_t>(::fcntl(w.world_fd(), F_GETFD)));
  }
  if (role == "fail" && w.node() == 2) ::_exit(4);
  leaver observer;
  auto monitor = take(membership_monitor::start(w, observer));
  for (std::uint32_t epoch = w.epoch(); w.state() == world_state::running; epoch = w.epoch()) w.wait_epoch(epoch, -1);
  monitor.reset();
  w.leave();
  return role == "fail" ? 0 : static_cast<int>(w.node());
}

// Before main: a launched node is this program with the arguments of the test that launched it.
const bool is_node = [] {
  if (const char* role = std::getenv(role_variable)) ::_exit(run_as_node(role));
  return false;
}();

class launch_test : public testing::shm_test {
 protected:
  void TearDown() override {
    ::unsetenv(role_variable);
    shm_test::TearDown();
  }
  static auto start(shm_world& world, const char* role) {
    ::setenv(role_variable, role, 1);
    return node_launcher::start(world);
  }
};

TEST_F(launch_test, starts_nodes_with_numbers_that_are_known_before) {
  auto world = take(shm_world::create(config(4)));
  auto nodes = take(start(*world, "look"));
  EXPECT_EQ(nodes->running(), 3U);
  take(nodes->wait_for_nodes(for_ever));
  for (std::uint32_t n = 0; n < 4; ++n) {
    const node_info info = world->info(n);
    EXPECT_EQ(info.state, node_state::alive);
    EXPECT_EQ(info.first_pe, 2 * n);
    EXPECT_EQ(info.pe_count, 2U);
    EXPECT_EQ(info.launcher, 0U);
    EXPECT_EQ(world->pe_node(2 * n + 1), n);
    (void)take(world->map(n));
  }
  world->end_world();
  const auto ended = nodes->wait_for_exit(for_ever);
  ASSERT_EQ(ended.size(), 3U);
  for (std::uint32_t n = 1; n < 4; ++n) {
    EXPECT_EQ(ended[n - 1].node, n);
    EXPECT_FALSE(ended[n - 1].killed);
    EXPECT_EQ(ended[n - 1].value, static_cast<int>(n));
    EXPECT_EQ(ended[n - 1].how, "exited with status " + std::to_string(n));
    EXPECT_EQ(world->state(n), node_state::left);
    EXPECT_EQ(world->counters(2 * n)[0].load(), 1U) << "standard input is not /dev/null";
    EXPECT_EQ(world->counters(2 * n)[1].load(), FD_CLOEXEC);
  }
  EXPECT_EQ(nodes->running(), 0U);
  EXPECT_TRUE(nodes->wait_for_exit(for_ever).empty()) << "each is reported once";
}

TEST_F(launch_test, has_nothing_to_do_for_one_node) {
  auto world = take(shm_world::create(config(1)));
  auto nodes = take(start(*world, "refuse"));
  take(nodes->wait_for_nodes(milliseconds{0}));
  EXPECT_TRUE(nodes->wait_for_exit(milliseconds{0}).empty());
}

TEST_F(launch_test, reports_a_node_that_ends_before_it_joins) {
  auto world = take(shm_world::create(config(3)));
  auto nodes = take(start(*world, "refuse"));
  expect_error(nodes->wait_for_nodes(for_ever), transport_errc::gone, {"exited with status 5 before it had joined"});
  (void)nodes->wait_for_exit(for_ever);
  EXPECT_EQ(world->state(1), node_state::dead);
  EXPECT_EQ(world->state(2), node_state::dead);
}

TEST_F(launch_test, reports_a_node_that_does_not_join_in_time) {
  auto world = take(shm_world::create(config(2)));
  auto nodes = take(start(*world, "sleep"));
  expect_error(nodes->wait_for_nodes(milliseconds{30}), transport_errc::timed_out,
               {"1 of 2 nodes", "node 1", "30 ms", "--orrery-startup-timeout"});
}

TEST_F(launch_test, starts_no_further_nodes_when_the_time_is_over_and_ends_the_world) {
  auto world = take(shm_world::create(config(20)));
  ::setenv(role_variable, "sleep", 1);
  expect_error(node_launcher::start(*world, {}, milliseconds{0}), transport_errc::timed_out,
               {"only 2 of 20 nodes", "0 ms", "--orrery-startup-timeout"});
  EXPECT_NE(world->state(), world_state::running);
  for (std::uint32_t n = 1; n < 20; ++n) EXPECT_EQ(world->state(n), node_state::dead);
}

TEST_F(launch_test, reports_how_each_node_ended) {
  auto world = take(shm_world::create(config(4)));
  auto nodes = take(start(*world, "fail"));
  auto ended = nodes->wait_for_exit(milliseconds{0});
  while (ended.empty()) ended = nodes->wait_for_exit(milliseconds{10});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].node, 2U);
  EXPECT_EQ(ended[0].how, "exited with status 4");
  EXPECT_FALSE(ended[0].ok());
  EXPECT_EQ(world->state(2), node_state::dead);
  while (!world->alive(1) || !world->alive(3)) std::this_thread::yield();
  ::kill(world->info(3).id.pid, SIGKILL);
  ended = nodes->wait_for_exit(milliseconds{0});
  while (ended.empty()) ended = nodes->wait_for_exit(milliseconds{10});
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].node, 3U);
  EXPECT_TRUE(ended[0].killed);
  EXPECT_EQ(ended[0].how, "was killed by signal 9 (Killed)");
  EXPECT_TRUE(world->alive(1));
  world->end_world();
  ended = nodes->wait_for_exit(for_ever);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_TRUE(ended[0].ok());
}

TEST_F(launch_test, kills_what_it_started_when_it_goes) {
  auto world = take(shm_world::create(config(3)));
  auto nodes = take(start(*world, "stay"));
  take(nodes->wait_for_nodes(for_ever));
  const peer first = take(peer::open(world->info(1).id));
  const peer second = take(peer::open(world->info(2).id));
  nodes.reset();
  EXPECT_FALSE(first.running());
  EXPECT_FALSE(second.running());
  EXPECT_EQ(world->state(1), node_state::dead);
}

TEST_F(launch_test, leaves_no_node_behind_when_the_launcher_is_killed) {
  other launcher{[](link& l) {
    auto world = take(shm_world::create(config(4)));
    auto nodes = take(start(*world, "survive"));
    take(nodes->wait_for_nodes(for_ever));
    for (std::uint32_t n = 1; n < 4; ++n) {
      l.say(std::to_string(world->info(n).id.pid));
      l.say(std::to_string(world->info(n).id.start_time));
    }
    (void)l.hear();
    return 0;
  }};
  std::vector<peer> nodes;
  for (int i = 0; i < 3; ++i) {
    const pid_t pid = std::stoi(launcher.hear());
    const std::uint64_t start_time = std::stoull(launcher.hear());
    nodes.push_back(take(peer::open({pid, start_time})));
    EXPECT_TRUE(nodes.back().running());
  }
  launcher.kill();
  for (const peer& n : nodes) {
    pollfd p{.fd = n.fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&p, 1, -1), 1);
  }
}

TEST_F(launch_test, works_when_the_program_ignores_its_children) {
  auto world = take(shm_world::create(config(3)));
  const auto before = ::signal(SIGCHLD, SIG_IGN);
  auto nodes = take(start(*world, "stay"));
  take(nodes->wait_for_nodes(for_ever));
  world->end_world();
  const auto ended = nodes->wait_for_exit(for_ever);
  ::signal(SIGCHLD, before);
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].value, 0);
  EXPECT_EQ(ended[0].how, "ended");
  EXPECT_EQ(world->state(1), node_state::left);
}

TEST_F(launch_test, works_for_a_node_that_joined_a_named_world) {
  const testing::scratch_directory directory;
  auto here = config(1, 1);
  here.rendezvous_dir = directory.path();
  auto first = take(shm_world::create_or_join("w", here));
  here.nodes = 3;
  auto joiner = take(shm_world::create_or_join("w", here));
  EXPECT_EQ(joiner->node(), 1U);
  auto nodes = take(start(*joiner, "stay"));
  take(nodes->wait_for_nodes(for_ever));
  EXPECT_TRUE(first->alive(2));
  EXPECT_TRUE(first->alive(3));
  EXPECT_EQ(first->info(3).launcher, 1U);
  first->end_world();
  EXPECT_EQ(nodes->wait_for_exit(for_ever).size(), 2U);
}

TEST_F(launch_test, says_so_when_no_os_process_can_be_started) {
  other child{[](link& l) {
    auto world = take(shm_world::create(config(3)));
    testing::fail_system_call(SYS_clone3, EAGAIN);
    testing::fail_system_call(SYS_clone, EAGAIN);
    testing::fail_system_call(SYS_vfork, EAGAIN);
    const auto nodes = start(*world, "stay");
    l.say(nodes ? "wrong" : nodes.error().message);
    l.say(std::string{to_string(world->state(1))} + ' ' + std::string{to_string(world->state(2))});
    return 0;
  }};
  EXPECT_NE(child.hear().find("node 1 cannot be started"), std::string::npos);
  EXPECT_EQ(child.hear(), "dead dead");
}

TEST_F(launch_test, knows_when_it_was_not_launched_and_refuses_nonsense) {
  EXPECT_FALSE(take(take_inherited_world()));
  for (const char* bad : {"", "3", "3:", ":1", "3:x", "x:1", "3:1 ", "-1:1", "2:1", "3:-1", "3:4294967295",
                          "3:99999999999", "99999999999:1"}) {
    ::setenv("ORRERY_INTERNAL_JOIN", bad, 1);
    expect_error(take_inherited_world(), transport_errc::bad_argument, {"ORRERY_INTERNAL_JOIN", "unset it"});
    EXPECT_EQ(std::getenv("ORRERY_INTERNAL_JOIN"), nullptr);
  }
  ::setenv("ORRERY_INTERNAL_JOIN", "17:3", 1);
  ::prctl(PR_SET_NAME, "exe");  // as a launched process begins
  const auto good = take(take_inherited_world());
  ASSERT_TRUE(good);
  EXPECT_EQ(good->fd, 17);
  EXPECT_EQ(good->node, 3U);
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data());
  EXPECT_EQ(std::string_view{name.data()}, std::string_view{program_invocation_short_name}.substr(0, 15)) << "for ps";
  EXPECT_FALSE(take(take_inherited_world())) << "it is asked once";
}

}  // namespace launch_tests
}  // namespace orrery::transport
