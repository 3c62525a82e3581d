// SPDX-License-Identifier: Apache-2.0
#include <orrery/service/detail/leaf_memory.hpp>

#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace leaf_memory_tests {

using orrery::service::leaf_memory;

TEST(leaf_memory, begins_each_leaf_with_a_line_of_its_own) {
  for (const std::size_t bytes : {8U, 64U, 776U, 65'536U, 70'000U}) {
    std::set<std::uintptr_t> begins;
    std::vector<void*> leaves;
    for (int i = 0; i < 100; ++i) {
      leaves.push_back(leaf_memory::take(bytes));
      std::memset(leaves.back(), 1, bytes);
      begins.insert(reinterpret_cast<std::uintptr_t>(leaves.back()));
    }
    std::uintptr_t end = 0;
    for (const std::uintptr_t begin : begins) {
      EXPECT_EQ(begin % leaf_memory::line, 0U);
      EXPECT_GE(begin, end);
      end = begin + bytes;
    }
    EXPECT_EQ(begins.size(), leaves.size());
    for (void* const leaf : leaves) leaf_memory::give_back(leaf, bytes);
  }
}

TEST(leaf_memory, keeps_what_was_written_while_others_come_and_go) {
  struct piece {
    std::uint32_t* at;
    std::uint32_t value;
  };
  constexpr std::size_t bytes = 40'000;  // blocks fill, and become empty
  std::vector<piece> pieces;
  std::mt19937 random(5);
  for (int round = 0; round < 8; ++round) {
    const unsigned giving = round % 2 == 0 ? 1 : 3;  // of 4
    for (int i = 0; i < 500; ++i) {
      if (random() % 4 < giving && !pieces.empty()) {
        std::swap(pieces[random() % pieces.size()], pieces.back());
        ASSERT_EQ(pieces.back().at[0], pieces.back().value);
        ASSERT_EQ(pieces.back().at[bytes / 4 - 1], pieces.back().value);
        leaf_memory::give_back(pieces.back().at, bytes);
        pieces.pop_back();
      } else {
        auto* const at = static_cast<std::uint32_t*>(leaf_memory::take(bytes));
        at[0] = at[bytes / 4 - 1] = static_cast<std::uint32_t>(i);
        pieces.push_back({at, static_cast<std::uint32_t>(i)});
      }
    }
  }
  for (const piece& p : pieces) leaf_memory::give_back(p.at, bytes);
}

TEST(leaf_memory, takes_back_what_another_thread_was_given) {
  std::vector<void*> leaves;
  std::jthread([&] {
    for (int i = 0; i < 10'000; ++i) leaves.push_back(leaf_memory::take(776));
  }).join();
  for (void* const leaf : leaves) leaf_memory::give_back(leaf, 776);
}

}  // namespace leaf_memory_tests
