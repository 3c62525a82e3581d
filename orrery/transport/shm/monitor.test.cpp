// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/shm/internal/test_support.hpp>
#include <orrery/transport/shm/monitor.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/wire/unique_ptr.hpp>

#include <condition_variable>
#include <deque>
#include <mutex>

#include <sys/resource.h>
#include <sys/wait.h>

namespace orrery::transport {
namespace monitor_tests {

using testing::link;
using testing::other;
using testing::take;

/// Keeps what it is told as lines of text until somebody asks.
class news final : public membership_observer {
 public:
  void node_joined(std::uint32_t node) noexcept override { add("joined " + std::to_string(node)); }
  void node_leaving(std::uint32_t node) noexcept override { add("leaving " + std::to_string(node)); }
  void node_left(std::uint32_t node) noexcept override { add("left " + std::to_string(node)); }
  void node_lost(std::uint32_t node, std::string_view how) noexcept override {
    add("lost " + std::to_string(node) + ": " + std::string{how});
  }
  void world_ending() noexcept override { add("ending"); }
  void world_lost(std::string_view how) noexcept override { add("world lost: " + std::string{how}); }

  /// Blocks.
  [[nodiscard]] std::string next() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [&] { return !lines_.empty(); });
    std::string line = std::move(lines_.front());
    lines_.pop_front();
    return line;
  }
  [[nodiscard]] bool none() {
    const std::scoped_lock lock{mutex_};
    return lines_.empty();
  }

