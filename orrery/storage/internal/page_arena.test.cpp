// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/internal/page_arena.hpp>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::storage::internal {
namespace page_arena_tests {

TEST(page_arena, gives_pieces_that_share_no_byte_and_are_aligned) {
  page_arena arena;
  for (const std::size_t bytes : {std::size_t{64} << 10, std::size_t{300} << 12, std::size_t{1} << 20,
                                  std::size_t{2} << 20, std::size_t{5} << 19}) {
    std::vector<std::byte*> all;
    for (int i = 0; i < 40; ++i) {
      all.push_back(arena.take(bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % 4096, 0U);
      std::memset(all.back(), i, bytes);
    }
    for (int i = 0; i < 40; ++i) {
      EXPECT_EQ(all[static_cast<std::size_t>(i)][0], std::byte(i));
      EXPECT_EQ(all[static_cast<std::size_t>(i)][bytes - 1], std::byte(i));
    }
    EXPECT_LE(arena.bytes(), 40 * bytes * 17 / 16 + 8 * huge_page);
    for (std::byte* p : all) arena.give_back(p, bytes);
    EXPECT_EQ(arena.bytes(), 0U);
  }
}
TEST(page_arena, uses_the_place_of_a_piece_again_and_its_memory_is_zeros_then) {
  page_arena arena;
  constexpr std::size_t bytes = 1 << 20;
  std::byte* const a = arena.take(bytes);
  std::byte* const b = arena.take(bytes);
  std::memset(a, 1, bytes);
  arena.give_back(a, bytes);
  std::byte* const c = arena.take(bytes);
  EXPECT_EQ(c, a);
  EXPECT_TRUE(std::all_of(c, c + bytes, [](std::byte x) { return x == std::byte{0}; }));
  arena.give_back(b, bytes);
  arena.give_back(c, bytes);
}
TEST(page_arena, is_used_by_several_threads) {
  page_arena arena;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&arena, t] {
      std::mt19937 random(t);
      std::vector<std::pair<std::byte*, std::size_t>> mine;
      for (int i = 0; i < 500; ++i) {
        if (mine.size() < 8 && random() % 2 == 0) {
          const std::size_t bytes = (16 + 4 * (random() % 3)) * 4096;
          mine.emplace_back(arena.take(bytes), bytes);
          *mine.back().first = std::byte(t);
        } else if (!mine.empty()) {
          const auto [piece, bytes] = mine.back();
          EXPECT_EQ(*piece, std::byte(t));
          arena.give_back(piece, bytes);
          mine.pop_back();
        }
      }
      for (const auto& [piece, bytes] : mine) arena.give_back(piece, bytes);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(arena.bytes(), 0U);
}

}  // namespace page_arena_tests
}  // namespace orrery::storage::internal
