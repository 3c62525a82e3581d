// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/page_device.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/detail/page_sums.hpp>
#include <orrery/storage/internal/test_devices.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace orrery::storage {
namespace page_device_tests {

using testing::error_text;
using testing::page_of;
using testing::program;
using testing::scratch;
using testing::test_device;
using testing::text_of;

constexpr std::size_t page_bytes = 64 << 10;

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

// --- with each way of transfer -------------------------------------------------------------------

class each_transfer : public ::testing::TestWithParam<std::tuple<transfer_mode, const char*, std::uint32_t>> {
 protected:
  void SetUp() override { setenv("ORRERY_IO", std::get<1>(GetParam()), 1); }
  void TearDown() override { unsetenv("ORRERY_IO"); }
  [[nodiscard]] static device_options options() { return {.transfers = std::get<0>(GetParam())}; }
  [[nodiscard]] static placement where() { return pe(std::get<2>(GetParam())); }
};
INSTANTIATE_TEST_SUITE_P(page_device, each_transfer,
                         ::testing::Combine(::testing::Values(transfer_mode::automatic, transfer_mode::buffered),
                                            ::testing::Values("uring", "threads"), ::testing::Values(0U, 1U)));

TEST_P(each_transfer, reads_what_was_written) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(where(), folder / "pages", 5, page_bytes, options());
    for (unsigned i = 0; i < 5; ++i) device->write(page_of(page_bytes, i), 4 - i);
    device->flush();
    for (unsigned i = 0; i < 5; ++i) EXPECT_EQ(device->read(4 - i), page_of(page_bytes, i));
    EXPECT_EQ(device->geometry().pages, 5);
    destroy(device);
    auto again = spawn<page_device>(where(), folder / "pages", 5, page_bytes,
                                    device_options{open_mode::read_only, std::get<0>(GetParam())});
    EXPECT_EQ(again->read(0), page_of(page_bytes, 4));
  });
}
TEST_P(each_transfer, serves_many_clients_at_once) {
  const scratch folder;
  program([&] {
    constexpr std::uint64_t each = 8;
    auto device = spawn<page_device>(where(), folder / "pages", 8 * each, page_bytes, options());
    const auto client = [](const remote<page_device>& d, std::uint64_t first) {
      std::vector<future<void>> writes;
      for (std::uint64_t i = first; i < first + each; ++i)
        writes.push_back(start(d)->write(page_of(page_bytes, static_cast<unsigned>(i)), i));
      when_all(std::move(writes)).get();
      std::vector<future<page>> reads;
      for (std::uint64_t i = first; i < first + each; ++i) reads.push_back(start(d)->read(i));
      bool good = true;
      for (std::uint64_t i = first; i < first + each; ++i)
        good = reads[i - first].get() == page_of(page_bytes, static_cast<unsigned>(i)) && good;
      send(orrery::lookup<function>("/test/main"), good);
    };
    publish("/test/main", this_process<function>());
    for (std::uint64_t c = 0; c < 8; ++c) (void)spawn(pe(c % 2), +client, device, c * each);
    for (int c = 0; c < 8; ++c) EXPECT_TRUE(receive<bool>());
  });
}

