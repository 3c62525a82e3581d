// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/internal/test_engine.hpp>
#include <orrery/transport/mpi/late_engine.hpp>

#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace late_engine_tests {

/// A frame that says which node has sent it, and of which size it is.
std::vector<std::byte> frame_of(std::uint32_t node, std::uint32_t sections) {
  frame f;
  f.begin(node);
  for (std::uint32_t i = 0; i < sections; ++i) f.add({section_kind::ask, 0, 0, 0, 0, i});
  const auto bytes = f.finish();
  return {bytes.begin(), bytes.end()};
}

TEST(a_late_engine, passes_all_messages_on_and_keeps_the_order_of_each_node) {
  testing::scripted_engine library;
  std::int64_t now = 0;
  late_engine late(library, 100, 7, [&] { return now; });
  std::vector<frame> memory(4);
  std::vector<engine::request> receives(memory.size());
  for (std::size_t i = 0; i < memory.size(); ++i)
    ASSERT_TRUE(late.receive(engine::any_node, 0, memory[i].memory(), receives[i]));
  constexpr std::uint32_t frames = 20;
  for (std::uint32_t n = 0; n < frames; ++n)
    for (std::uint32_t node = 1; node <= 3; ++node) library.incoming.push_back(frame_of(node, n));
  std::map<std::uint32_t, std::uint32_t> heard;  // frames of each node
  std::vector<std::uint32_t> order;
  std::size_t next = 0;
  for (; order.size() < 3 * frames; ++now) {
    ASSERT_LT(now, 100'000);
    std::uint32_t node = 0;
    std::uint64_t bytes = 0;
    if (late.test(receives[next], node, bytes) != engine::outcome::done) continue;
    EXPECT_EQ(bytes, sizeof(frame_head) + heard[node]++ * sizeof(section));
    EXPECT_FALSE(frame_reader(memory[next].memory().first(bytes), node).damaged());
    order.push_back(node);
    ASSERT_TRUE(late.receive(engine::any_node, 0, memory[next].memory(), receives[next]));
    next = (next + 1) % memory.size();
  }
  std::vector<std::uint32_t> as_sent;
  for (std::uint32_t n = 0; n < frames; ++n) as_sent.insert(as_sent.end(), {1, 2, 3});
  EXPECT_NE(order, as_sent) << "nobody has overtaken anybody";
}

TEST(a_late_engine, holds_parts_of_blocks_back_too) {
  testing::scripted_engine library;
  std::int64_t now = 0;
  late_engine late(library, 1000, 7, [&] { return now; });
  std::vector<std::byte> memory(100);
  engine::request r = 0;
  ASSERT_TRUE(late.receive(1, 5, memory, r));
  std::uint32_t node = 0;
  std::uint64_t bytes = 0;
  EXPECT_EQ(late.test(r, node, bytes), engine::outcome::pending);
  library.blocks_are_there = true;
  EXPECT_EQ(late.test(r, node, bytes), engine::outcome::pending) << "unless the seed says 0";
  now = 2000;
  EXPECT_EQ(late.test(r, node, bytes), engine::outcome::done);
  EXPECT_EQ(bytes, 100);
}

}  // namespace late_engine_tests
}  // namespace orrery::transport
