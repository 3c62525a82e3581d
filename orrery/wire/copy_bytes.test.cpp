// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/copy_bytes.hpp>

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::wire {
namespace copy_bytes_tests {

TEST(copy_bytes, copies_from_and_to_every_place) {
  constexpr std::size_t page = 4096;
  std::vector<std::byte> from(5 * page);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  std::vector<std::byte> to(6 * page);
  std::size_t slow = 0;
  for (const std::size_t bytes : {0, 1, 2047, 2048, 2049, 4096, 10'001})
    for (std::size_t offset = 0; offset < page; offset += offset < 100 ? 1 : 997) {
      std::ranges::fill(to, std::byte{0xee});
      const auto place = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
      std::byte* const target = to.data() + (place(from.data()) - place(to.data())) % page + offset;
      slow += copies_slowly(target, from.data()) ? 1 : 0;
      copy_bytes(target, from.data(), bytes);
      ASSERT_TRUE(std::equal(target, target + bytes, from.data())) << bytes << " at " << offset;
      ASSERT_EQ(std::ranges::count(to, std::byte{0xee}),
                static_cast<std::ptrdiff_t>(to.size() - bytes) +
                    std::count(from.data(), from.data() + bytes, std::byte{0xee}))
          << "something beside it was written: " << bytes << " at " << offset;
    }
  EXPECT_GT(slow, 0U);
}

TEST(copy_bytes, knows_which_distances_are_slow) {
  const auto* const page = reinterpret_cast<const std::byte*>(std::uintptr_t{1} << 20);
  for (const std::ptrdiff_t near : {1, 8, 16, 31, 4097, 4096 * 5 + 16, -4096 + 8})
    EXPECT_TRUE(copies_slowly(page + near, page)) << near;
  for (const std::ptrdiff_t far : {0, 32, 64, 4095, 4096, -1, -16, 4096 + 32})
    EXPECT_FALSE(copies_slowly(page + far, page)) << far;
}

}  // namespace copy_bytes_tests
}  // namespace orrery::wire