TEST(page_device, takes_pages_of_any_size) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(here(), folder / "pages", 3, 1000);
    for (unsigned i = 0; i < 3; ++i) device->write(page_of(1000, i), i);
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(device->read(i), page_of(1000, i));
  });
}
TEST(page_device, reads_after_a_write_that_was_started_what_was_written) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(pe(1), folder / "pages", 1, page_bytes);
    for (unsigned i = 0; i < 50; ++i) {
      auto written = start(device)->write(page_of(page_bytes, i), 0);
      auto read = start(device)->read(0);
      EXPECT_EQ(read.get(), page_of(page_bytes, i));
      written.get();
    }
  });
}
TEST(page_device, keeps_its_drive_as_deep_as_it_was_told_and_no_deeper) {
  const scratch folder;
  program([&] {
    auto device = spawn<test_device>(pe(1), folder / "pages", 64, index3{16, 16, 16}, element_type::complex128,
                                     device_options{.depth = 8}, cache_options{0, 0});
    device->gather_reads(8);  // if fewer come together, this hangs
    std::vector<future<page>> reads;
    for (std::uint64_t i = 0; i < 64; ++i) reads.push_back(start(device)->read(i));
    when_all(std::move(reads)).get();
    EXPECT_EQ(device->log().most_at_once, 8);
  });
}
TEST(page_device, gives_a_caller_on_its_node_the_memory_that_the_drive_filled) {
  const scratch folder;
  program([&] {
    auto device = spawn<test_device>(pe(1), folder / "pages", 1, index3{16, 16, 16}, element_type::complex128,
                                     device_options{}, cache_options{0, 0});
    const page mine = page_of(page_bytes, 1);
    device->write(mine, 0);
    EXPECT_EQ(device->log().last_memory, reinterpret_cast<std::uintptr_t>(mine.bytes().data()));
    const page p = device->read(0);
    EXPECT_EQ(device->log().last_memory, reinterpret_cast<std::uintptr_t>(p.bytes().data()));
    // ... also through a process that was launched beside it (Givelberg 2014, section 4.1)
    auto beside =
        spawn<array_page_device>(pe(0), remote<page_device>(device), index3{16, 16, 16}, element_type::complex128);
    const page q = beside->read(0);
    EXPECT_EQ(device->log().last_memory, reinterpret_cast<std::uintptr_t>(q.bytes().data()));
    EXPECT_EQ(q, p);
  });
}

// --- what goes wrong -----------------------------------------------------------------------------

