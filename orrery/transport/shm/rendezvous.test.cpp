// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/rendezvous.hpp>

#include <cstdlib>
#include <fstream>

#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>

namespace orrery::transport {
namespace rendezvous_tests {

using std::chrono::milliseconds;
using testing::expect_error;
using testing::link;
using testing::other;
using testing::take;

constexpr milliseconds patience{20'000};
const world_address somebody{{4711, 99}, 7, 0x1234, 0x5678};

class rendezvous_test : public testing::shm_test {
 protected:
  [[nodiscard]] auto enter(milliseconds limit = patience) const {
    return rendezvous::enter("w", directory.path(), limit);
  }
  [[nodiscard]] std::string file() const { return directory.file("w"); }
  testing::scratch_directory directory;
};

TEST_F(rendezvous_test, accepts_names_that_are_safe_in_a_path) {
  for (const char* good : {"a", "A-z_0.9", "..", "123456789012345678901234567890123456789012345678"})
    EXPECT_TRUE(check_world_name(good)) << good;
  for (const char* bad :
       {"", "a/b", "a b", "a\n", "\xc3\xa4", "*", "1234567890123456789012345678901234567890123456789"})
    expect_error(check_world_name(bad), transport_errc::bad_argument, {"1 to 48"});
  expect_error(rendezvous::enter("a/b", directory.path(), patience), transport_errc::bad_argument, {"'a/b'"});
}

TEST_F(rendezvous_test, makes_a_private_file_and_reads_what_was_written) {
  auto door = take(enter());
  EXPECT_EQ(door->path(), file());
  EXPECT_FALSE(take(door->read()));
  take(door->write(somebody));
  EXPECT_EQ(take(door->read()), somebody);
  struct stat s{};
  ASSERT_EQ(::stat(file().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777U, 0600U);
  door->unlock();
  EXPECT_EQ(take(take(enter())->read()), somebody);
}

TEST_F(rendezvous_test, makes_a_private_file_whatever_the_umask) {
  other child{[&](link& l) {
    ::umask(0777);
    take(take(enter())->write(somebody));
    l.say("written");
    return 0;
  }};
  EXPECT_EQ(child.hear(), "written");
  EXPECT_EQ(take(take(enter())->read()), somebody);
}

TEST_F(rendezvous_test, uses_the_directory_of_the_environment) {
  EXPECT_EQ(rendezvous_directory("/x"), "/x");
  ::setenv("ORRERY_SHM_DIR", directory.path().c_str(), 1);
  EXPECT_EQ(rendezvous_directory(""), directory.path());
  ::unsetenv("ORRERY_SHM_DIR");
  EXPECT_EQ(rendezvous_directory(""), "/dev/shm");
}

TEST_F(rendezvous_test, lets_one_in_at_a_time) {
  auto door = take(enter());
  expect_error(enter(milliseconds{0}), transport_errc::timed_out, {file().c_str(), "/proc/locks"});
  door->unlock();
  (void)take(enter());
}

TEST_F(rendezvous_test, lets_the_next_in_when_the_holder_is_killed) {
  other child{[&](link& l) {
    auto door = take(enter());
    l.say("in");
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(child.hear(), "in");
  child.kill();
  (void)take(enter());
}

TEST_F(rendezvous_test, starts_over_if_the_file_was_removed_while_it_waited) {
  auto door = take(enter());
  take(door->write(somebody));
  other child{[&](link& l) {
    l.say("coming");
    auto mine = take(enter());
    l.say(take(mine->read()) ? "old" : "new");
    return 0;
  }};
  EXPECT_EQ(child.hear(), "coming");
  EXPECT_TRUE(door->remove());
  EXPECT_FALSE(door->remove()) << "it is not this file any more";
  door->unlock();
  EXPECT_EQ(child.hear(), "new");
}

TEST_F(rendezvous_test, does_not_remove_the_file_of_others) {
  auto door = take(enter());
  EXPECT_TRUE(door->remove());
  auto next = take(enter());
  EXPECT_FALSE(door->remove());
  next->unlock();
  EXPECT_FALSE(next->remove()) << "it is not locked";
  EXPECT_FALSE(rendezvous::remove_file("w", directory.path(), 1, patience));
  take(next->write(somebody));
  EXPECT_FALSE(rendezvous::remove_file("w", directory.path(), somebody.nonce + 1, patience));
  EXPECT_TRUE(rendezvous::remove_file("w", directory.path(), somebody.nonce, patience));
  EXPECT_TRUE(directory.empty());
  EXPECT_FALSE(rendezvous::remove_file("w", directory.path(), somebody.nonce, patience));
  EXPECT_TRUE(directory.empty()) << "it was made to be removed";
}

TEST_F(rendezvous_test, tells_whether_a_member_lives) {
  auto door = take(enter());
  door->hold();
  EXPECT_FALSE(door->held_by_others());
  door->unlock();
  auto second = take(enter());
  EXPECT_TRUE(second->held_by_others());
  second->hold();
  EXPECT_TRUE(door->held_by_others());
  door.reset();
  EXPECT_FALSE(second->held_by_others());
}

TEST_F(rendezvous_test, refuses_a_link_and_leaves_its_target_alone) {
  const std::string target = directory.path() + "/target";
  std::ofstream{target} << "precious";
  ASSERT_EQ(::chmod(target.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(target.c_str(), file().c_str()), 0);
  expect_error(enter(), transport_errc::damaged, {file().c_str(), "symbolic link"});
  expect_error(rendezvous::look("w", directory.path()), transport_errc::damaged, {"symbolic link"});
  std::string text;
  std::ifstream{target} >> text;
  EXPECT_EQ(text, "precious");
}

TEST_F(rendezvous_test, refuses_a_link_to_nothing) {
  ASSERT_EQ(::symlink((directory.path() + "/nothing").c_str(), file().c_str()), 0);
  expect_error(enter(), transport_errc::damaged, {"symbolic link"});
  EXPECT_FALSE(std::filesystem::exists(directory.path() + "/nothing"));
}

TEST_F(rendezvous_test, refuses_what_is_no_file) {
  ASSERT_EQ(::mkdir(file().c_str(), 0700), 0);
  expect_error(enter(), transport_errc::damaged, {"not a regular file"});
  ASSERT_EQ(::rmdir(file().c_str()), 0);
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  expect_error(enter(), transport_errc::damaged, {"not a regular file"});
}

TEST_F(rendezvous_test, refuses_a_file_that_others_may_write) {
  std::ofstream{file()} << "";
  ASSERT_EQ(::chmod(file().c_str(), 0620), 0);
  expect_error(enter(), transport_errc::foreign_owner, {file().c_str(), "620"});
}

TEST_F(rendezvous_test, refuses_the_file_of_another_user_and_names_him) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be two users";
  std::ofstream{file()} << "";
  ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
  ASSERT_EQ(::chown(file().c_str(), 65534, 65534), 0);
  expect_error(enter(), transport_errc::foreign_owner, {file().c_str(), "65534", "0 (root)", "ORRERY_SHM_DIR"});

  // One who cannot even open it.
  const std::string theirs = directory.path() + "/orrery-65534-w";
  std::ofstream{theirs} << "";
  ASSERT_EQ(::chmod(theirs.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  other child{[&](link& l) {
    testing::become_nobody();
    const auto r = enter();
    l.say(!r && r.error().code == transport_errc::foreign_owner ? r.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("belongs to user 0 (root)"), std::string::npos);
}

TEST_F(rendezvous_test, says_what_is_wrong_with_the_directory) {
  expect_error(rendezvous::enter("w", directory.path() + "/none", patience), transport_errc::system,
               {"/none/", "ORRERY_SHM_DIR"});
  if (::geteuid() != 0) return;
  other child{[&](link& l) {
    testing::become_nobody();
    const auto r = enter();
    l.say(!r && r.error().code == transport_errc::refused ? r.error().message : "wrong");
    return 0;
  }};
  EXPECT_NE(child.hear().find("ORRERY_SHM_DIR"), std::string::npos);
}

TEST_F(rendezvous_test, reports_a_file_that_orrery_did_not_write) {
  for (const char* text : {"hello", "0123456789012345678901234567890123456789012345678901234567890"}) {
    std::ofstream{file(), std::ios::trunc} << text;
    ASSERT_EQ(::chmod(file().c_str(), 0600), 0);
    expect_error(take(enter())->read(), transport_errc::damaged, {file().c_str(), "remove it"});
  }
  auto door = take(enter());
  for (const world_address& bad :
       {world_address{{0, 1}, 3, 1, 1}, world_address{{1, 1}, -1, 1, 1}, world_address{{1, 1}, 3, 0, 1}}) {
    take(door->write(bad));
    expect_error(door->read(), transport_errc::damaged, {"remove it"});
  }
}

TEST_F(rendezvous_test, reports_a_file_of_another_version) {
  take(take(enter())->write(somebody));
  std::fstream f{file(), std::ios::in | std::ios::out | std::ios::binary};
  f.seekp(8);
  f.put('\x7f');
  f.close();
  expect_error(take(enter())->read(), transport_errc::different_build, {"version", "127"});
}

TEST_F(rendezvous_test, says_so_when_the_file_system_is_full) {
  other child{[&](link& l) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", directory.path().c_str(), "tmpfs", 0, "size=8k,nr_inodes=4") != 0) {
      l.say("no mount");
      return 0;
    }
    std::ofstream{directory.path() + "/full"} << std::string(8192, 'x');
    auto door = take(enter());
    const auto written = door->write(somebody);
    l.say(!written && written.error().code == transport_errc::no_space ? written.error().message : "wrong");
    door->remove();
    std::ofstream{directory.path() + "/a"}.flush();
    std::ofstream{directory.path() + "/b"}.flush();
    const auto entered = rendezvous::enter("x", directory.path(), patience);
    l.say(!entered && entered.error().code == transport_errc::no_space ? entered.error().message : "wrong");
    return 0;
  }};
  const std::string first = child.hear();
  if (first == "no mount") GTEST_SKIP() << "this user may not mount";
  EXPECT_NE(first.find("ORRERY_SHM_DIR"), std::string::npos) << first;
  EXPECT_NE(child.hear().find("ORRERY_SHM_DIR"), std::string::npos);
}

TEST_F(rendezvous_test, is_not_locked_by_a_child_that_was_forked_meanwhile) {
  auto door = take(enter());
  other child{[](link& l) {
    (void)l.hear();
    return 0;
  }};
  door.reset();
  (void)take(enter());
}

}  // namespace rendezvous_tests
}  // namespace orrery::transport
