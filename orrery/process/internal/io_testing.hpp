// SPDX-License-Identifier: Apache-2.0
#pragma once

// For the tests of I/O only: programs, descriptors of all kinds, and the suite that runs with each
// back end.

#include <orrery/process/call.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/io.hpp>
#include <orrery/process/runtime.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::io_testing {

// Runs `body` as the main process of a program with two PEs.
inline void run_program(const std::function<void()>& body, std::string pes = "--orrery-pes=2") {
  std::string name = "io.test";
  std::array<char*, 3> argv{name.data(), pes.data(), nullptr};
  const int result = run(2, argv.data(), [&](const args&) {
    body();
    return 0;
  });
  EXPECT_EQ(result, 0);
}

// Runs f as a process of this node.
inline void go(placement where, std::function<void()> f) {
  (void)spawn(
      where,
      [](std::uintptr_t address) {
        const wire::unique_ptr<std::function<void()>> body(reinterpret_cast<std::function<void()>*>(address));
        (*body)();
      },
      reinterpret_cast<std::uintptr_t>(new std::function<void()>(std::move(f))));
}

inline std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s)); }
inline std::string text_of(std::span<const std::byte> b) { return {reinterpret_cast<const char*>(b.data()), b.size()}; }

// A temporary file; /var/tmp is on a disk where anything is.
inline std::string scratch_file(const std::string& folder = "/var/tmp") {
  std::string path = folder + "/orrery-io-XXXXXX";
  const int fd = mkstemp(path.data());
  EXPECT_GE(fd, 0) << path;
  ::close(fd);
  return path;
}
struct scratch {
  std::string path;
  explicit scratch(const std::string& folder = "/var/tmp") : path(scratch_file(folder)) {}
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() { std::filesystem::remove(path); }
};

struct pair {
  std::array<int, 2> ends{-1, -1};
  enum kind { pipe, socket, slow_pipe };
  explicit pair(kind k = pipe) {
    const int r = k == socket ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data())
                              : pipe2(ends.data(), O_CLOEXEC | (k == slow_pipe ? O_NONBLOCK : 0));
    EXPECT_EQ(r, 0);
  }
  pair(const pair&) = delete;
  pair& operator=(const pair&) = delete;
  ~pair() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) ::close(ends[i]);
    ends[i] = -1;
  }
  [[nodiscard]] int out() const { return ends[0]; }
  [[nodiscard]] int in() const { return ends[1]; }
};

struct aligned {
  struct free_it {
    void operator()(void* p) const { std::free(p); }
  };
  std::size_t size;
  wire::unique_ptr<std::byte, free_it> memory;
  explicit aligned(std::size_t n) : size(n), memory(static_cast<std::byte*>(std::aligned_alloc(4096, n))) {
    std::fill_n(memory.get(), n, std::byte{0});
  }
  [[nodiscard]] std::span<std::byte> span() const { return {memory.get(), size}; }
};

inline std::string error_text(const std::function<void()>& f, int code) {
  try {
    f();
  } catch (const std::system_error& e) {
    EXPECT_EQ(e.code().value(), code) << e.what();
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

class io_test : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("ORRERY_IO", GetParam(), 1); }
  void TearDown() override { unsetenv("ORRERY_IO"); }
};

// The name of a back end in the name of a test.
inline std::string back_end_name(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}
#define ORRERY_WITH_EACH_BACK_END(suite) \
  INSTANTIATE_TEST_SUITE_P(back_ends, suite, ::testing::Values("uring", "uring-basic", "threads"), back_end_name)

inline void write_and_read_back(const std::string& path, int flags, std::size_t size) {
  io::descriptor fd(path, O_RDWR | O_CREAT | O_TRUNC | flags);
  const aligned out(size);
  for (std::size_t i = 0; i < size; ++i) out.span()[i] = static_cast<std::byte>(i * 7 + i / 256);
  io::write_all(fd.get(), out.span(), 0);
  io::fdatasync(fd.get());
  io::fsync(fd.get());
  const aligned back(size);
  EXPECT_EQ(io::read_all(fd.get(), back.span(), 0), size);
  EXPECT_TRUE(std::ranges::equal(out.span(), back.span()));
  fd.close();
}

}  // namespace orrery::io_testing
