// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/io.hpp>

#include <orrery/scheduler/node.hpp>
#include <orrery/scheduler/pe.hpp>
#include <orrery/wire/error.hpp>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

namespace orrery::scheduler {
namespace io_tests {

// --- processes without the layer above -----------------------------------------------------------

const class_info function_class{"test", nullptr, {}, false};

struct body {
  slot* process;
  std::function<void(pe&)> run;
};

void run_body(fiber&, void* argument) {
  pe& self = *current_pe;
  self.functions().begin();
  slot& s = *static_cast<body*>(argument)->process;
  activation frame{&s, nullptr, nullptr};
  self.push_activation(frame);
  s.active = &frame;
  s.depth = 1;
  {
    const std::unique_ptr<body> b(static_cast<body*>(argument));
    try {
      b->run(self);
    } catch (const stopped&) {
    }
  }
  self.functions().end(s);
}

// Runs f as a process of the PE whose thread calls, or that does not run yet.
void spawn(pe& self, std::function<void(pe&)> f) {
  slot& s = self.allocate_slot();
  s.set_object(self.functions().make(&run_body, new body{&s, std::move(f)}, 0));
  s.class_number = function_class.number;
  s.is_function = true;
  self.make_runnable(s);
}

struct pipe_pair {
  std::array<int, 2> ends{-1, -1};
  pipe_pair() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  pipe_pair(const pipe_pair&) = delete;
  pipe_pair& operator=(const pipe_pair&) = delete;
  ~pipe_pair() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  [[nodiscard]] int out() const { return ends[0]; }
  void put(char c) const { EXPECT_EQ(::write(ends[1], &c, 1), 1); }
  // The byte that is in it, or 0.
  [[nodiscard]] char take() const {
    pollfd p{ends[0], POLLIN, 0};
    char c = 0;
    return ::poll(&p, 1, 0) == 1 && ::read(ends[0], &c, 1) == 1 ? c : '\0';
  }
};

io_request reading(int fd, void* to, std::uint64_t bytes, std::uint64_t offset = io_request::stream) {
  return {.call = io_call::read, .fd = fd, .memory = to, .length = bytes, .offset = offset};
}

class io_engine_test : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("ORRERY_IO", GetParam(), 1); }
  void TearDown() override { unsetenv("ORRERY_IO"); }

  // Runs `f` as a process on a PE of its own until it returns.
  static void run(std::function<void(pe&)> f) {
    node_settings settings;
    settings.pes = 1;
    node n(settings, nullptr);
    n.run([&](pe& first) {
      spawn(first, [&n, f = std::move(f)](pe& self) {
        f(self);
        n.stop();
      });
    });
  }
};

