// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/detail/sequence_number.hpp>
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace sequence_number_tests {

using detail::before_first;
using detail::sequence_number;
using testing::in_simulation;
using testing::in_world;

TEST(sequence_number, is_ordered_also_where_numbers_begin_again) {
  for (const std::uint32_t n : {0U, 1U, 0x7fff'ffffU, 0x8000'0000U, 0xffff'fffeU, 0xffff'ffffU}) {
    const sequence_number a{n};
    const sequence_number b = a.next().next();
    EXPECT_LT(a, b) << n;
    EXPECT_GT(b, a) << n;
    EXPECT_LE(a, a) << n;
    EXPECT_EQ(b.value, n + 2) << n;
    EXPECT_FALSE(b <= a) << n;
  }
}

struct Old;
ORRERY_PROCESS(Old, give, give_to, hear, heard, hop);
struct Old : element<Old> {
  void give(const result_target& t) { contribute(1, sum, t); }
  void give_to(const section<Old>& s, const result_target& t) { contribute(s, 1, sum, t); }
  void hear(int n) { all.push_back(n); }
  std::vector<int> heard() const { return all; }
  void hop(std::uint32_t to) { migrate_to(to); }
  template <class A>
  void serialize(A& a) {
    a & all;
  }
  std::vector<int> all;
};

// Numbers of arrays and sections that are made meanwhile begin so many before they are at 0 again.
class numbers_end_after {
 public:
  explicit numbers_end_after(std::uint32_t n) noexcept { before_first = {0U - n}; }
  numbers_end_after(const numbers_end_after&) = delete;
  ~numbers_end_after() { before_first = {}; }
};

void live_long() {
  constexpr int n = 12;
  constexpr int rounds = 60;
  const auto a = create_array<Old>(range<std::int32_t>{n});
  const auto s = create_section(a, std::vector<std::int32_t>{1, 2, 4, 7, 11}, 1);
  std::vector<int> expected;
  for (int k = 0; k < rounds; ++k) {
    if (k == rounds / 4) destroy(a[7]);
    const int left = k < rounds / 4 ? 0 : 1;
    post(a[k % 5])->hop(static_cast<std::uint32_t>(k) % world_pes());
    auto of_all = expect_result<int>();
    post(a)->give(of_all.target);
    auto of_some = expect_result<int>();
    post(s)->give_to(s, of_some.target);
    post(a)->hear(k);
    expected.push_back(k);
    EXPECT_EQ(of_all.result.get(), n - left) << k;
    EXPECT_EQ(of_some.result.get(), 5 - left) << k;
    quiescence(a);
  }
  for (std::int32_t i = 0; i < n; ++i) {
    if (i == 7) continue;
    EXPECT_EQ(a[i]->heard(), expected) << i;
  }
  destroy(s);
  destroy(a);
}
TEST(sequence_number, begins_again_while_an_array_and_its_sections_go_on) {
  in_world(2, [] {});  // handlers are frozen
  for (const std::uint32_t left : {1U, 20U, 50U}) {
    const numbers_end_after soon(left);
    for (const std::uint32_t pes : {1U, 3U}) in_world(pes, live_long);
    in_simulation("machines=3,jitter=5us", live_long);
  }
}

}  // namespace sequence_number_tests
}  // namespace orrery
