// SPDX-License-Identifier: Apache-2.0
#include <orrery/storage/array_device.hpp>

#include <orrery/orrery.hpp>
#include <orrery/storage/internal/test_devices.hpp>
#include <orrery/storage/internal/test_support.hpp>

#include <cerrno>
#include <complex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::storage {
namespace array_device_tests {

using testing::element_at;
using testing::error_text;
using testing::page_of;
using testing::program;
using testing::scratch;
using testing::test_device;
using testing::text_of;

constexpr index3 shape{16, 16, 16};
constexpr element_type type = element_type::complex128;
constexpr std::size_t page_bytes = 64 << 10;

remote<test_device> make(const scratch& folder, std::uint64_t pages, cache_options cache, device_options options = {}) {
  return spawn<test_device>(pe(1), folder / "pages", pages, shape, type, options, cache);
}
array_page numbered(const index3& s, int from) {
  array_page p(s, element_type::float64);
  std::int64_t n = from;
  for (double& x : p.writable_elements<double>()) x = element_at<double>(n++);
  return p;
}

// --- boxes and transposes ------------------------------------------------------------------------

TEST(array_page_device, reads_and_writes_transposed) {
  const scratch folder;
  program([&] {
    auto device = spawn<array_page_device>(pe(1), folder / "pages", 3, index3{3, 4, 5}, element_type::float64);
    const array_page p = numbered({3, 4, 5}, 0);
    device->write_elements(p, 0);
    array_page q = p;
    q.transpose13();
    EXPECT_EQ(device->read_transpose13(0), q);
    device->write_transpose13(q, 1);
    EXPECT_EQ(device->read_elements(1), p);
    q = p;
    q.transpose23();
    EXPECT_EQ(device->read_transpose23(0), q);
    device->write_transpose23(q, 2);
    EXPECT_EQ(device->read_elements(2), p);
    EXPECT_THROW(device->write_transpose13(p, 1), std::invalid_argument);
  });
}
TEST(array_page_device, reads_and_writes_boxes) {
  const scratch folder;
  program([&] {
    auto device = spawn<array_page_device>(pe(1), folder / "pages", 1, index3{3, 4, 5}, element_type::float64);
    device->write_elements(numbered({3, 4, 5}, 0), 0);
    const array_page part = numbered({1, 2, 3}, 500);
    device->write_box(part, {1, 2, 2}, 0);
    EXPECT_EQ(device->read_box(0, {{1, 2, 2}, {2, 4, 5}}), part);
    EXPECT_EQ(device->read_box(0, {{1, 1, 4}, {2, 2, 5}}).elements<double>()[0], element_at<double>(29));
    EXPECT_THROW((void)device->read_box(0, {{1, 1, 4}, {2, 2, 6}}), std::out_of_range);
    EXPECT_THROW(device->write_box(part, {1, 3, 2}, 0), std::out_of_range);
    EXPECT_THROW(device->write_box(array_page({1, 1, 1}, element_type::float32), {0, 0, 0}, 0), std::invalid_argument);
  });
}
TEST(array_page_device, keeps_all_boxes_that_many_clients_write_to_one_page) {
  const scratch folder;
  program([&] {
    auto device = spawn<array_page_device>(pe(1), folder / "pages", 1, index3{4, 4, 4}, element_type::float64);
    std::vector<future<void>> writes;
    for_each_place(domain::of_shape({4, 4, 4}), [&](const index3& i) {
      writes.push_back(
          start(device)->write_box(numbered({1, 1, 1}, static_cast<int>(i[0] * 16 + i[1] * 4 + i[2])), i, 0));
    });
    when_all(std::move(writes)).get();
    EXPECT_EQ(device->read_elements(0), numbered({4, 4, 4}, 0));
  });
}
TEST(array_page_device, takes_the_pages_of_an_existing_device) {
  const scratch folder;
  program([&] {
    auto pages = spawn<page_device>(pe(1), folder / "pages", 2, page_bytes);
    pages->write(page_of(page_bytes, 1), 1);
    auto device = spawn<array_device>(pe(1), pages, shape, type);
    EXPECT_EQ(device->read(1), page_of(page_bytes, 1));
    device->write(page_of(page_bytes, 2), 0);
    device->flush();
    EXPECT_EQ(pages->read(0), page_of(page_bytes, 2));
    EXPECT_THROW((void)spawn<array_device>(pe(1), pages, index3{100, 100, 100}, type), std::invalid_argument);
  });
}

// --- reading before it is asked ------------------------------------------------------------------

TEST(array_device, reads_a_page_of_its_cache_without_the_drive) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 4, {.cache_pages = 4, .write_behind_pages = 0});
    for (unsigned i = 0; i < 4; ++i) device->write(page_of(page_bytes, i), i);
    for (unsigned i = 0; i < 4; ++i) post(device)->read_into_cache(i);
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(device->read(i), page_of(page_bytes, i));
    EXPECT_EQ(device->log().reads, 4);
    EXPECT_EQ(device->statistics().prefetches, 4);
    EXPECT_EQ(device->statistics().cache_hits, 4);
  });
}
TEST(array_device, drops_hints_for_which_it_has_no_place) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 4, {.cache_pages = 2, .write_behind_pages = 0});
    for (unsigned i = 0; i < 3; ++i) device->read_into_cache(i);
    EXPECT_EQ(device->statistics().prefetches_dropped, 1);
    (void)device->read(0);  // now there is a place
    device->read_into_cache(3);
    EXPECT_EQ(device->statistics().prefetches, 3);
    EXPECT_EQ(device->log().reads, 3);
  });
}
TEST(array_device, tells_who_reads_of_an_error_and_not_who_gave_the_hint) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 1, {});
    device->fail_reads(2, EIO);
    device->read_into_cache(0);
    (void)error_text(EIO, [&] { (void)device->read(0); });
    EXPECT_EQ(device->read(0), page(page_bytes));
  });
}
TEST(array_device, keeps_no_empty_page_of_a_hint_that_could_not_be_followed) {
  const scratch folder;
  program([&] {
    auto pages = spawn<page_device>(pe(1), folder / "pages", 2, page_bytes);
    auto device = spawn<array_device>(pe(0), remote<page_device>(pages), shape, type);
    destroy(pages);
    device->read_into_cache(1);
    EXPECT_EQ(device->statistics().prefetches_dropped, 1);
    EXPECT_THROW((void)device->read(1), process_gone);
  });
}
TEST(array_device, does_not_read_what_was_written_meanwhile_from_its_cache) {
  const scratch folder;
  program([&] {
    for (const std::uint32_t behind : {0U, 2U}) {
      const scratch sub;
      auto device = make(sub, 1, {.cache_pages = 2, .write_behind_pages = behind});
      device->read_into_cache(0);
      device->write(page_of(page_bytes, 1), 0);
      EXPECT_EQ(device->read(0), page_of(page_bytes, 1));
      device->flush();
      EXPECT_EQ(device->read(0), page_of(page_bytes, 1));
      destroy(device);
    }
  });
}

