// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/internal/io_testing.hpp>
#include <orrery/process/when_all.hpp>
#include <orrery/scheduler/io.hpp>

#include <cerrno>
#include <vector>

#include <sys/stat.h>
#include <sys/uio.h>

namespace orrery::io_testing {
namespace io_tests {

using namespace std::chrono_literals;

class io_files : public io_test {};
ORRERY_WITH_EACH_BACK_END(io_files);

// --- files ---------------------------------------------------------------------------------------

TEST_P(io_files, a_buffered_file_gives_back_what_was_written) {
  const scratch f;
  run_program([&] { write_and_read_back(f.path, 0, 3 << 20); });
}

TEST_P(io_files, a_file_on_tmpfs_gives_back_what_was_written) {
  const scratch f("/dev/shm");
  run_program([&] { write_and_read_back(f.path, 0, 3 << 20); });
}

TEST_P(io_files, an_unbuffered_file_gives_back_what_was_written) {
  const scratch f;
  const int fd = ::open(f.path.c_str(), O_RDWR | O_DIRECT);
  if (fd < 0) GTEST_SKIP() << "no O_DIRECT in /var/tmp";
  ::close(fd);
  run_program([&] { write_and_read_back(f.path, O_DIRECT, 4 << 20); });
}

TEST_P(io_files, vectors_are_scattered_and_gathered_in_order) {
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    std::string a = "one ";
    std::string b = "two ";
    std::string c = "three";
    const std::array<iovec, 3> from{{{a.data(), a.size()}, {b.data(), b.size()}, {c.data(), c.size()}}};
    EXPECT_EQ(io::writev(fd.get(), from, 5), 13U);
    std::string d(6, '.');
    std::string e(20, '.');
    const std::array<iovec, 2> into{{{d.data(), d.size()}, {e.data(), e.size()}}};
    EXPECT_EQ(io::readv(fd.get(), into, 5), 13U);
    EXPECT_EQ(d + e.substr(0, 7), "one two three");
  });
}

TEST_P(io_files, a_read_at_the_end_of_a_file_is_short) {
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    io::write_all(fd.get(), bytes_of("0123456789"), 0);
    std::array<std::byte, 100> b{};
    EXPECT_EQ(io::read(fd.get(), b, 7), 3U);
    EXPECT_EQ(io::read(fd.get(), b, 10), 0U);
    EXPECT_EQ(io::read_all(fd.get(), b, 4), 6U);
    EXPECT_EQ(text_of(std::span(b).first(6)), "456789");
  });
}

TEST_P(io_files, without_an_offset_a_file_is_read_from_its_position) {
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    io::write_all(fd.get(), bytes_of("0123456789"));
    EXPECT_EQ(lseek(fd.get(), 0, SEEK_CUR), 10);
    lseek(fd.get(), 3, SEEK_SET);
    std::array<std::byte, 4> b{};
    EXPECT_EQ(io::read(fd.get(), b), 4U);
    EXPECT_EQ(io::read_all(fd.get(), b), 3U);
    EXPECT_EQ(text_of(std::span(b).first(3)), "789");
  });
}

TEST_P(io_files, no_offset_stands_for_the_position) {
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    io::write_all(fd.get(), bytes_of("0123456789"), 0);
    std::array<std::byte, 4> b{};
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{1} << 63}) {
      EXPECT_THROW((void)io::read(fd.get(), b, offset), std::system_error);
      EXPECT_THROW((void)io::read_all(fd.get(), b, offset), std::system_error);
      EXPECT_THROW((void)io::write(fd.get(), b, offset), std::system_error);
      EXPECT_THROW(io::write_all(fd.get(), b, offset), std::system_error);
      EXPECT_THROW((void)io::start_read(fd.get(), b, offset), std::system_error);
    }
    EXPECT_EQ(lseek(fd.get(), 0, SEEK_CUR), 0);
  });
}

TEST_P(io_files, fallocate_makes_a_file_longer) {
  const scratch f("/dev/shm");
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    io::fallocate(fd.get(), 0, 1 << 20);
    struct stat s{};
    ASSERT_EQ(fstat(fd.get(), &s), 0);
    EXPECT_EQ(s.st_size, 1 << 20);
    EXPECT_EQ(s.st_blocks, (1 << 20) / 512);
  });
}

TEST_P(io_files, a_closed_descriptor_is_gone) {
  const scratch f;
  run_program([&] {
    const int fd = io::open(f.path, O_RDONLY);
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    io::close(fd);
    EXPECT_EQ(fcntl(fd, F_GETFD), -1);
  });
}