 private:
  void add(std::string line) {
    const std::scoped_lock lock{mutex_};
    lines_.push_back(std::move(line));
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
};

class monitor_test : public testing::shm_test {
 protected:
  [[nodiscard]] world_config config() const {
    return {.pe_count = 1,
            .build_id = 7,
            .program = "watched",
            .memory_limit = 1 << 20,
            .rendezvous_dir = directory.path()};
  }
  [[nodiscard]] wire::unique_ptr<shm_world> come() const { return take(shm_world::create_or_join("w", config())); }
  /// A node in another OS process: says its number, then does what it is told.
  [[nodiscard]] other node_elsewhere() const {
    return other{[this](link& l) {
      auto world = come();
      l.say(std::to_string(world->node()));
      const std::string order = l.hear();
      if (order == "end") world->end_world();
      if (order == "crash") {
        const rlimit no_core{};
        ::setrlimit(RLIMIT_CORE, &no_core);
        ::signal(SIGSEGV, SIG_DFL);  // sanitizers have their own
        std::raise(SIGSEGV);
      }
      if (order == "exit") ::_exit(3);
      world->leave();
      (void)l.hear();
      return 0;
    }};
  }
  /// The same, but it watches too and says what it is told until the world is lost or ending.
  [[nodiscard]] other watcher_elsewhere() const {
    return other{[this](link& l) {
      auto world = come();
      news told;
      auto monitor = take(membership_monitor::start(*world, told));
      l.say(std::to_string(world->node()));
      for (;;) {
        const std::string line = told.next();
        l.say(line);
        if (line.starts_with("world lost") || line == "ending") break;
      }
      monitor.reset();
      world.reset();
      l.say("out");
      return 0;
    }};
  }
  testing::scratch_directory directory;
};

TEST_F(monitor_test, sees_nodes_come_and_leave) {
  auto world = come();
  other before = node_elsewhere();
  EXPECT_EQ(before.hear(), "1");
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  EXPECT_EQ(told.next(), "joined 1");
  other after = node_elsewhere();
  EXPECT_EQ(told.next(), "joined 2");
  before.say("leave");
  EXPECT_EQ(told.next(), "left 1");
  after.say("leave");
  EXPECT_EQ(told.next(), "left 2");
  before.kill();  // after it has left it is nobody's business
  before.wait();
  auto third = node_elsewhere();
  EXPECT_EQ(told.next(), "joined 3");
}

TEST_F(monitor_test, sees_how_nodes_die) {
  auto world = come();
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  for (const auto& [order, how] : {std::pair{"kill", "was killed by signal 9 (Killed)"},
                                   {"exit", "exited with status 3"},
                                   {"crash", "was killed by signal 11"}}) {
    other node = node_elsewhere();
    const std::string number = node.hear();
    EXPECT_EQ(told.next(), "joined " + number);
    const std::uint32_t epoch = world->epoch();
    if (order == std::string{"kill"}) {
      node.kill();
    } else {
      node.say(order);
    }
    const std::string line = told.next();
    EXPECT_NE(line.find("lost " + number + ": " + how), std::string::npos) << line;
    EXPECT_NE(line.find("without leaving the world"), std::string::npos) << line;
    EXPECT_EQ(world->state(static_cast<std::uint32_t>(std::stoi(number))), node_state::dead);
    EXPECT_NE(world->epoch(), epoch);
  }
}

TEST_F(monitor_test, of_every_node_sees_the_death_of_another) {
  auto world = come();
  std::vector<other> watchers;
  for (int i = 1; i <= 8; ++i) {
    watchers.push_back(watcher_elsewhere());
    EXPECT_EQ(watchers.back().hear(), std::to_string(i));
  }
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  watchers[4].kill();
  const auto wait_for_loss = [](auto&& next) {
    for (;;)
      if (const std::string line = next(); line.starts_with("lost")) return line.substr(0, 7);
  };
  EXPECT_EQ(wait_for_loss([&] { return told.next(); }), "lost 5:");
  for (std::size_t i = 0; i < watchers.size(); ++i) {
    if (i == 4) continue;
    EXPECT_EQ(wait_for_loss([&] { return watchers[i].hear(); }), "lost 5:");
  }
  world->end_world();
  std::string line = told.next();
  while (line.starts_with("joined")) line = told.next();
  EXPECT_EQ(line, "ending");
  for (std::size_t i = 0; i < watchers.size(); ++i) {
    if (i == 4) continue;
    while (watchers[i].hear() != "out") {
    }
    EXPECT_EQ(watchers[i].wait(), 0);
  }
}

TEST_F(monitor_test, tells_all_that_the_first_node_was_killed_and_removes_its_file) {
  other first = node_elsewhere();
  EXPECT_EQ(first.hear(), "0");
  std::vector<other> watchers;
  for (int i = 1; i <= 4; ++i) {
    watchers.push_back(watcher_elsewhere());
    EXPECT_EQ(watchers.back().hear(), std::to_string(i));
  }
  first.kill();
  for (other& w : watchers) {
    std::string line = w.hear();  // others may be told earlier, and leave
    while (line.starts_with("joined") || line.starts_with("left")) line = w.hear();
    EXPECT_TRUE(line.starts_with("lost 0")) << line;
    EXPECT_TRUE(w.hear().starts_with("world lost: "));
    EXPECT_TRUE(directory.empty());
    EXPECT_EQ(w.hear(), "out") << "nothing follows";
  }
}

TEST_F(monitor_test, tells_of_a_node_that_leaves_before_it_has_left) {
  auto world = come();
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  auto second = come();
  EXPECT_EQ(told.next(), "joined 1");
  second->begin_leave();
  EXPECT_EQ(told.next(), "leaving 1");
  second->leave();
  EXPECT_EQ(told.next(), "left 1");
  monitor.reset();
  EXPECT_TRUE(told.none());
}

TEST_F(monitor_test, does_not_remove_the_file_of_the_world_that_comes_next) {
  other first = node_elsewhere();
  EXPECT_EQ(first.hear(), "0");
  auto second = come();
  first.kill();
  first.wait();
  auto anew = come();
  EXPECT_TRUE(anew->is_first());
  news told;
  auto monitor = take(membership_monitor::start(*second, told));
  EXPECT_TRUE(told.next().starts_with("lost 0"));
  EXPECT_TRUE(told.next().starts_with("world lost"));
  EXPECT_FALSE(directory.empty());
  EXPECT_EQ(second->state(), world_state::lost);
  EXPECT_EQ(anew->state(), world_state::running);
}

TEST_F(monitor_test, sees_the_end_of_the_world_once) {
  auto world = come();
  auto second = come();
  news told;
  auto monitor = take(membership_monitor::start(*second, told));
  EXPECT_EQ(told.next(), "joined 0");
  world->end_world();
  EXPECT_EQ(told.next(), "ending");
  world->leave();
  EXPECT_EQ(told.next(), "left 0");
  monitor.reset();
  EXPECT_TRUE(told.none());
}

TEST_F(monitor_test, of_the_node_that_ends_the_world_is_told_too) {
  auto world = come();
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  world->end_world();
  EXPECT_EQ(told.next(), "ending");
}

TEST_F(monitor_test, stops_at_once_with_or_without_news) {
  auto world = come();
  for (int i = 0; i < 50; ++i) {
    news told;
    auto second = i % 2 == 0 ? come() : nullptr;
    auto monitor = take(membership_monitor::start(*world, told));
  }
}

TEST_F(monitor_test, reports_nodes_that_came_and_went_while_nobody_looked) {
  auto world = come();
  {
    auto left = come();
    other killed = node_elsewhere();
    EXPECT_EQ(killed.hear(), "2");
    killed.kill();
    killed.wait();
  }
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  EXPECT_EQ(told.next(), "left 1");
  EXPECT_TRUE(told.next().starts_with("lost 2: ended without leaving"));
}

TEST_F(monitor_test, tells_how_a_child_has_ended_that_ended_before_it_was_watched) {
  auto world = come();
  other ended = node_elsewhere();
  EXPECT_EQ(ended.hear(), "1");
  ended.say("exit");
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(ended.pid()), &info, WEXITED | WNOWAIT), 0);
  news told;
  auto monitor = take(membership_monitor::start(*world, told));
  EXPECT_EQ(told.next(), "lost 1: exited with status 3 without leaving the world");
}

