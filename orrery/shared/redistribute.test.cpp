// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/detail/shared_directory.hpp>

#include <array>
#include <chrono>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace redistribute_tests {

using testing::in_simulation;
using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where they are messages.
class redistribution : public testing::on_threads_and_machines<4> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(redistribution);

struct record {
  std::array<std::uint16_t, 5> words{};
  friend bool operator==(const record&, const record&) = default;
};
record record_of(std::uint64_t i) { return {{static_cast<std::uint16_t>(i), 7, static_cast<std::uint16_t>(3 * i)}}; }

TEST_P(redistribution, moves_a_vector_between_all_distributions) {
  in_each([] {
    const std::vector<distribution> ways{distribution::block(),         distribution::cyclic(),
                                         distribution::block_cyclic(3), distribution::bounds({0, 20, 21, 23}),
                                         distribution::on(pe(2)),       distribution::block().over({3, 1})};
    for (const distribution& from : ways) {
      shared_vector<record> v(23, from);
      for (std::uint64_t i = 0; i < v.size(); ++i) v[i] = record_of(i);
      for (const distribution& to : ways) {
        v = redistribute(v, to);
        const shared_vector<record> same_way(23, to);
        for (std::uint64_t i = 0; i < v.size(); ++i) {
          EXPECT_EQ(v[i].get(), record_of(i));
          EXPECT_EQ(v.owner(i), same_way.owner(i));
        }
        destroy(same_way);
      }
      destroy(v);
    }
  });
}

TEST_P(redistribution, moves_a_matrix_between_rows_columns_and_tiles) {
  in_each([] {
    const std::vector<distribution> ways{distribution::block(), distribution::columns(), distribution::tiles(2, 2),
                                         distribution::cyclic(), distribution::tiles(1, 2).over({2, 0})};
    for (const distribution& from : ways)
      for (const distribution& to : ways) {
        shared_matrix<int> m(7, 5, from);
        std::vector<int> numbers(35);
        std::iota(numbers.begin(), numbers.end(), 1);
        copy(std::span<const int>(numbers), m.rows(0, 7));
        m = redistribute(m, to);
        std::vector<int> back(35);
        copy(m.rows(0, 7), std::span(back));
        EXPECT_EQ(back, numbers);
        destroy(m);
      }
  });
}

TEST_P(redistribution, moves_vectors_that_are_larger_than_its_buffers) {
  in_each([] {
    constexpr std::uint64_t n = 1'500'000;
    shared_vector<long> v(n, distribution::on(pe(1)));
    std::vector<long> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    copy(std::span<const long>(numbers), v);
    v = redistribute(v, distribution::cyclic());
    v = redistribute(v, distribution::block());
    std::vector<long> back(n);
    copy(v, std::span(back));
    EXPECT_TRUE(back == numbers);
  });
}

TEST_P(redistribution, ends_the_old_vector_and_keeps_it_if_it_fails) {
  in_each([] {
    const shared_vector<int> before(8, distribution::block(), 3);
    EXPECT_THROW((void)redistribute(before, distribution::bounds({1, 2})), usage_error);
    EXPECT_EQ(before[7], 3);
    const shared_vector<int> after = redistribute(before, distribution::on(pe(0)));
    EXPECT_EQ(after[7], 3);
    EXPECT_NE(what_is_thrown<usage_error>([&] { (void)before[7].get(); }).find("destroyed at redistribute.test.cpp:"),
              std::string::npos);
    const shared_vector<int> none(0);
    EXPECT_EQ(redistribute(none, distribution::cyclic()).size(), 0U);
  });
}

shared_vector<int> make_here() { return shared_vector<int>(9, distribution::block().over({0, 2})); }
bool is_kept(shared_vector<int> v) {
  auto& d = detail::shared_directory::of_this_pe();
  return d.find(v.id()) != nullptr || d.keeps.contains(v.id());
}
std::string use_of(shared_vector<int> v) {
  return what_is_thrown<usage_error>([&] { v[0] = 1; });
}
TEST(redistribution_loss, an_object_whose_maker_is_lost_can_be_destroyed) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const auto v = call<&make_here>(pe(1));
    v[8] = 2;
    sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(v[0] + v[8], 2);
    destroy(v);
    for (const std::uint32_t p : {0U, 2U}) {
      EXPECT_FALSE(call<&is_kept>(pe(p), v));
      EXPECT_NE(call<&use_of>(pe(p), v).find("was destroyed at redistribute.test.cpp:"), std::string::npos);
    }
    EXPECT_THROW(destroy(v), usage_error);
  });
}

}  // namespace redistribute_tests
}  // namespace orrery
