// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/internal/test_seed.hpp>
#include <orrery/transport/mpi/frame.hpp>
#include <orrery/transport/mpi/ring_sizes.hpp>
#include <orrery/transport/ring.hpp>
#include <orrery/transport/world.hpp>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace ring_sizes_tests {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t wanted = 128 * kib;

TEST(rings_to_other_machines, have_the_wanted_size_while_they_are_few) {
  ring_sizes sizes;
  for (int i = 0; i < 1985; ++i) EXPECT_EQ(sizes.next(wanted), wanted);
  EXPECT_EQ(sizes.next(wanted), wanted / 2);
  EXPECT_EQ(ring_sizes{}.next(mib), mib);
}
TEST(rings_to_other_machines, are_never_smaller_than_they_may_be) {
  ring_sizes sizes;
  for (int i = 0; i < 100'000; ++i) ASSERT_GE(sizes.next(wanted), ring_sizes::least);
  EXPECT_EQ(sizes.next(wanted), ring_sizes::least);
  EXPECT_EQ(sizes.next(4 * kib), 4 * kib) << "what the user wants is less";
}
TEST(rings_to_other_machines, stay_within_the_budget_until_they_are_as_small_as_they_may_be) {
  for (const std::uint64_t w : {64 * kib, 128 * kib, mib, 1024 * mib}) {
    ring_sizes sizes;
    std::uint64_t sum = 0;
    for (std::uint64_t size = sizes.next(w); size > ring_sizes::least; size = sizes.next(w)) sum += size;
    EXPECT_LE(sum, ring_sizes::budget) << w;
    EXPECT_GE(sum, ring_sizes::budget * 9 / 10) << w;
  }
}

// Rings and mirrors of all nodes of a world of 1,024 machines, whose PEs talk to random others,
// counted as the arena counts them: in whole pages.
TEST(rings_to_other_machines, of_64_pes_that_talk_to_64_others_each_fit_into_a_gibibyte) {
  constexpr std::uint32_t machines = 1024;
  constexpr std::uint32_t pes = 64;
  constexpr std::uint32_t partners = 64;
  std::mt19937_64 random(testing::test_seed());
  std::vector<std::uint64_t> bytes(machines);
  for (std::uint32_t m = 0; m < machines; ++m) {
    ring_sizes sizes;
    for (std::uint32_t i = 0; i < pes * partners; ++i) {
      const std::uint64_t to = random() % machines;
      if (to == m) continue;
      const std::uint64_t ring = (ring_header::bytes_for(sizes.next(wanted)) + 4095) / 4096 * 4096;
      bytes[m] += ring;
      bytes[to] += ring;
    }
  }
  constexpr std::uint64_t frames =
      (machines * 4ULL + 16 + 16) * frame::capacity;  // on their way to all, receives, spare
  constexpr std::uint64_t counters = std::uint64_t{machines} * pes * counters_per_pe * sizeof(std::uint64_t);
  EXPECT_LE(*std::ranges::max_element(bytes) + frames + counters, 1024 * mib);
}

}  // namespace ring_sizes_tests
}  // namespace orrery::transport