INSTANTIATE_TEST_SUITE_P(back_ends, io_engine_test, ::testing::Values("uring", "uring-basic", "threads"),
                         [](const auto& which) {
                           std::string name = which.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_P(io_engine_test, a_process_that_reads_lets_others_run) {
  pipe_pair p;
  std::string order;
  run([&](pe& self) {
    spawn(self, [&](pe&) {
      order += "b";
      p.put('x');
    });
    char c = 0;
    io_request r = reading(p.out(), &c, 1);
    order += "a";
    self.io().run(r);
    order += c;
    EXPECT_EQ(r.result, 1);
  });
  EXPECT_EQ(order, "abx");
}

TEST_P(io_engine_test, a_pe_polls_its_engine_only_while_requests_are_outstanding) {
  pipe_pair p;
  run([&](pe& self) {
    EXPECT_EQ(self.io().outstanding(), 0U);
    char c = 0;
    io_request r = reading(p.out(), &c, 1);
    self.io().start(r);
    EXPECT_EQ(self.io().outstanding(), 1U);
    p.put('x');
    while (!r.done) self.yield();
    EXPECT_EQ(self.io().outstanding(), 0U);
  });
}

TEST_P(io_engine_test, a_cancelled_request_ends_and_leaves_the_data) {
  pipe_pair p;
  run([&](pe& self) {
    char c = 0;
    io_request r = reading(p.out(), &c, 1);
    self.io().start(r);
    for (int i = 0; i < 3; ++i) self.yield();  // the kernel has it
    self.io().cancel(r);
    while (!r.done) self.yield();
    EXPECT_EQ(r.result, -ECANCELED);
    p.put('x');
    EXPECT_EQ(p.take(), 'x');
  });
}

TEST_P(io_engine_test, a_request_that_is_cancelled_at_once_ends) {
  pipe_pair p;
  run([&](pe& self) {
    char c = 0;
    io_request r = reading(p.out(), &c, 1);
    self.io().start(r);
    self.io().cancel(r);
    while (!r.done) self.yield();
    EXPECT_EQ(r.result, -ECANCELED);
  });
}

TEST_P(io_engine_test, cancelling_what_is_done_does_nothing) {
  pipe_pair p;
  p.put('x');
  run([&](pe& self) {
    char c = 0;
    io_request r = reading(p.out(), &c, 1);
    self.io().run(r);
    self.io().cancel(r);
    EXPECT_EQ(r.result, 1);
  });
}

TEST_P(io_engine_test, a_deadline_ends_a_wait) {
  pipe_pair p;
  run([&](pe& self) {
    io_request r{.call = io_call::poll, .fd = p.out(), .flags = POLLIN};
    const std::int64_t due = transport::now_ns() + 2'000'000;
    self.io().run_until(r, due);
    EXPECT_EQ(r.result, -ECANCELED);
    EXPECT_GE(transport::now_ns(), due);
    EXPECT_EQ(self.io().outstanding(), 0U);
  });
}

TEST_P(io_engine_test, readiness_comes_before_the_deadline) {
  pipe_pair p;
  run([&](pe& self) {
    spawn(self, [&](pe&) { p.put('x'); });
    io_request r{.call = io_call::poll, .fd = p.out(), .flags = POLLIN};
    self.io().run_until(r, transport::now_ns() + 3600'000'000'000);
    EXPECT_EQ(r.result, POLLIN);
  });
}

// More than the submission queue, the completion queue and the helper threads hold.
TEST_P(io_engine_test, thousands_of_requests_wait_at_once) {
  constexpr int count = 6000;
  pipe_pair gate;
  run([&](pe& self) {
    std::vector<io_request> all(count);
    for (io_request& r : all) {
      r = {.call = io_call::poll, .fd = gate.out(), .flags = POLLIN};
      self.io().start(r);
    }
    EXPECT_EQ(self.io().outstanding(), static_cast<std::uint32_t>(count));
    gate.put('x');
    int ready = 0;
    for (const io_request& r : all) {
      while (!r.done) self.yield();
      ready += r.result == POLLIN;
    }
    EXPECT_EQ(ready, count);
  });
}

// poll refuses more descriptors than a process may have open.
TEST_P(io_engine_test, requests_become_ready_where_the_limit_on_open_files_was_lowered) {
  constexpr int count = 20;
  const std::vector<pipe_pair> gates(count);
  run([&](pe& self) {
    auto& io = self.io();
    const pipe_pair own;
    io_request first{.call = io_call::poll, .fd = own.out(), .flags = POLLIN};
    io.start(first);  // it needs descriptors itself
    own.put('x');
    while (!first.done) self.yield();
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit few{8, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    std::vector<io_request> all(2 * count);  // two for each pipe
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = {.call = io_call::poll, .fd = gates[i / 2].out(), .flags = POLLIN};
      io.start(all[i]);
    }
    for (const pipe_pair& gate : gates) gate.put('x');
    for (const io_request& r : all) {
      while (!r.done) self.yield();
      EXPECT_EQ(r.result, POLLIN);
    }
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  });
}

TEST_P(io_engine_test, file_requests_beyond_the_limit_park_their_process_until_there_is_room) {
  constexpr std::size_t count = 5000;
  const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  run([&](pe& self) {
    std::vector<io_request> all(count);
    std::vector<char> bytes(count);
    std::uint32_t most = 0;
    for (std::size_t i = 0; i < count; ++i) {
      self.io().wait_for_room();
      all[i] = reading(fd, &bytes[i], 1, i);
      self.io().start(all[i]);
      most = std::max(most, self.io().outstanding());
    }
    EXPECT_LE(most, 1024U);
    std::size_t good = 0;
    for (const io_request& r : all) {
      while (!r.done) self.yield();
      good += r.result == 1;
    }
    EXPECT_EQ(good, count);
    EXPECT_EQ(bytes[1], 'E');
    EXPECT_EQ(self.count().io_requests, count);
    EXPECT_EQ(self.count().io_bytes, count);
  });
  ::close(fd);
}

TEST_P(io_engine_test, what_is_outstanding_when_the_runtime_ends_is_cancelled) {
  pipe_pair p;
  std::array<char, 4> buffer{};
  io_request forgotten = reading(p.out(), buffer.data(), buffer.size());
  std::int64_t result = 0;
  run([&](pe& self) {
    spawn(self, [&](pe& at) {
      char c = 0;
      io_request r = reading(p.out(), &c, 1);
      at.io().run(r);
      result = r.result;
    });
    self.io().start(forgotten);
    self.yield();
  });
  EXPECT_TRUE(forgotten.done);
  EXPECT_EQ(forgotten.result, -ECANCELED);
  EXPECT_EQ(result, -ECANCELED);
  p.put('x');
  EXPECT_EQ(p.take(), 'x');  // nobody reads any more
}

// The PE sleeps while a request is outstanding, without a deadline: what is missed once hangs.
TEST_P(io_engine_test, a_pe_that_sleeps_on_a_request_hears_its_doorbell) {
  for (int round = 0; round < 50; ++round) {
    pipe_pair p;
    node_settings settings;
    settings.pes = 1;
    settings.pe.spin_ns = 0;
    node n(settings, nullptr);
    std::thread other;
    std::int64_t result = 0;
    n.run([&](pe& first) {
      spawn(first, [&](pe& self) {
        other = std::thread([&] {
          while (self.bell().sleeping.load() == 0) std::this_thread::yield();
          n.stop();
        });
        char c = 0;
        io_request r = reading(p.out(), &c, 1);
        self.io().run(r);
        result = r.result;
      });
    });
    other.join();
    EXPECT_EQ(result, -ECANCELED);
  }
}

TEST_P(io_engine_test, a_pe_that_sleeps_hears_the_end_of_a_request) {
  constexpr int rounds = 200;
  pipe_pair p;
  node_settings settings;
  settings.pes = 1;
  settings.pe.spin_ns = 0;
  node n(settings, nullptr);
  int heard = 0;
  n.run([&](pe& first) {
    spawn(first, [&](pe& self) {
      for (int i = 0; i < rounds; ++i) {
        std::thread writer([&] {
          while (self.bell().sleeping.load() == 0) std::this_thread::yield();
          p.put('x');
        });
        char c = 0;
        io_request r = reading(p.out(), &c, 1);
        self.io().run(r);
        heard += r.result == 1;
        writer.join();
      }
      EXPECT_GT(self.count().sleeps, 0U);
      n.stop();
    });
  });
  EXPECT_EQ(heard, rounds);
}

TEST(io_engine, a_setting_that_is_none_is_refused) {
  setenv("ORRERY_IO", "floppy", 1);
  node_settings settings;
  settings.pes = 1;
  node n(settings, nullptr);
  std::string what;
  n.run([&](pe& first) {
    spawn(first, [&](pe& self) {
      try {
        (void)self.io();
      } catch (const usage_error& e) {
        what = e.what();
      }
      n.stop();
    });
  });
  unsetenv("ORRERY_IO");
  EXPECT_NE(what.find("ORRERY_IO is 'floppy'; it must be uring, uring-basic or threads"), std::string::npos) << what;
}

TEST(io_engine, requests_of_many_processes_share_a_system_call) {
  setenv("ORRERY_IO", "uring", 1);
  constexpr int processes = 64;
  pipe_pair p;
  node_settings settings;
  settings.pes = 1;
  node n(settings, nullptr);
  std::uint64_t enters = 0;
  n.run([&](pe& first) {
    spawn(first, [&](pe& self) {
      int left = processes;
      for (int i = 0; i < processes; ++i)
        spawn(self, [&](pe& at) {
          char c = 0;
          io_request r = reading(p.out(), &c, 1);
          at.io().run(r);
          --left;
        });
      while (self.io().outstanding() != processes) self.yield();
      enters = self.count().io_enters;
      for (int i = 0; i < processes; ++i) p.put('x');
      while (left != 0) self.yield();
      n.stop();
    });
  });
  unsetenv("ORRERY_IO");
  EXPECT_GT(enters, 0U);
  EXPECT_LE(enters, processes / 4);
}

}  // namespace io_tests
}  // namespace orrery::scheduler
