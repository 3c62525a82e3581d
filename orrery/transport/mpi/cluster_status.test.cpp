// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/cluster_status.hpp>
#include <orrery/transport/mpi/status_server.hpp>

#include <algorithm>
#include <atomic>
#include <new>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

namespace orrery::transport {
namespace cluster_status_tests {

using std::chrono::milliseconds;

cluster_status some_status() {
  cluster_status s;
  s.hosts = {"one", "two"};
  for (std::uint32_t n = 0; n < 3; ++n) {
    cluster_status::node node;
    node.machine = n / 2;
    node.state = static_cast<std::uint32_t>(node_state::alive);
    node.pid = 100 + static_cast<std::int32_t>(n);
    node.first_pe = 2 * n;
    node.program = "tester";
    node.counters.assign(2 * counters_per_pe, n);
    s.nodes.push_back(node);
  }
  s.is_fresh = true;
  return s;
}

cluster_status some_status_for(bool /*names*/) { return some_status(); }

std::uint64_t some_nonce() { return static_cast<std::uint64_t>(::getpid()) << 32 | 0x57a7; }

TEST(cluster_status, is_what_was_encoded) {
  const auto s = cluster_status::decode(some_status().encode());
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->encode(), some_status().encode());
}
TEST(cluster_status, a_node_of_no_machine_is_refused) {
  cluster_status s = some_status();
  s.nodes[1].machine = 2;
  EXPECT_EQ(cluster_status::decode(s.encode()).error().code, transport_errc::damaged);
}
TEST(cluster_status, of_a_node_that_is_not_there_is_refused) {
  cluster_status s = some_status();
  s.teller = 3;
  EXPECT_EQ(cluster_status::decode(s.encode()).error().code, transport_errc::damaged);
}
RC_GTEST_PROP(cluster_status, what_is_cut_or_changed_is_read_or_refused, ()) {
  std::vector<std::byte> bytes = some_status().encode();
  const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  if (cut < bytes.size() && *rc::gen::arbitrary<bool>()) {
    bytes[cut] ^= static_cast<std::byte>(*rc::gen::inRange(1, 256));
  } else {
    bytes.resize(cut);
  }
  if (const auto s = cluster_status::decode(bytes))
    for (const auto& n : s->nodes) RC_ASSERT(n.machine < s->hosts.size());
}

TEST(status_server, tells_each_tool_what_is_true_then) {
  std::atomic<std::int32_t> asked{0};
  auto server = status_server::start(some_nonce(), [&](bool names) {
    cluster_status s = some_status();
    if (names) s.nodes[1].names.assign(10, std::byte{7});
    s.nodes[0].pid = ++asked;
    return s;
  });
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_EQ(asked, 0);
  for (int i = 1; i <= 3; ++i) {
    const auto s = ask_for_status(some_nonce(), milliseconds(60'000));
    ASSERT_TRUE(s) << s.error().message;
    EXPECT_EQ(s->nodes[0].pid, i);
    EXPECT_TRUE(s->nodes[1].names.empty());
  }
  const auto s = ask_for_status(some_nonce(), milliseconds(60'000), true);
  ASSERT_TRUE(s) << s.error().message;
  EXPECT_EQ(s->nodes[1].names.size(), 10);
}
TEST(status_server, is_found_while_it_is_there) {
  const auto is_told = [] {
    const auto all = told_worlds();
    return std::ranges::find(all, some_nonce()) != all.end();
  };
  {
    const auto server = status_server::start(some_nonce(), some_status_for);
    ASSERT_TRUE(server);
    EXPECT_TRUE(is_told());
  }
  EXPECT_FALSE(is_told());
}
TEST(status_server, that_has_ended_is_gone) {
  ASSERT_TRUE(status_server::start(some_nonce(), some_status_for));
  EXPECT_EQ(ask_for_status(some_nonce(), milliseconds(60'000)).error().code, transport_errc::gone);
}
TEST(status_server, goes_on_when_a_status_cannot_be_made) {
  std::atomic<int> asked{0};
  const auto server = status_server::start(some_nonce(), [&](bool) {
    if (++asked < 3) throw std::bad_alloc();
    return some_status();
  });
  ASSERT_TRUE(server);
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(ask_for_status(some_nonce(), milliseconds(60'000)));
  EXPECT_TRUE(ask_for_status(some_nonce(), milliseconds(60'000)));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "orrery: a tool that asks for the machines of this world is not told: std::bad_alloc\n");
}
TEST(status_server, there_is_one_for_a_world) {
  const auto first = status_server::start(some_nonce(), some_status_for);
  ASSERT_TRUE(first);
  EXPECT_FALSE(status_server::start(some_nonce(), some_status_for));
}
TEST(status_server, that_does_not_answer_is_waited_for_as_long_as_the_tool_likes) {
  std::atomic<bool> may_end{false};
  const auto server = status_server::start(some_nonce(), [&](bool) {
    while (!may_end) ::usleep(1000);
    return some_status();
  });
  ASSERT_TRUE(server);
  EXPECT_EQ(ask_for_status(some_nonce(), milliseconds(20)).error().code, transport_errc::timed_out);
  may_end = true;
}

}  // namespace cluster_status_tests
}  // namespace orrery::transport
