// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/address.hpp>

#include <orrery/wire/envelope.hpp>

#include <unordered_set>

#include <gtest/gtest.h>

namespace orrery {
namespace address_tests {

TEST(address, a_default_address_is_null) {
  EXPECT_FALSE(address{});
  EXPECT_EQ(to_string(address{}), "null");
}

TEST(address, is_null_exactly_when_its_generation_is_0) {
  EXPECT_FALSE((address{.pe = 3, .slot = 17, .generation = 0}));
  EXPECT_TRUE((address{.pe = 0, .slot = 0, .generation = 1}));
}

TEST(address, prints_as_pe_slot_and_generation) {
  EXPECT_EQ(to_string(address{.pe = 3, .slot = 17, .generation = 2}), "3.17#2");
}

TEST(address, of_a_pe_itself_prints_as_that) {
  EXPECT_EQ(to_string(address{.pe = 3, .slot = wire::no_slot, .generation = 0}), "PE 3");
}

TEST(address, differs_from_the_next_tenant_of_the_same_slot) { EXPECT_NE((address{3, 17, 2}), (address{3, 17, 3})); }

TEST(address, is_ordered_by_pe_then_slot_then_generation) {
  EXPECT_LT((address{1, 9, 9}), (address{2, 0, 0}));
  EXPECT_LT((address{1, 1, 9}), (address{1, 2, 0}));
  EXPECT_LT((address{1, 1, 1}), (address{1, 1, 2}));
}

TEST(address, can_be_the_key_of_an_unordered_set) {
  std::unordered_set<address> set;
  for (std::uint32_t pe = 0; pe != 10; ++pe) {
    for (std::uint32_t slot = 0; slot != 10; ++slot) set.insert({pe, slot, 1});
  }
  EXPECT_EQ(set.size(), 100u);
  EXPECT_TRUE(set.contains({3, 7, 1}));
  EXPECT_FALSE(set.contains({3, 7, 2}));
}

TEST(address, equal_addresses_hash_alike_and_neighbours_do_not) {
  const std::hash<address> hash;
  EXPECT_EQ(hash({1, 2, 3}), hash({1, 2, 3}));
  EXPECT_NE(hash({1, 2, 3}), hash({1, 2, 4}));
  EXPECT_NE(hash({1, 2, 3}), hash({2, 1, 3}));
}

}  // namespace address_tests
}  // namespace orrery