TEST(page_device, refuses_an_index_or_a_page_that_is_not_its_own) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(pe(1), folder / "pages", 2, page_bytes);
    expect_in("page 2 of " + folder / "pages" + ", which has 2 pages",
              text_of<std::out_of_range>([&] { (void)device->read(2); }));
    expect_in("a page of 10 bytes", text_of<std::invalid_argument>([&] { device->write(page(10), 0); }));
  });
}
TEST(page_device, has_room_for_its_checksums_from_the_beginning) {
  const scratch folder;
  program([&] {
    constexpr std::uint64_t many = 10'000;
    const auto device =
        spawn<page_device>(pe(1), folder / "pages", many, 4096, device_options{.sums = folder / "sums"});
    struct stat pages{};
    struct stat sums{};
    ASSERT_EQ(::stat((folder / "pages").c_str(), &pages), 0);
    ASSERT_EQ(::stat((folder / "sums").c_str(), &sums), 0);
    // The file system can reserve nothing, if it has not for the pages.
    if (static_cast<std::uint64_t>(pages.st_blocks) * 512 < many * device->geometry().page_bytes) return;
    EXPECT_GE(sums.st_blocks * 512, 64 + 16 * 10'000);
  });
}
// A limit of the size of files stands for a full drive.
TEST(page_device, keeps_the_old_page_if_the_record_of_a_new_one_cannot_be_written) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(pe(1), folder / "pages", 4, page_bytes, device_options{.sums = folder / "sums"});
    device->write(page_of(page_bytes, 1), 3);
    struct rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
    struct rlimit small = before;
    small.rlim_cur = 64;
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
    std::string said;
    try {
      device->write(page_of(page_bytes, 2), 3);
    } catch (const std::system_error& e) {
      said = e.what();
    }
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)std::signal(SIGXFSZ, handler);
    expect_in("cannot write the record of page 3", said);
    EXPECT_EQ(device->read(3), page_of(page_bytes, 1));
  });
}
TEST(page_device, knows_which_pages_were_never_written) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(pe(1), folder / "pages", 4, page_bytes, device_options{.sums = folder / "sums"});
    device->write(page_of(page_bytes, 1), 2);
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(device->unwritten(), (std::vector<std::uint64_t>{0, 1, 3}));
      EXPECT_EQ(device->damage_of_written(2), "");
      EXPECT_EQ(device->damage_of(3), "");
      expect_in("page 3 of " + folder / "pages" + " has not come to its drive", device->damage_of_written(3));
      device->close();
      device = spawn<page_device>(pe(1), folder / "pages", 4, page_bytes,
                                  device_options{.mode = open_mode::read_only, .sums = folder / "sums"});
    }
  });
}
TEST(page_device, does_not_overwrite_a_file) {
  const scratch folder;
  program([&] {
    destroy(spawn<page_device>(here(), folder / "pages", 2, page_bytes));
    expect_in("cannot create " + folder / "pages",
              error_text(EEXIST, [&] { (void)spawn<page_device>(here(), folder / "pages", 2, page_bytes); }));
  });
}
TEST(page_device, names_a_file_that_is_missing_or_truncated) {
  const scratch folder;
  program([&] {
    const device_options open{.mode = open_mode::read_write};
    const std::string file = folder / "pages";
    expect_in("the device file " + file + " is missing",
              error_text(ENOENT, [&] { (void)spawn<page_device>(here(), file, 2, page_bytes, open); }));
    auto device = spawn<page_device>(here(), file, 2, page_bytes);
    std::filesystem::resize_file(file, page_bytes + 4096);
    expect_in("cannot read page 1 of " + file + ": the file was truncated",
              error_text(EINVAL, [&] { (void)device->read(1); }));
    destroy(device);
    expect_in(file + " was truncated: it has 69632 bytes and its 2 pages take 131072, so that page 1",
              error_text(EINVAL, [&] { (void)spawn<page_device>(here(), file, 2, page_bytes, open); }));
  });
}
TEST(page_device, says_how_much_room_there_is_when_there_is_too_little) {
  const scratch folder;
  program([&] {
    const std::string file = folder / "pages";
    const std::string text = error_text(ENOSPC, [&] { (void)spawn<page_device>(here(), file, 1 << 21, 4 << 20); });
    expect_in("with 2097152 pages, 8 TiB", text);
    expect_in("are free there: make room", text);
    EXPECT_FALSE(std::filesystem::exists(file));
  });
}
TEST(page_device, is_written_by_one_process_at_a_time) {
  const scratch folder;
  program([&] {
    const std::string file = folder / "pages";
    auto device = spawn<page_device>(here(), file, 1, page_bytes);
    const auto again = [&](open_mode m) { return spawn<page_device>(pe(1), file, 1, page_bytes, device_options{m}); };
    expect_in(file + " is open for writing", error_text(EBUSY, [&] { (void)again(open_mode::read_write); }));
    auto reader = again(open_mode::read_only);
    expect_in("was opened read-only", error_text(EROFS, [&] { reader->write(page(page_bytes), 0); }));
    destroy(device);
    destroy(again(open_mode::read_write));
  });
}
TEST(page_device, that_was_closed_says_so) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(here(), folder / "pages", 1, page_bytes);
    device->close();
    device->close();
    expect_in("was closed", error_text(EBADF, [&] { (void)device->read(0); }));
  });
}
TEST(page_device, passes_on_what_the_drive_says) {
  const scratch folder;
  program([&] {
    auto device = spawn<test_device>(pe(1), folder / "pages", 2, index3{16, 16, 16}, element_type::complex128,
                                     device_options{}, cache_options{0, 0});
    device->fail_reads(1, EIO);
    expect_in("injected at page 1", error_text(EIO, [&] { (void)device->read(1); }));
    EXPECT_EQ(device->read(1), page(page_bytes));
    device->fail_writes(1, ENOSPC);
    expect_in("injected at page 0", error_text(ENOSPC, [&] { device->write(page(page_bytes), 0); }));
  });
}

// --- checksums -----------------------------------------------------------------------------------

void flip_byte(const std::string& file, std::uint64_t offset) {
  std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
  f.seekg(static_cast<std::streamoff>(offset));
  const int c = f.get();
  f.seekp(static_cast<std::streamoff>(offset));
  f.put(static_cast<char>(c ^ 0x10));
  ASSERT_TRUE(f.good());
}

