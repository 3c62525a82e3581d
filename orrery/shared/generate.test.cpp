// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/generate.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <ranges>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace generate_tests {

class whole_data : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(whole_data);

long thrice(std::uint64_t i) { return 3 * static_cast<long>(i); }
double scaled(std::uint64_t i, std::uint64_t j, double by) { return static_cast<double>(100 * i + j) * by; }
std::uint32_t owner_itself(std::uint64_t) { return this_pe(); }
int fail_at_seven(std::uint64_t i) {
  if (i == 7) throw std::domain_error("seven");
  return 1;
}

TEST_P(whole_data, each_owner_generates_its_elements) {
  in_each([] {
    for (const distribution& d : {distribution::block(), distribution::cyclic(), distribution::block_cyclic(4),
                                  distribution::on(pe(1)), distribution::block().over({2, 0})}) {
      const shared_vector<long> v(17, d);
      generate<&thrice>(v);
      const shared_vector<std::uint32_t> owners(17, d);
      generate<&owner_itself>(owners);
      for (const std::uint64_t i : v.indices()) {
        EXPECT_EQ(v[i], thrice(i));
        EXPECT_EQ(owners[i], owners.owner(i));
      }
    }
    for (const distribution& d : {distribution::columns(), distribution::tiles(1, 3), distribution::cyclic()}) {
      const shared_matrix<double> m(5, 7, d);
      generate<&scaled>(m, 0.5);
      for (std::uint64_t i = 0; i < 5; ++i)
        for (std::uint64_t j = 0; j < 7; ++j) EXPECT_EQ((m[i, j]), scaled(i, j, 0.5));
    }
    generate<&thrice>(shared_vector<long>(0));
  });
}

TEST_P(whole_data, what_a_generator_throws_reaches_the_caller) {
  in_each([] {
    const shared_vector<int> v(9);
    EXPECT_EQ(testing::what_is_thrown<std::domain_error>([&] { generate<&fail_at_seven>(v); }), "seven");
    EXPECT_EQ(v[0], 1);
    v.fill(2);  // nothing is left open
    with(read_view(v), [](auto& all) { EXPECT_EQ(all[7], 2); });
    destroy(v);
    EXPECT_THROW(generate<&fail_at_seven>(v), usage_error);
  });
}

TEST(generate, keeps_out_of_what_somebody_views) {
  testing::in_world(2, [] {
    const shared_vector<long> v(8);
    with(read_view(v), [&](auto&) {
      EXPECT_NE(testing::what_is_thrown<usage_error>([&] { generate<&thrice>(v); }).find("generate.test.cpp:"),
                std::string::npos);
    });
  });
}

static_assert(std::random_access_iterator<shared_iterator<long>>);
static_assert(std::ranges::random_access_range<const shared_vector<double>>);
static_assert(std::ranges::sized_range<const shared_vector<int>>);
static_assert(std::indirectly_writable<shared_iterator<int>, int>);
static_assert(std::permutable<shared_iterator<int>>);
static_assert(std::ranges::input_range<index_range>);
static_assert(std::ranges::forward_range<detail::index_run>);

static_assert(std::random_access_iterator<shared_matrix_iterator<long>>);
static_assert(std::ranges::random_access_range<const shared_matrix<double>>);
static_assert(std::ranges::sized_range<const shared_matrix<int>>);
static_assert(std::indirectly_writable<shared_matrix_iterator<int>, int>);
static_assert(std::permutable<shared_matrix_iterator<int>>);
static_assert(sizeof(shared_iterator<int>) < sizeof(shared_matrix_iterator<int>));

TEST_P(whole_data, algorithms_go_through_a_matrix_row_after_row) {
  in_each([] {
    for (const distribution& d : {distribution::block(), distribution::cyclic(), distribution::columns(),
                                  distribution::tiles(1, 3), distribution::block().with_halo(1)}) {
      const shared_matrix<int> m(4, 3, d);
      std::ranges::copy(std::views::iota(0, 12), m.begin());
      for (std::uint64_t i = 0; i < 4; ++i)
        for (std::uint64_t j = 0; j < 3; ++j) EXPECT_EQ((m[i, j]), static_cast<int>(3 * i + j));
      EXPECT_EQ(std::accumulate(m.begin(), m.end(), 0), 66);
      EXPECT_EQ(m.begin()[7], 7);
      EXPECT_EQ(m.end() - std::ranges::find(m, 7), 5);
      std::ranges::reverse(m);
      EXPECT_EQ((m[0, 1]), 10);
      std::ranges::sort(m);
      EXPECT_TRUE(std::ranges::equal(m, std::views::iota(0, 12)));
      for (auto x : m | std::views::drop(10)) x += 5;
      EXPECT_EQ((m[3, 2]), 16);
      EXPECT_THROW((void)(*m.end()).get(), std::out_of_range);
      destroy(m);
    }
    const shared_matrix<int> none(5, 0);
    EXPECT_TRUE(none.begin() == none.end());
    EXPECT_EQ(std::ranges::distance(none), 0);
    const shared_matrix<std::string> words(2, 2, distribution::cyclic(), "w");
    EXPECT_TRUE(std::ranges::all_of(words, [](const std::string& s) { return s == "w"; }));
  });
}

TEST_P(whole_data, algorithms_go_through_elements_wherever_they_lie) {
  in_each([] {
    const shared_vector<int> v(10, distribution::cyclic());
    std::ranges::copy(std::vector<int>{5, 3, 9, 1, 7, 2, 8, 0, 6, 4}, v.begin());
    EXPECT_EQ(std::accumulate(v.begin(), v.end(), 0), 45);
    EXPECT_EQ(*std::ranges::max_element(v), 9);
    EXPECT_EQ(std::ranges::find(v, 7) - v.begin(), 4);
    std::ranges::sort(v);
    EXPECT_TRUE(std::ranges::equal(v, std::views::iota(0, 10)));
    EXPECT_EQ(*std::ranges::lower_bound(v, 6), 6);
    std::ranges::reverse(v);
    for (auto x : v | std::views::take(3)) x += 10;
    EXPECT_EQ(v[0], 19);
    EXPECT_EQ(v[9], 0);
    EXPECT_EQ(v.end()[-8], 17);
    EXPECT_THROW((void)(*v.end()).get(), std::out_of_range);
    EXPECT_EQ(std::ranges::distance(v.local_indices()), 4);
    EXPECT_EQ(v.indices().size(), 10U);
  });
}

}  // namespace generate_tests
}  // namespace orrery
