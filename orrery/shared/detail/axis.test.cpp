// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/detail/axis.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::detail {
namespace axis_tests {

axis any_axis(std::uint64_t most) {
  const auto n = *rc::gen::inRange<std::uint64_t>(0, most);
  const auto parts = *rc::gen::inRange<std::uint32_t>(1, 9);
  switch (*rc::gen::inRange(0, 3)) {
    case 0:
      return axis::in_blocks(n, parts);
    case 1:
      return axis::dealt_out(n, parts, *rc::gen::inRange<std::uint64_t>(1, 7));
    default: {
      auto ends = *rc::gen::container<std::vector<std::uint64_t>>(parts, rc::gen::inRange<std::uint64_t>(0, n + 1));
      std::ranges::sort(ends);
      ends.back() = n;
      return axis::with_ends(ends);
    }
  }
}

RC_GTEST_PROP(axis, gives_each_index_to_one_part_and_finds_it_again, ()) {
  const axis a = any_axis(60);
  RC_ASSERT(a.valid());
  std::vector<std::uint64_t> next(a.parts(), 0);
  for (std::uint64_t i = 0; i < a.size(); ++i) {
    const axis::place p = a.find(i);
    RC_ASSERT(p.part < a.parts());
    RC_ASSERT(p.local == next[p.part]++);
    RC_ASSERT(a.index(p.part, p.local) == i);
    RC_ASSERT(a.below(p.part, i) == p.local);
    RC_ASSERT(a.below(p.part, i + 1) == p.local + 1);
  }
  for (std::uint32_t p = 0; p < a.parts(); ++p) RC_ASSERT(a.count(p) == next[p]);
}

RC_GTEST_PROP(axis, walks_the_indices_of_a_part_in_order, ()) {
  const axis a = any_axis(60);
  const auto part = *rc::gen::inRange<std::uint32_t>(0, a.parts());
  const auto last = *rc::gen::inRange<std::uint64_t>(0, a.count(part) + 1);
  const auto first = *rc::gen::inRange<std::uint64_t>(0, last + 1);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t l = first; l < last; ++l) expected.push_back(a.index(part, l));
  std::vector<std::uint64_t> walked;
  for (const std::uint64_t i : a.walk(part, first, last)) walked.push_back(i);
  RC_ASSERT(walked == expected);
  std::vector<std::uint64_t> run_by_run;
  a.walk(part, first, last).for_each_run([&](index_run r) {
    for (const std::uint64_t i : r) run_by_run.push_back(i);
  });
  RC_ASSERT(run_by_run == expected);
}

TEST(axis, knows_ten_billion_indices_without_a_table) {
  const std::uint64_t n = 10'000'000'000;
  for (const axis& a : {axis::in_blocks(n, 7), axis::dealt_out(n, 7, 1000), axis::dealt_out(n, 7, n)}) {
    std::uint64_t all = 0;
    for (std::uint32_t p = 0; p < 7; ++p) all += a.count(p);
    EXPECT_EQ(all, n);
    const axis::place last = a.find(n - 1);
    EXPECT_EQ(a.index(last.part, last.local), n - 1);
  }
}

TEST(axis, has_empty_parts_where_there_are_fewer_indices) {
  const axis a = axis::in_blocks(2, 5);
  EXPECT_EQ(a.count(0), 1U);
  EXPECT_EQ(a.count(1), 1U);
  EXPECT_EQ(a.count(4), 0U);
  EXPECT_TRUE(a.walk(4, 0, 0).empty());
  EXPECT_EQ(axis::in_blocks(0, 3).count(1), 0U);
}

}  // namespace axis_tests
}  // namespace orrery::detail
