// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/balance_plan.hpp>
#include <orrery/service/detail/load_meter.hpp>

#include <vector>

#include <gtest/gtest.h>

namespace balance_plan_tests {

using orrery::service::balance_order;
using orrery::service::load_meter;
using orrery::service::plan_balance;
using orrery::service::range_load;
using orders = std::vector<balance_order>;
using kind = balance_order::kind;

range_load load(std::uint32_t pe, std::uint64_t requests, std::uint64_t items = 1000) {
  range_load l;
  l.at = {pe, 1, 1};
  l.active = true;
  l.items = items;
  l.requests = requests;
  return l;
}
orders plan(const std::vector<range_load>& all, std::uint64_t limit = 1000) {
  const std::vector<std::uint32_t> pes{0, 1};
  return plan_balance(all, pes, limit);
}

TEST(balance_plan, leaves_alone_what_is_even_or_idle) {
  EXPECT_EQ(plan({load(0, 100), load(1, 100)}), orders{});
  EXPECT_EQ(plan({load(0, 0), load(0, 0)}), orders{});
}
TEST(balance_plan, moves_a_range_from_the_pe_with_most_to_that_with_least) {
  EXPECT_EQ(plan({load(0, 50), load(0, 50), load(1, 1)}), (orders{{kind::move, 0, 1}}));
}
TEST(balance_plan, goes_by_time_where_time_was_measured) {
  std::vector<range_load> all{load(0, 50), load(0, 50), load(1, 100)};
  all[0].busy_ns = 1'100'000;
  all[1].busy_ns = 600'000;
  EXPECT_EQ(plan(all), (orders{{kind::split, 0, 0}, {kind::move, 1, 1}}));
}
TEST(balance_plan, splits_a_range_with_more_than_the_share_of_a_pe) {
  EXPECT_EQ(plan({load(0, 100), load(1, 1)}), (orders{{kind::split, 0, 0}}));
  EXPECT_EQ(plan({load(0, 100, 20), load(1, 1)}), orders{}) << "there is nothing to divide";
}
TEST(balance_plan, moves_a_hot_range_to_where_its_clients_are) {
  std::vector<range_load> all{load(0, 80), load(1, 50)};
  all[0].client_pe = 1;
  all[0].client_votes = load_meter::sure;
  EXPECT_EQ(plan(all), (orders{{kind::move, 0, 1}, {kind::move, 1, 0}})) << "the other one makes room";
  all[0].client_votes = 3;  // nobody has most
  EXPECT_EQ(plan(all), (orders{{kind::split, 0, 0}}));
}
TEST(balance_plan, joins_small_neighbours_with_little_to_do) {
  EXPECT_EQ(plan({load(0, 100), load(1, 1, 10), load(0, 2, 20), load(1, 100)}), (orders{{kind::merge, 1, 0}}));
  EXPECT_EQ(plan({load(0, 100), load(1, 1, 300), load(0, 2, 300), load(1, 100)}), orders{})
      << "they have too many items";
  EXPECT_EQ(plan({load(0, 100), load(0, 60, 10), load(1, 70, 20), load(1, 100)}), orders{}) << "they have much to do";
}

}  // namespace balance_plan_tests
