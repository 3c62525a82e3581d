// SPDX-License-Identifier: Apache-2.0
// What is outstanding when the runtime ends, and where io_uring is not to be had.
#include <orrery/process/internal/io_testing.hpp>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace orrery::io_testing {
namespace io_end_tests {

using namespace std::chrono_literals;

class io_end : public io_test {};
ORRERY_WITH_EACH_BACK_END(io_end);

// --- the end -------------------------------------------------------------------------------------

TEST_P(io_end, what_waits_for_data_when_the_program_ends_is_unwound) {
  const pair p;
  const pair full(pair::slow_pipe);
  int unwound = 0;
  struct counting {
    int& n;
    ~counting() { ++n; }
  };
  while (::write(full.in(), "x", 1) == 1) {
  }
  run_program(
      [&] {
        std::array<std::byte, 8> b{};
        go(here(), [&] {
          const counting c{unwound};
          std::array<std::byte, 8> mine{};
          (void)io::read(p.out(), mine);
        });
        go(here(), [&] {
          const counting c{unwound};
          (void)io::wait_readable(p.out());
        });
        go(here(), [&] {
          const counting c{unwound};
          (void)io::wait_readable(p.out(), 1h);
        });
        go(here(), [&] {
          const counting c{unwound};
          io::write_all(full.in(), std::array<std::byte, 8>{});
        });
        go(here(), [&] {
          const counting c{unwound};
          auto f = io::start_read(p.out(), b);
          EXPECT_THROW((void)f.get(), stopped);
          EXPECT_THROW((void)io::read(p.out(), b), stopped);
          EXPECT_THROW((void)io::start_read(p.out(), b), stopped);
        });
        for (int i = 0; i < 5; ++i) yield();
        EXPECT_EQ(unwound, 0);
      },
      "--orrery-pes=1");
  EXPECT_EQ(unwound, 5);
}

// The buffer dies with its owner; a kernel that still wrote into it would be seen by
// AddressSanitizer or take the data.
struct reader {
  std::vector<std::byte> buffer = std::vector<std::byte>(1 << 16);
  std::vector<future<std::size_t>> waiting;
  int fd = -1;
  void begin(int from) {
    fd = from;
    for (int i = 0; i < 8; ++i) waiting.push_back(io::start_read(fd, buffer));
  }
};
ORRERY_PROCESS(reader, begin);

TEST_P(io_end, nothing_is_read_after_the_end) {
  const pair p;
  run_program([&] { spawn<reader>(pe(1))->begin(p.out()); });
  ASSERT_EQ(::write(p.in(), "left alone", 10), 10);
  std::array<char, 16> b{};
  EXPECT_EQ(::read(p.out(), b.data(), b.size()), 10);
}

struct late_writer {
  std::string path;
  io::descriptor fd;
  void begin(std::string p) {
    path = std::move(p);
    fd = io::descriptor(path, O_RDWR);
  }
  ~late_writer() {
    if (!fd) return;
    io::write_all(fd.get(), bytes_of("written "), 0);
    EXPECT_EQ(io::start_write(fd.get(), bytes_of("at the end"), 8).get(), 10U);
    io::fsync(fd.get());
    fd.close();
  }
};
ORRERY_PROCESS(late_writer, begin);

TEST_P(io_end, an_object_that_ends_with_the_program_can_still_write) {
  const scratch f;
  run_program([&] { spawn<late_writer>(pe(1))->begin(f.path); });
  std::array<char, 64> b{};
  const int fd = ::open(f.path.c_str(), O_RDONLY);
  EXPECT_EQ(::read(fd, b.data(), b.size()), 18);
  ::close(fd);
  EXPECT_STREQ(b.data(), "written at the end");
}

// A post before the end is executed, and is not cut off while its file is slow.
struct writer {
  void write(std::string path) {
    const io::descriptor fd(path, O_WRONLY);
    for (std::uint64_t i = 0; i < 10; ++i) {
      io::write_all(fd.get(), bytes_of("0123456789"), i * 10);
      io::fsync(fd.get());
    }
  }
};
ORRERY_PROCESS(writer, write);

TEST_P(io_end, a_write_that_was_posted_before_the_end_is_finished) {
  const scratch f("/dev/shm");
  run_program([&] { post(spawn<writer>(pe(1)))->write(f.path); });
  EXPECT_EQ(std::filesystem::file_size(f.path), 100U);
}

TEST_P(io_end, a_descriptor_is_closed_while_the_program_ends) {
  const scratch f;
  const pair p;
  int fd = -1;
  run_program(
      [&] {
        go(here(), [&] {
          const io::descriptor mine(f.path, O_RDONLY);
          fd = mine.get();
          (void)io::wait_readable(p.out());
        });
        while (fd < 0) yield();
      },
      "--orrery-pes=1");
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

// --- without io_uring ----------------------------------------------------------------------------

// From here on this thread and those that it makes get EPERM from io_uring_setup, as in a
// container.
bool forbid_io_uring() {
  std::array<sock_filter, 4> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{code.size(), code.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

[[noreturn]] void use_both_pes_without_io_uring() {
  if (!forbid_io_uring()) std::exit(77);
  int result = 1;
  run_program([&] {
    const scratch f;
    const auto me = this_process<function>();
    for (unsigned at = 0; at < 2; ++at)
      go(pe(at), [&, me] {
        write_and_read_back(f.path, 0, 1 << 16);
        send(me, 1);
      });
    (void)receive<int>();
    (void)receive<int>();
    result = 0;
  });
  std::exit(result);
}

TEST(io_without_io_uring, helper_threads_take_over_and_it_is_said_once) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      use_both_pes_without_io_uring(), ::testing::ExitedWithCode(0),
      "^orrery: io_uring is not to be had here \\(io_uring_setup: Operation not permitted\\): files are read and "
      "written by helper threads\n$");
}

}  // namespace io_end_tests
}  // namespace orrery::io_testing