// --- writing after it has answered ---------------------------------------------------------------

TEST(array_device, answers_a_write_before_the_drive_has_the_page) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 2, {.cache_pages = 2, .write_behind_pages = 2});
    device->hold_writes();
    device->write(page_of(page_bytes, 1), 0);
    device->write(page_of(page_bytes, 2), 1);
    EXPECT_EQ(device->read(0), page_of(page_bytes, 1));
    EXPECT_EQ(device->log().reads, 0);
    auto third = start(device)->write(page_of(page_bytes, 3), 1);
    auto flushed = start(device)->flush();
    device->release_writes();
    third.get();
    flushed.get();
    device->drop_cache();
    EXPECT_EQ(device->read(1), page_of(page_bytes, 3));
  });
}
TEST(array_device, lets_a_writer_wait_while_it_has_no_room) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 40, {.cache_pages = 1, .write_behind_pages = 3});
    std::vector<future<void>> writes;
    for (unsigned i = 0; i < 40; ++i) writes.push_back(start(device)->write(page_of(page_bytes, i), i));
    when_all(std::move(writes)).get();
    device->flush();
    device->drop_cache();
    for (unsigned i = 0; i < 40; ++i) EXPECT_EQ(device->read(i), page_of(page_bytes, i));
  });
}
TEST(array_device, does_not_copy_what_a_client_changes_after_its_write) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 1, {});
    device->hold_writes();
    page p = page_of(page_bytes, 1);
    device->write(p, 0);
    p.writable()[0] ^= std::byte{0xff};
    device->release_writes();
    device->flush();
    device->drop_cache();
    EXPECT_EQ(device->read(0), page_of(page_bytes, 1));
  });
}
TEST(array_device, throws_the_error_of_a_write_behind_at_the_next_flush) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 3, {.cache_pages = 2, .write_behind_pages = 2});
    device->fail_writes(1, ENOSPC);
    device->write(page_of(page_bytes, 1), 0);
    const std::string text = error_text(ENOSPC, [&] { device->flush(); });
    EXPECT_NE(text.find("injected at page 0"), std::string::npos) << text;
    EXPECT_EQ(device->read(0), page_of(page_bytes, 1));  // it is not lost
    device->flush();
    device->drop_cache();
    EXPECT_EQ(device->read(0), page_of(page_bytes, 1));
    EXPECT_GT(device->log().reads, 0);
  });
}
TEST(array_device, throws_the_error_of_a_write_behind_at_the_next_write) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 3, {.cache_pages = 2, .write_behind_pages = 1});
    device->fail_writes(1, EIO);
    device->write(page_of(page_bytes, 1), 0);
    (void)error_text(EIO, [&] { device->write(page_of(page_bytes, 2), 1); });
    // there is no room until a flush
    (void)error_text(EIO, [&] { device->write(page_of(page_bytes, 2), 1); });
    device->flush();
    device->write(page_of(page_bytes, 2), 1);
    device->flush();
  });
}
TEST(array_device, throws_the_errors_of_several_writes_behind_once) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 3, {.cache_pages = 2, .write_behind_pages = 3});
    device->hold_writes();
    device->fail_writes(3, EIO);
    for (unsigned i = 0; i < 3; ++i) device->write(page_of(page_bytes, i), i);
    auto closed = start(device)->close();
    device->release_writes();
    const std::string text = error_text(EIO, [&] { closed.get(); });
    EXPECT_NE(text.find("3 pages of"), std::string::npos) << text;
    device->close();  // all is well now
    auto again = spawn<page_device>(pe(1), folder / "pages", 3, page_bytes, device_options{open_mode::read_only});
    for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(again->read(i), page_of(page_bytes, i));
  });
}
TEST(array_device, writes_what_is_left_when_it_is_destroyed) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 8, {.cache_pages = 0, .write_behind_pages = 8});
    for (unsigned i = 0; i < 8; ++i) device->write(page_of(page_bytes, i), i);
    destroy(device);
    remote<page_device> again;
    while (!again) {  // until the file is free: the device ends when its write-backs have ended
      try {
        again = spawn<page_device>(pe(1), folder / "pages", 8, page_bytes, device_options{open_mode::read_write});
      } catch (const std::system_error& e) {
        ASSERT_EQ(e.code().value(), EBUSY);
      }
    }
    for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(again->read(i), page_of(page_bytes, i));
  });
}
TEST(array_device, writes_what_is_left_when_the_program_ends) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 8, {.cache_pages = 0, .write_behind_pages = 8}, {.sums = folder / "sums"});
    for (unsigned i = 0; i < 8; ++i) device->write(page_of(page_bytes, i), i);
  });
  program([&] {
    auto again = spawn<page_device>(pe(1), folder / "pages", 8, page_bytes,
                                    device_options{.mode = open_mode::read_only, .sums = folder / "sums"});
    for (unsigned i = 0; i < 8; ++i) EXPECT_EQ(again->read(i), page_of(page_bytes, i));
  });
}
TEST(array_device, writes_through_if_it_may_not_write_behind) {
  const scratch folder;
  program([&] {
    auto device = make(folder, 1, {.cache_pages = 4, .write_behind_pages = 0});
    device->fail_writes(1, EIO);
    (void)error_text(EIO, [&] { device->write(page_of(page_bytes, 1), 0); });
  });
}

}  // namespace array_device_tests
}  // namespace orrery::storage
