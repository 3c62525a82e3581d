// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/segment.hpp>

#include <algorithm>
#include <cstring>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace orrery::transport {
namespace segment_tests {

using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

constexpr std::uint64_t mib = 1 << 20;

class segment_test : public testing::shm_test {
 protected:
  static std::uint64_t memory_of(const segment& s) {
    struct stat info{};
    ::fstat(s.fd(), &info);
    return static_cast<std::uint64_t>(info.st_blocks) * 512;
  }
  static result<segment> open_own(int fd, std::uint64_t bytes, access mode = access::read_write) {
    return segment::open_peer(take(peer::open(take(this_peer()))), fd, bytes, mode, "the memory");
  }
};

TEST_F(segment_test, is_zero_private_and_takes_no_memory_at_first) {
  const segment s = take(segment::create("test", std::uint64_t{1} << 36));
  EXPECT_EQ(s.size(), std::uint64_t{1} << 36);
  EXPECT_EQ(memory_of(s), 0U);
  struct stat info{};
  ASSERT_EQ(::fstat(s.fd(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0600U);
  EXPECT_EQ(info.st_uid, ::geteuid());
  EXPECT_EQ(::fcntl(s.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  EXPECT_EQ(s.data()[s.size() - 1], std::byte{0});
}

TEST_F(segment_test, cannot_be_cut_short_by_anybody) {
  const segment s = take(segment::create("test", mib));
  EXPECT_EQ(::ftruncate(s.fd(), 4096), -1);
  EXPECT_EQ(::ftruncate(s.fd(), 2 * mib), -1);
  EXPECT_EQ(::fcntl(s.fd(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
}

TEST_F(segment_test, has_memory_where_it_was_asked_for_until_it_is_discarded) {
  const segment s = take(segment::create("test", 4 * mib));
  take(s.back(mib, mib));
  EXPECT_EQ(memory_of(s), mib);
  take(s.back(mib, mib));
  EXPECT_EQ(memory_of(s), mib);
  std::memset(s.data() + mib, 0x55, mib);
  EXPECT_TRUE(s.discard(mib, mib));
  EXPECT_EQ(memory_of(s), 0U);
  EXPECT_EQ(s.data()[mib + 5], std::byte{0});
}

TEST_F(segment_test, is_shared_with_a_peer_that_opens_it) {
  const segment mine = take(segment::create("test", mib));
  const segment theirs = take(open_own(mine.fd(), mib));
  EXPECT_NE(mine.data(), theirs.data());
  EXPECT_EQ(theirs.fd(), -1);
  mine.data()[77] = std::byte{7};
  EXPECT_EQ(theirs.data()[77], std::byte{7});
}

TEST_F(segment_test, outlives_the_os_process_that_made_it_where_it_is_mapped) {
  other child{[](link& l) {
    const segment s = take(segment::create("test", mib));
    s.data()[5] = std::byte{42};
    l.say(std::to_string(s.fd()));
    (void)l.hear();
    return 0;
  }};
  const int fd = std::stoi(child.hear());
  const auto id = find_peer(child.pid());
  ASSERT_TRUE(id);
  const peer there = take(peer::open(*id));
  const segment s = take(segment::open_peer(there, fd, mib, access::read_write, "x"));
  child.kill();
  child.wait();
  EXPECT_EQ(s.data()[5], std::byte{42});
  expect_error(segment::open_peer(there, fd, mib, access::read_write, "x"), transport_errc::gone, {"has ended"});
}

TEST_F(segment_test, is_refused_if_it_is_not_what_was_said) {
  const segment good = take(segment::create("test", mib));
  expect_error(open_own(good.fd(), 2 * mib), transport_errc::damaged, {"1048576", "2097152"});
  expect_error(open_own(999, mib), transport_errc::damaged, {"/fd/999"});
  expect_error(open_own(-1, mib), transport_errc::damaged, {"/fd/-1"});

  const unique_fd unsealed{::memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  ASSERT_EQ(::ftruncate(unsealed.get(), mib), 0);
  ASSERT_EQ(::fchmod(unsealed.get(), 0600), 0);
  expect_error(open_own(unsealed.get(), mib), transport_errc::damaged, {"sealed"});
  ASSERT_EQ(::fchmod(unsealed.get(), 0644), 0);
  expect_error(open_own(unsealed.get(), mib), transport_errc::foreign_owner, {"644"});

  const testing::scratch_directory directory;
  const unique_fd file{::open((directory.path() + "/f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600)};
  ASSERT_EQ(::ftruncate(file.get(), mib), 0);
  expect_error(open_own(file.get(), mib), transport_errc::damaged, {"sealed"});
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const unique_fd reader{pipe[0]};
  const unique_fd writer{pipe[1]};
  expect_error(open_own(reader.get(), mib), transport_errc::damaged, {"not shared memory"});
}

TEST_F(segment_test, of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  other child{[](link& l) {
    testing::become_nobody();
    const segment s = take(segment::create("test", mib));
    l.say(std::to_string(s.fd()));
    (void)l.hear();
    return 0;
  }};
  const int fd = std::stoi(child.hear());
  const auto id = find_peer(child.pid());
  ASSERT_TRUE(id);
  expect_error(segment::open_peer(take(peer::open(*id)), fd, mib, access::read_write, "the memory"),
               transport_errc::foreign_owner, {"65534", "user 0"});
}

TEST_F(segment_test, of_an_undumpable_program_is_refused_with_the_reason) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become a user without rights";
  other owner{[](link& l) {
    testing::become_nobody();
    const segment s = take(segment::create("test", mib));
    ::prctl(PR_SET_DUMPABLE, 0);
    l.say(std::to_string(s.fd()));
    (void)l.hear();
    return 0;
  }};
  const int fd = std::stoi(owner.hear());
  const auto id = find_peer(owner.pid());
  ASSERT_TRUE(id);
  other visitor{[&](link& l) {
    testing::become_nobody();
    const auto r = segment::open_peer(take(peer::open(*id)), fd, mib, access::read, "x");
    l.say(!r && r.error().code == transport_errc::refused ? r.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(visitor.hear().find("undumpable"), std::string::npos);
}

TEST_F(segment_test, over_the_file_size_limit_is_an_error_and_no_signal) {
  other child{[](link& l) {
    const rlimit limit{.rlim_cur = mib, .rlim_max = mib};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto r = segment::create("test", 2 * mib);
    l.say(!r && r.error().code == transport_errc::no_space ? r.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("ulimit -f"), std::string::npos);
  EXPECT_EQ(child.wait(), 0);
}

TEST_F(segment_test, over_the_address_space_limit_is_an_error) {
  if (ORRERY_TEST_SANITIZED) GTEST_SKIP() << "sanitizers need the address space";
  other child{[](link& l) {
    const rlimit limit{.rlim_cur = 1024 * mib, .rlim_max = 1024 * mib};
    ::setrlimit(RLIMIT_AS, &limit);
    const auto r = segment::create("test", 2048 * mib);
    l.say(!r && r.error().code == transport_errc::no_space ? r.error().message : "wrong");
    return 0;
  }};
  const std::string said = child.hear();
  EXPECT_NE(said.find("ulimit -v) is 1048576 KiB"), std::string::npos) << said;
  EXPECT_NE(said.find("--orrery-memory"), std::string::npos) << said;
}

TEST_F(segment_test, says_so_when_the_system_has_no_memory) {
  other child{[](link& l) {
    const segment s = take(segment::create("test", mib));
    testing::fail_system_call(SYS_fallocate, ENOSPC);
    const auto r = s.back(0, mib);
    l.say(!r && r.error().code == transport_errc::no_space ? r.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("1048576 bytes of shared memory"), std::string::npos);
}

TEST_F(segment_test, stays_clear_of_the_standard_files) {
  other child{[](link& l) {
    ::close(0);
    const segment s = take(segment::create("test", mib));
    l.say(std::to_string(s.fd() > 2));
    return 0;
  }};
  EXPECT_EQ(child.hear(), "1");
}

}  // namespace segment_tests
}  // namespace orrery::transport