TEST_F(monitor_test, sees_deaths_where_the_system_gives_out_no_pidfd) {
  auto world = come();
  other watcher{[&](link& l) {
    testing::fail_system_call(SYS_pidfd_open, EPERM);
    auto mine = come();
    news told;
    auto monitor = take(membership_monitor::start(*mine, told));
    for (int i = 0; i < 4; ++i) l.say(told.next());
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(watcher.hear(), "joined 0");
  other victim = node_elsewhere();
  EXPECT_EQ(victim.hear(), "2");
  EXPECT_EQ(watcher.hear(), "joined 2");
  victim.kill();
  victim.wait();
  EXPECT_TRUE(watcher.hear().starts_with("lost 2: "));
  other late = node_elsewhere();
  EXPECT_EQ(watcher.hear(), "joined 3");
}

TEST_F(monitor_test, takes_nobody_for_dead_when_descriptors_run_out) {
  auto world = come();
  other watcher{[&](link& l) {
    auto mine = come();
    news told;
    auto monitor = take(membership_monitor::start(*mine, told));
    l.say(told.next());
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    l.say("no more");
    l.say(told.next());  // the newcomer, who cannot be watched
    limit.rlim_cur = before;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    l.say("some more");
    l.say(told.next());
    (void)l.hear();
    return 0;
  }};
  EXPECT_EQ(watcher.hear(), "joined 0");
  EXPECT_EQ(watcher.hear(), "no more");
  other victim = node_elsewhere();
  EXPECT_EQ(victim.hear(), "2");
  EXPECT_EQ(watcher.hear(), "joined 2");
  EXPECT_EQ(watcher.hear(), "some more");
  EXPECT_TRUE(world->alive(2));
  victim.kill();
  victim.wait();
  EXPECT_TRUE(watcher.hear().starts_with("lost 2: "));
}

}  // namespace monitor_tests
}  // namespace orrery::transport