TEST(checksums, find_a_flipped_byte) {
  const scratch folder;
  program([&] {
    const std::string file = folder / "pages";
    const device_options options{.sums = folder / "sums"};
    auto device = spawn<page_device>(here(), file, 3, page_bytes, options);
    for (unsigned i = 0; i < 3; ++i) device->write(page_of(page_bytes, i), i);
    destroy(device);
    flip_byte(file, page_bytes + 100);
    for (const open_mode mode : {open_mode::read_write, open_mode::read_only}) {
      device = spawn<page_device>(pe(1), file, 3, page_bytes, device_options{.mode = mode, .sums = folder / "sums"});
      EXPECT_EQ(device->read(0), page_of(page_bytes, 0));
      expect_in("page 1 of " + file + " is damaged", error_text(EBADMSG, [&] { (void)device->read(1); }));
      EXPECT_EQ(device->read(2), page_of(page_bytes, 2));
      EXPECT_EQ(device->damage_of(2), "");
      expect_in("page 1 of " + file + " is damaged", device->damage_of(1));
      destroy(device);
    }
  });
}
TEST(checksums, find_a_page_at_the_wrong_place) {
  const page p = page_of(page_bytes, 1);
  EXPECT_NE(page_sums::sum_of(p.bytes(), 1), page_sums::sum_of(p.bytes(), 2));
}
TEST(checksums, find_a_write_that_was_interrupted) {
  const scratch folder;
  program([&] {
    const std::string file = folder / "pages";
    auto device = spawn<test_device>(pe(1), file, 2, index3{16, 16, 16}, element_type::complex128,
                                     device_options{.sums = folder / "sums"}, cache_options{0, 0});
    device->write(page_of(page_bytes, 1), 0);
    device->tear_next_write();
    (void)error_text(EIO, [&] { device->write(page_of(page_bytes, 2), 0); });
    expect_in("page 0 of " + file + " is incomplete", error_text(EBADMSG, [&] { (void)device->read(0); }));
    destroy(device);
    auto later = spawn<page_device>(pe(1), file, 2, page_bytes,
                                    device_options{.mode = open_mode::read_write, .sums = folder / "sums"});
    expect_in("page 0 of " + file + " is incomplete: a write of it was interrupted",
              error_text(EBADMSG, [&] { (void)later->read(0); }));
    later->write(page_of(page_bytes, 3), 0);
    EXPECT_EQ(later->read(0), page_of(page_bytes, 3));
  });
}
TEST(checksums, let_a_page_that_was_never_written_be_zeros) {
  const scratch folder;
  program([&] {
    auto device = spawn<page_device>(here(), folder / "pages", 2, page_bytes, device_options{.sums = folder / "sums"});
    EXPECT_EQ(device->read(1), page(page_bytes));
  });
}
TEST(checksums, refuse_a_file_that_holds_none_and_name_a_damaged_record) {
  const scratch folder;
  program([&] {
    const std::string file = folder / "pages";
    const std::string sums = folder / "sums";
    auto device = spawn<page_device>(here(), file, 2, page_bytes, device_options{.sums = sums});
    device->write(page_of(page_bytes, 1), 1);
    destroy(device);
    const auto open = [&](std::uint64_t pages) {
      return spawn<page_device>(here(), file, pages, page_bytes,
                                device_options{.mode = open_mode::read_only, .sums = sums});
    };
    expect_in(sums + " is not the file of checksums of 1 pages", error_text(EINVAL, [&] { (void)open(1); }));
    flip_byte(sums, 64 + 16);
    auto reader = open(2);
    expect_in("the record of page 1 in " + sums + " is damaged", error_text(EBADMSG, [&] { (void)reader->read(1); }));
    std::filesystem::resize_file(sums, 70);
    (void)error_text(EINVAL, [&] { (void)open(2); });
  });
}

}  // namespace page_device_tests
}  // namespace orrery::storage
