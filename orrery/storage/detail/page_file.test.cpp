// SPDX-License-Identifier: Apache-2.0
// Files that other tests cannot have: devices of the system that have no O_DIRECT, are always full,
// or fail.
#include <orrery/storage/detail/page_file.hpp>

#include <orrery/storage/internal/test_support.hpp>
#include <orrery/storage/page.hpp>

#include <cerrno>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace orrery::storage {
namespace page_file_tests {

using testing::error_text;
using testing::program;
using testing::scratch;

// For writing it is locked, and other tests may be at it.
page_file open_full() {
  for (;;) {
    try {
      return page_file("/dev/full", 0, 4096, open_mode::read_write, transfer_mode::automatic);
    } catch (const std::system_error& e) {
      if (e.code().value() != EBUSY) throw;
    }
  }
}

// In an OS process of its own: other tests may have made it say so before.
TEST(page_file_DeathTest, uses_the_page_cache_where_there_is_no_o_direct_and_says_so_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto look = [] {
    ::testing::internal::CaptureStderr();
    bool good = true;
    program([&] {
      for (int i = 0; i < 2; ++i) {
        const page_file f("/dev/zero", 0, 4096, open_mode::read_only, transfer_mode::automatic);
        page p = page::uninitialized(4096);
        f.read(p.writable(), 7);
        good = good && !f.direct() && p == page(4096);
      }
    });
    const std::string text = ::testing::internal::GetCapturedStderr();
    const std::string expected = "orrery: the file system of /dev/zero has no O_DIRECT";
    const std::size_t at = text.find(expected);
    std::exit(good && at != std::string::npos && text.find(expected, at + 1) == std::string::npos ? 0 : 1);
  };
  EXPECT_EXIT(look(), ::testing::ExitedWithCode(0), "");
}
TEST(page_file, that_must_be_direct_is_an_error_where_it_cannot_be) {
  program([] {
    (void)error_text(EINVAL, [] { page_file("/dev/zero", 0, 4096, open_mode::read_only, transfer_mode::direct); });
  });
}
TEST(page_file, says_that_there_is_no_room_for_a_page) {
  program([] {
    page_file f = open_full();
    const std::string text = error_text(ENOSPC, [&] { f.write(page(4096).bytes(), 3); });
    EXPECT_NE(text.find("cannot write page 3 of /dev/full (4 KiB at offset 12288); "), std::string::npos) << text;
    EXPECT_NE(text.find("make room or choose another folder"), std::string::npos) << text;
  });
}
TEST(page_file, says_that_the_drive_has_failed) {
  program([] {
    const page_file f("/proc/self/mem", 0, 4096, open_mode::read_only, transfer_mode::automatic);
    page p(4096);
    // nothing is at address 0
    const std::string text = error_text(EIO, [&] { f.read(p.writable(), 0); });
    EXPECT_NE(text.find("cannot read page 0 of /proc/self/mem (4 KiB at offset 0); the drive"), std::string::npos)
        << text;
  });
}
TEST(page_file, is_used_beside_by_others_and_then_locked_until_the_last_has_gone) {
  const scratch folder;
  program([&] {
    const auto open = [&](open_mode mode) {
      return page_file(folder / "pages", 1, 4096, mode, transfer_mode::automatic);
    };
    page_file first = open(open_mode::create);
    page_file second = open(open_mode::beside);
    page p(4096);
    p.writable()[7] = std::byte{1};
    second.write(p.bytes(), 0);
    page q(4096);
    first.read(q.writable(), 0);
    EXPECT_EQ(p, q);
    first.close();  // as if its node had been killed
    (void)error_text(EBUSY, [&] { (void)open(open_mode::read_write); });
    second.close();
    (void)open(open_mode::read_write);
  });
}
TEST(page_file, rounds_pages_up_to_whole_blocks) {
  const scratch folder;
  program([&] {
    const page_file f(folder / "pages", 3, 5000, open_mode::create, transfer_mode::automatic);
    EXPECT_EQ(f.slot_bytes(), 8192);
    EXPECT_EQ(std::filesystem::file_size(folder / "pages"), 3 * 8192);
  });
}

}  // namespace page_file_tests
}  // namespace orrery::storage
