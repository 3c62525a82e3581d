// SPDX-License-Identifier: Apache-2.0
// Pipes, sockets and what else waits for the outside world.
#include <orrery/process/internal/io_testing.hpp>

#include <poll.h>
#include <sys/eventfd.h>

namespace orrery::io_testing {
namespace io_streams_tests {

using namespace std::chrono_literals;

class io_streams : public io_test {};
ORRERY_WITH_EACH_BACK_END(io_streams);

struct journal {
  std::string order;
  void note(std::string s) { order += s; }
  [[nodiscard]] std::string get() const { return order; }
};
ORRERY_PROCESS(journal, note, get);

TEST_P(io_streams, a_process_that_waits_for_a_pipe_does_not_stop_its_pe) {
  const pair p;
  std::string order;
  run_program(
      [&] {
        const auto me = this_process<function>();
        go(here(), [&, me] {
          order += "waits ";
          std::array<std::byte, 16> b{};
          const std::size_t n = io::read(p.out(), b);
          order += text_of(std::span(b).first(n));
          send(me, 1);
        });
        go(here(), [&] {
          for (int i = 0; i < 3; ++i) {
            order += "computes ";
            yield();
          }
          io::write_all(p.in(), bytes_of("reads"));
        });
        (void)receive<int>();
      },
      "--orrery-pes=1");
  EXPECT_EQ(order, "waits computes computes computes reads");
}

TEST_P(io_streams, more_than_a_pipe_holds_goes_through_it) {
  constexpr std::size_t size = 3 << 20;
  for (const auto kind : {pair::pipe, pair::socket, pair::slow_pipe}) {
    const pair p(kind);
    bool same = false;
    run_program([&] {
      std::vector<std::byte> sent(size);
      for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::byte>(i ^ (i >> 9));
      const auto me = this_process<function>();
      go(pe(1), [&, me] {
        std::vector<std::byte> got(size);
        same = io::read_all(p.out(), got) == size && got == sent;
        send(me, 1);
      });
      io::write_all(p.in(), sent);
      (void)receive<int>();
    });
    EXPECT_TRUE(same) << kind;
  }
}

TEST_P(io_streams, the_end_of_a_stream_is_a_read_of_nothing) {
  pair p;
  run_program([&] {
    const auto me = this_process<function>();
    go(here(), [&, me] {
      std::array<std::byte, 16> b{};
      send(me, static_cast<int>(io::read(p.out(), b)));
    });
    go(here(), [&] { p.close_end(1); });
    EXPECT_EQ(receive<int>(), 0);
  });
}

TEST_P(io_streams, descriptors_that_do_not_wait_are_waited_for) {
  const pair p(pair::slow_pipe);
  run_program([&] {
    const auto me = this_process<function>();
    go(here(), [&, me] {
      std::array<std::byte, 16> b{};
      send(me, static_cast<int>(io::read(p.out(), b)));
    });
    yield();
    io::write_all(p.in(), bytes_of("hello"));
    EXPECT_EQ(receive<int>(), 5);
  });
}

TEST_P(io_streams, an_eventfd_wakes_a_process) {
  const int fd = eventfd(0, EFD_CLOEXEC);
  run_program([&] {
    const auto me = this_process<function>();
    go(here(), [fd, me] {
      std::uint64_t n = 0;
      EXPECT_EQ(io::read(fd, std::as_writable_bytes(std::span(&n, 1))), 8U);
      send(me, n);
    });
    yield();
    go(pe(1), [fd] { eventfd_write(fd, 42); });
    EXPECT_EQ(receive<std::uint64_t>(), 42U);
  });
  ::close(fd);
}

TEST_P(io_streams, wait_readable_tells_data_and_end_from_nothing) {
  pair p;
  run_program([&] {
    EXPECT_FALSE(io::wait_readable(p.out(), 0ns));
    EXPECT_FALSE(io::wait_readable(p.out(), 1ms));
    EXPECT_TRUE(io::wait_writable(p.in()));
    io::write_all(p.in(), bytes_of("x"));
    EXPECT_TRUE(io::wait_readable(p.out(), 0ns));
    EXPECT_TRUE(io::wait_readable(p.out(), 1h));
    EXPECT_TRUE(io::wait_readable(p.out()));
    std::array<std::byte, 1> b{};
    EXPECT_EQ(io::read(p.out(), b), 1U);
    p.close_end(1);
    EXPECT_TRUE(io::wait_readable(p.out()));
    EXPECT_EQ(io::poll(p.out(), POLLIN), static_cast<unsigned>(POLLHUP));
  });
}

TEST_P(io_streams, many_processes_wait_for_one_descriptor) {
  const pair p;
  int woken = 0;
  run_program(
      [&] {
        const auto me = this_process<function>();
        for (int i = 0; i < 500; ++i)
          go(here(), [&, me] {
            woken += io::wait_readable(p.out());
            send(me, 1);
          });
        for (int i = 0; i < 10; ++i) yield();
        EXPECT_EQ(woken, 0);
        io::write_all(p.in(), bytes_of("x"));
        for (int i = 0; i < 500; ++i) (void)receive<int>();
      },
      "--orrery-pes=1");
  EXPECT_EQ(woken, 500);
}

// Each PE sleeps with requests outstanding, again and again, and is woken by messages and by data.
TEST_P(io_streams, pes_that_wait_for_data_hear_each_other) {
  constexpr int rounds = 2000;
  const pair never;
  const pair ball(pair::socket);
  run_program([&] {
    for (unsigned at = 0; at < 2; ++at)
      go(pe(at), [&] {
        std::array<std::byte, 1> b{};
        (void)io::read(never.out(), b);
      });
    const auto far = spawn<journal>(pe(1));
    const auto me = this_process<function>();
    go(pe(1), [&, me] {
      std::array<std::byte, 1> b{};
      for (int i = 0; i < rounds; ++i) {
        EXPECT_EQ(io::read(ball.out(), b), 1U);
        io::write_all(ball.out(), b);
      }
      send(me, 1);
    });
    std::array<std::byte, 1> b{};
    for (int i = 0; i < rounds; ++i) {
      io::write_all(ball.in(), b);
      EXPECT_EQ(io::read(ball.in(), b), 1U);
      if (i % 4 == 0) far->note("x");
    }
    (void)receive<int>();
    EXPECT_EQ(far->get().size(), rounds / 4U);
  });
}

TEST_P(io_streams, timers_go_on_while_a_pe_waits_for_data) {
  const pair never;
  run_program(
      [&] {
        go(here(), [&] {
          std::array<std::byte, 1> b{};
          (void)io::read(never.out(), b);
        });
        for (int i = 0; i < 20; ++i) sleep_for(1ms);
      },
      "--orrery-pes=1");
}

}  // namespace io_streams_tests
}  // namespace orrery::io_testing