TEST_P(io_files, open_creates_with_the_mode) {
  const scratch f;
  std::filesystem::remove(f.path);
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR | O_CREAT | O_EXCL, 0600);
    struct stat s{};
    ASSERT_EQ(fstat(fd.get(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600U);
  });
}

// --- errors --------------------------------------------------------------------------------------

TEST_P(io_files, a_file_that_is_not_there_is_named) {
  run_program([&] {
    const std::string what = error_text([] { (void)io::open("/nowhere/at/all", O_RDONLY); }, ENOENT);
    EXPECT_EQ(what, "open of /nowhere/at/all: No such file or directory");
  });
}

TEST_P(io_files, a_bad_descriptor_is_an_error) {
  run_program([&] {
    std::array<std::byte, 8> b{};
    EXPECT_EQ(error_text([&] { (void)io::read(987654, b, 4096); }, EBADF),
              "read of 8 bytes at offset 4096 of descriptor 987654: Bad file descriptor");
    error_text([&] { (void)io::read(987654, b); }, EBADF);
    error_text([&] { (void)io::write(987654, b, 0); }, EBADF);
    error_text([&] { (void)io::write(987654, b); }, EBADF);
    error_text([&] { io::fsync(987654); }, EBADF);
    error_text([&] { io::close(987654); }, EBADF);
    error_text([&] { (void)io::wait_readable(987654); }, EBADF);
    error_text([&] { (void)io::wait_readable(987654, 0ns); }, EBADF);
  });
}

TEST_P(io_files, a_folder_cannot_be_read) {
  run_program([&] {
    const io::descriptor fd("/", O_RDONLY);
    std::array<std::byte, 8> b{};
    const std::string what = error_text([&] { (void)io::read(fd.get(), b, 0); }, EISDIR);
    EXPECT_NE(what.find("(/): Is a directory"), std::string::npos) << what;
    error_text([&] { (void)io::read(fd.get(), b); }, EISDIR);
  });
}

TEST_P(io_files, a_full_device_is_an_error) {
  run_program([&] {
    const io::descriptor fd("/dev/full", O_RDWR);
    EXPECT_EQ(
        error_text([&] { io::write_all(fd.get(), bytes_of("hello"), 0); }, ENOSPC).find("write of 5 bytes at offset 0"),
        0U);
    error_text([&] { io::write_all(fd.get(), bytes_of("hello")); }, ENOSPC);
    error_text([&] { (void)io::start_write(fd.get(), bytes_of("hello"), 0).get(); }, ENOSPC);
  });
}

TEST_P(io_files, a_read_that_fails_in_the_device_is_an_error) {
  run_program([&] {
    const io::descriptor fd("/proc/self/mem", O_RDONLY);  // nothing is mapped at 0
    std::array<std::byte, 8> b{};
    error_text([&] { (void)io::read(fd.get(), b, 0); }, EIO);
  });
}

TEST_P(io_files, unaligned_memory_for_an_unbuffered_file_is_explained) {
  const scratch f;
  const int direct = ::open(f.path.c_str(), O_RDWR | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "no O_DIRECT in /var/tmp";
  ::close(direct);
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR | O_DIRECT);
    const aligned b(8192);
    const std::string what = error_text([&] { (void)io::write(fd.get(), b.span().subspan(1, 4096), 0); }, EINVAL);
    EXPECT_NE(what.find("multiples of the device's block size"), std::string::npos) << what;
  });
}

TEST_P(io_files, writing_to_what_nobody_reads_is_an_error_and_no_signal) {
  run_program([&] {
    for (const auto kind : {pair::pipe, pair::socket}) {
      pair p(kind);
      p.close_end(0);
      error_text([&] { (void)io::write(p.in(), bytes_of("x")); }, EPIPE);
    }
  });
}

TEST_P(io_files, outside_of_a_process_it_is_an_error) {
  std::array<std::byte, 8> b{};
  EXPECT_THROW((void)io::read(0, b, 0), usage_error);
}

// --- several at once -----------------------------------------------------------------------------

