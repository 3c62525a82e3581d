// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/peer.hpp>

#include <poll.h>
#include <sys/resource.h>

namespace orrery::transport {
namespace peer_tests {

using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

class peer_test : public testing::shm_test {};

TEST_F(peer_test, finds_this_os_process) {
  EXPECT_EQ(find_peer(::getpid()), take(this_peer()));
  EXPECT_TRUE(take(peer::open(take(this_peer()))).running());
}

TEST_F(peer_test, is_not_fooled_by_a_command_name_that_looks_like_fields) {
  other child{[](link& l) {
    ::prctl(PR_SET_NAME, "x) Z 1 (y) ");
    l.say("ready");
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(child.hear(), "ready");
  const auto id = find_peer(child.pid());
  ASSERT_TRUE(id);
  EXPECT_GE(id->start_time, take(this_peer()).start_time);
  EXPECT_TRUE(take(peer::open(*id)).running());
}

TEST_F(peer_test, sees_the_end_of_another_before_it_is_reaped) {
  other child{[](link& l) {
    l.say("ready");
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(child.hear(), "ready");
  const auto id = find_peer(child.pid());
  ASSERT_TRUE(id);
  const peer there = take(peer::open(*id));
  EXPECT_TRUE(there.running());
  child.kill();
  pollfd p{.fd = there.fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&p, 1, -1), 1);
  EXPECT_FALSE(there.running());
  EXPECT_FALSE(find_peer(child.pid())) << "a zombie does not run";
  expect_error(peer::open(*id), transport_errc::gone, {"has ended"});
  child.wait();
  EXPECT_FALSE(there.running());
  expect_error(peer::open(*id), transport_errc::gone, {"has ended"});
}

TEST_F(peer_test, takes_a_pid_that_was_used_again_for_somebody_else) {
  peer_id id = take(this_peer());
  ++id.start_time;
  expect_error(peer::open(id), transport_errc::gone, {"has ended"});
}

TEST_F(peer_test, knows_nobody_under_pids_that_cannot_be) {
  for (const pid_t pid : {0, -1, 0x7fff'ffff}) {
    EXPECT_FALSE(find_peer(pid));
    expect_error(peer::open({pid, 1}), transport_errc::gone, {"has ended"});
  }
}

TEST_F(peer_test, works_where_the_system_gives_out_no_pidfd) {
  other watched{[](link& l) {
    l.say("ready");
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(watched.hear(), "ready");
  const auto id = find_peer(watched.pid());
  ASSERT_TRUE(id);
  other watcher{[&](link& l) {
    testing::fail_system_call(SYS_pidfd_open, ENOSYS);
    auto there = peer::open(*id);
    l.say(there && there->fd() == -1 && there->running() ? "runs" : "wrong");
    (void)l.hear();
    l.say(there->running() ? "wrong" : "ended");
    return 0;
  }};
  EXPECT_EQ(watcher.hear(), "runs");
  watched.kill();
  watched.wait();
  watcher.say("look");
  EXPECT_EQ(watcher.hear(), "ended");
}

TEST_F(peer_test, does_not_take_a_lack_of_descriptors_for_an_end) {
  const peer_id id = take(this_peer());
  other child{[&](link& l) {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto there = peer::open(id);
    l.say(!there && there.error().code == transport_errc::no_space ? there.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("ulimit -n"), std::string::npos);
}

}  // namespace peer_tests
}  // namespace orrery::transport
