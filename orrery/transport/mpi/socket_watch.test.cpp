// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/socket_watch.hpp>

#include <thread>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::transport {
namespace socket_watch_tests {

using cause = socket_watch::cause;

constexpr std::int64_t moment = 1'000'000;
constexpr std::int64_t for_ever = 3'600'000'000'000;  // the test's watchdog ends it before

/// Two ends of a connection within this OS process, and the socket that has accepted it.
struct connection {
  connection() {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    good = ::bind(listener.get(), address, size) == 0 && ::listen(listener.get(), 1) == 0 &&
           ::getsockname(listener.get(), address, &size) == 0 && ::connect(writer.get(), address, size) == 0;
    reader = unique_fd(::accept(listener.get(), nullptr, nullptr));
  }
  void write() { EXPECT_EQ(::write(writer.get(), "x", 1), 1); }
  void read() {
    char some[64];
    EXPECT_GT(::read(reader.get(), some, sizeof some), 0);
  }
  unique_fd listener{::socket(AF_INET, SOCK_STREAM, 0)};
  unique_fd writer{::socket(AF_INET, SOCK_STREAM, 0)};
  unique_fd reader;
  bool good = false;
};

TEST(a_watch_of_sockets, wakes_when_one_of_them_has_something) {
  connection c;
  ASSERT_TRUE(c.good);
  socket_watch w;
  w.look_for_sockets();
  EXPECT_GE(w.found(), 3);
  EXPECT_EQ(w.sleep(moment), cause::time);
  std::thread other([&] { c.write(); });
  EXPECT_EQ(w.sleep(for_ever), cause::socket);
  other.join();
  c.read();
  EXPECT_EQ(w.sleep(moment), cause::time);
  c.write();
  EXPECT_EQ(w.sleep(for_ever), cause::socket);
}

TEST(a_watch_of_sockets, is_not_kept_awake_by_one_that_nobody_reads) {
  connection c;
  ASSERT_TRUE(c.good);
  socket_watch w;
  w.look_for_sockets();
  c.write();
  int woken = 0;
  while (w.sleep(moment) == cause::socket) ++woken;
  EXPECT_GE(woken, 1);
  EXPECT_LE(woken, 8);
  c.write();
  EXPECT_EQ(w.sleep(for_ever), cause::socket) << "it does not hear of more";
}

TEST(a_watch_of_sockets, finds_nothing_else_among_the_descriptors) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  socket_watch w;
  w.look_for_sockets();
  EXPECT_EQ(::write(ends[1], "x", 1), 1);
  EXPECT_EQ(::write(pair[1], "x", 1), 1);
  EXPECT_EQ(w.sleep(moment), cause::time);
  for (const int fd : {ends[0], ends[1], pair[0], pair[1]}) ::close(fd);
}

TEST(a_watch_of_sockets, is_woken_by_any_thread_also_before_it_sleeps) {
  socket_watch w;
  w.wake();
  EXPECT_EQ(w.sleep(for_ever), cause::call);
  std::thread other([&] { w.wake(); });
  EXPECT_EQ(w.sleep(for_ever), cause::call);
  other.join();
  EXPECT_EQ(w.sleep(moment), cause::time);
}

TEST(a_watch_of_sockets, naps_until_it_is_woken_and_not_for_what_comes) {
  connection c;
  ASSERT_TRUE(c.good);
  socket_watch w;
  w.look_for_sockets();
  c.write();
  EXPECT_EQ(w.nap(moment), cause::time);
  std::thread other([&] { w.wake(); });
  EXPECT_EQ(w.nap(for_ever), cause::call);
  other.join();
  EXPECT_EQ(w.nap(moment), cause::time);
  EXPECT_EQ(w.sleep(for_ever), cause::socket);
}

}  // namespace socket_watch_tests
}  // namespace orrery::transport