TEST_P(io_files, a_process_has_many_requests_on_their_way) {
  constexpr std::size_t pages = 64;
  constexpr std::size_t page = 4096;
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    std::vector<std::byte> out(pages * page);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>(i / page);
    std::vector<future<std::size_t>> writes;
    for (std::size_t i = 0; i < pages; ++i)
      writes.push_back(io::start_write(fd.get(), std::span(out).subspan(i * page, page), i * page));
    for (const std::size_t n : when_all(std::move(writes)).get()) EXPECT_EQ(n, page);
    io::start_fdatasync(fd.get()).get();
    io::start_fsync(fd.get()).get();
    std::vector<std::byte> back(out.size());
    std::vector<future<std::size_t>> reads;
    for (std::size_t i = pages; i-- > 0;)
      reads.push_back(io::start_read(fd.get(), std::span(back).subspan(i * page, page), i * page));
    for (auto& r : reads) EXPECT_EQ(r.get(), page);
    EXPECT_EQ(out, back);
  });
}

TEST_P(io_files, started_stream_requests_end_in_any_order) {
  const pair a;
  const pair b;
  run_program([&] {
    std::array<std::byte, 4> from_a{};
    std::array<std::byte, 4> from_b{};
    auto first = io::start_read(a.out(), from_a);
    auto second = io::start_read(b.out(), from_b);
    EXPECT_EQ(io::start_write(b.in(), bytes_of("bb")).get(), 2U);
    EXPECT_EQ(second.get(), 2U);
    EXPECT_FALSE(first.ready());
    io::write_all(a.in(), bytes_of("a"));
    EXPECT_EQ(first.get(), 1U);
  });
}

TEST_P(io_files, the_error_of_a_started_request_is_in_its_future) {
  run_program([&] {
    std::array<std::byte, 8> b{};
    auto f = io::start_read(987654, b, 0);
    f.wait();
    EXPECT_EQ(error_text([&] { (void)f.get(); }, EBADF),
              "read of 8 bytes at offset 0 of descriptor 987654: Bad file descriptor");
  });
}

TEST_P(io_files, a_request_whose_future_is_dropped_is_carried_out) {
  const pair p;
  run_program([&] {
    std::array<std::byte, 8> b{};
    (void)io::start_read(p.out(), b);
    io::write_all(p.in(), bytes_of("abc"));
    while (detail::here_pe().io().outstanding() != 0) yield();
    EXPECT_EQ(text_of(std::span(b).first(3)), "abc");
  });
}

TEST_P(io_files, a_started_request_can_be_followed_by_another) {
  const scratch f;
  run_program([&] {
    const io::descriptor fd(f.path, O_RDWR);
    io::write_all(fd.get(), bytes_of("0123456789"), 0);
    std::array<std::byte, 4> a{};
    std::array<std::byte, 4> b{};
    future<std::size_t> second;
    auto first = io::start_read(fd.get(), a, 0).then([&](std::size_t n) {
      second = io::start_read(fd.get(), b, n);
      return n;
    });
    EXPECT_EQ(first.get(), 4U);
    EXPECT_EQ(second.get(), 4U);
    EXPECT_EQ(text_of(b), "4567");
  });
}

// A thousand processes use a file while another computes on their PE; both get on.
TEST_P(io_files, a_thousand_processes_share_a_pe_with_one_that_computes) {
  constexpr std::uint64_t processes = 1000;
  const scratch f;
  run_program(
      [&] {
        const io::descriptor fd(f.path, O_RDWR);
        const auto me = this_process<function>();
        std::uint64_t ended = 0;
        std::uint64_t turns = 0;
        std::uint64_t turns_between = 0;
        go(here(), [&] {
          while (ended != processes) {
            ++turns;
            yield();
          }
          send(me, -1);
        });
        for (std::uint64_t i = 0; i < processes; ++i)
          go(here(), [&, i, me] {
            std::array<std::byte, 64> out{};
            out.fill(static_cast<std::byte>(i));
            const std::uint64_t before = turns;
            io::write_all(fd.get(), out, i * out.size());
            std::array<std::byte, 64> back{};
            EXPECT_EQ(io::read_all(fd.get(), back, i * back.size()), back.size());
            EXPECT_EQ(out, back);
            turns_between += turns - before;
            ++ended;
            send(me, 1);
          });
        int sum = 0;
        for (std::uint64_t i = 0; i <= processes; ++i) sum += receive<int>();
        EXPECT_EQ(sum, static_cast<int>(processes) - 1);
        EXPECT_GE(turns_between,
                  processes);  // nobody was served without the others having had their turn
      },
      "--orrery-pes=1");
}

}  // namespace io_tests
}  // namespace orrery::io_testing
