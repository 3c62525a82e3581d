// SPDX-License-Identifier: Apache-2.0
// The program `orrery`, as a user runs it. Worlds are made by the test itself, where what is shown
// must be known, and by a program of the runtime: this one, with `program` as its first argument.
#include <orrery/orrery.hpp>
#include <orrery/process/detail/names_on_board.hpp>
#include <orrery/process/options.hpp>
#include <orrery/scheduler/counters.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/transport/shm/board.hpp>
#include <orrery/transport/shm/world.hpp>
#include <orrery/transport/wait.hpp>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

struct listed {
  int add(int n) { return total += n; }
  int total = 0;
};
ORRERY_PROCESS(listed, add);

namespace orrery {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using scheduler::counter_publisher;
using scheduler::counters;
using transport::shm_world;

/// An OS process whose output the test reads and whose input it writes.
class child {
 public:
  /// `terminal`: it gets a terminal of its own, else pipes.
  child(const std::vector<std::string>& command, bool terminal) {
    int to[2] = {-1, -1};
    int from[2] = {-1, -1};
    if (terminal) {
      winsize size{.ws_row = 24, .ws_col = 100, .ws_xpixel = 0, .ws_ypixel = 0};
      if (::openpty(&from[0], &from[1], nullptr, nullptr, &size) != 0) std::abort();
      to[0] = ::dup(from[1]);
      to[1] = ::dup(from[0]);
    } else if (::pipe(to) != 0 || ::pipe(from) != 0) {
      std::abort();
    }
    for (const int fd : {to[1], from[0]}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    std::vector<char*> argv;
    for (const std::string& s : command) argv.push_back(const_cast<char*>(s.c_str()));
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, to[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, from[1], 1);
    ::posix_spawn_file_actions_adddup2(&actions, from[1], 2);
    ::posix_spawn_file_actions_addclose(&actions, to[0]);
    ::posix_spawn_file_actions_addclose(&actions, from[1]);
    const int error = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(to[0]);
    ::close(from[1]);
    in_ = to[1];
    out_ = from[0];
    if (error != 0) {
      pid_ = -1;
      ADD_FAILURE() << command[0] << " cannot be started: is it built?";
    }
  }
  child(const child&) = delete;
  ~child() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    close_input();
    ::close(out_);
  }

  void write(std::string_view text) { (void)!::write(in_, text.data(), text.size()); }
  void close_input() {
    if (in_ >= 0) ::close(in_);
    in_ = -1;
  }
  /// Reads on until `text` has come; false if the output ends before that.
  bool wait_for(std::string_view text) {
    while (output_.find(text) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }
  /// Reads to the end. The exit code, or -1 if it was killed.
  int finish() {
    while (read_some()) {
    }
    int status = 0;
    if (pid_ < 0 || ::waitpid(pid_, &status, 0) != pid_) return -1;
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  [[nodiscard]] const std::string& output() const noexcept { return output_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  void kill() { ::kill(pid_, SIGKILL); }

 private:
  bool read_some() {
    char buffer[4096];
    const auto n = ::read(out_, buffer, sizeof buffer);  // EIO at the end of a terminal
    if (n > 0) output_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string output_;
};

struct outcome {
  int code;
  std::string text;
};

fs::path self() { return fs::read_symlink("/proc/self/exe"); }

class orrery_tool : public ::testing::Test {
 protected:
  orrery_tool() {
    std::string name = (fs::temp_directory_path() / "orrery-tool-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    directory_ = name;
    ::setenv("ORRERY_SHM_DIR", name.c_str(), 1);
    ::setenv("TERM", "xterm", 1);
  }
  ~orrery_tool() override { fs::remove_all(directory_); }

  static std::vector<std::string> command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), self().parent_path().parent_path() / "orrery");
    return arguments;
  }
  static outcome run(std::vector<std::string> arguments) {
    child c(command(std::move(arguments)), false);
    const int code = c.finish();
    return {code, c.output()};
  }
  static json run_json(std::vector<std::string> arguments) {
    const outcome o = run(std::move(arguments));
    EXPECT_EQ(o.code, 0) << o.text;
    return json::parse(o.text, nullptr, false);
  }
  /// A program of the runtime that answers with "ready" and runs until its input ends.
  static std::vector<std::string> program(std::vector<std::string> options) {
    options.insert(options.begin(), {self(), "program"});
    return options;
  }

  static orrery::wire::unique_ptr<shm_world> make_world(const std::string& name, std::uint32_t pes,
                                                        const std::string& program = "tester") {
    transport::world_config config;
    config.pe_count = pes;
    config.program = program;
    auto world = shm_world::create_or_join(name, config);
    if (!world) throw std::runtime_error(world.error().message);
    return std::move(*world);
  }

  fs::path directory_;
};

TEST_F(orrery_tool, ls_says_that_there_is_no_world) {
  EXPECT_EQ(run_json({"ls", "--json"}), json({{"worlds", json::array()}}));
  EXPECT_NE(run({"ls"}).text.find("No named world"), std::string::npos);
}

TEST_F(orrery_tool, ls_lists_the_worlds_with_their_size_program_and_first_pid) {
  const auto one = make_world("one", 3);
  const auto two = make_world("two", 1);
  const json worlds = run_json({"ls", "--json"}).at("worlds");
  ASSERT_EQ(worlds.size(), 2u);
  EXPECT_EQ(worlds[0].at("name"), "one");
  EXPECT_EQ(worlds[0].at("program"), "tester");
  EXPECT_EQ(worlds[0].at("state"), "running");
  EXPECT_EQ(worlds[0].at("nodes"), 1);
  EXPECT_EQ(worlds[0].at("pes"), 3);
  EXPECT_EQ(worlds[0].at("pid"), ::getpid());
  EXPECT_EQ(worlds[1].at("name"), "two");
  const std::string text = run({"ls"}).text;
  EXPECT_NE(text.find("NAME"), std::string::npos);
  EXPECT_NE(text.find("two"), std::string::npos);
}

TEST_F(orrery_tool, ls_of_a_world_shows_what_its_pes_have_counted) {
  const auto world = make_world("demo", 2);
  counter_publisher p(world->counters(1).data());
  counters c;
  c.processes = 41;
  c.executed = 1000;
  p.publish(c, transport::now_ns());
  const json shown = run_json({"ls", "demo", "--json"});
  EXPECT_EQ(shown.at("name"), "demo");
  const json& node = shown.at("nodes").at(0);
  EXPECT_EQ(node.at("state"), "alive");
  EXPECT_EQ(node.at("pid"), ::getpid());
  ASSERT_EQ(node.at("pes").size(), 2u);
  EXPECT_EQ(node.at("pes").at(1).at("pe"), 1);
  EXPECT_EQ(node.at("pes").at(1).at("processes"), 41);
  EXPECT_EQ(node.at("pes").at(1).at("executed"), 1000);
  EXPECT_NE(run({"ls", "demo"}).text.find("41 processes"), std::string::npos);
}

TEST_F(orrery_tool, an_unknown_world_is_an_error_that_names_those_that_run) {
  const auto world = make_world("demo", 1);
  const std::vector<std::vector<std::string>> commands{{"ls", "demu"}, {"top", "demu"}, {"list", "demu", "/l", "size"}};
  for (const auto& words : commands) {
    const outcome o = run(words);
    EXPECT_EQ(o.code, words[0] == "list" ? 3 : 1);
    EXPECT_NE(o.text.find("'demu'"), std::string::npos) << o.text;
    EXPECT_NE(o.text.find("running are: demo"), std::string::npos) << o.text;
  }
}

TEST_F(orrery_tool, control_characters_in_names_of_others_do_not_reach_a_terminal) {
  const auto world = make_world("demo", 1, "\x1b[31mred");
  const std::vector<std::vector<std::string>> commands{
      {"ls"}, {"ls", "demo"}, {"top", "demo", "--once", "--interval", "0.05"}};
  for (const auto& words : commands) {
    const outcome o = run(words);
    EXPECT_EQ(o.code, 0);
    EXPECT_NE(o.text.find("?[31mred"), std::string::npos) << o.text;
    EXPECT_EQ(o.text.find('\x1b'), std::string::npos) << o.text;
  }
  const std::string unknown = run({"ls", "\x1b[31mred"}).text;
  EXPECT_EQ(unknown.find('\x1b'), std::string::npos) << unknown;
}

TEST_F(orrery_tool, a_wrong_command_line_ends_with_2) {
  const outcome unknown = run({"frobnicate"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.text.find("orrery: there is no command 'frobnicate': ls, top, "), std::string::npos)
      << unknown.text;
  EXPECT_NE(run({"data", "inf", "x"}).text.find("there is no command 'inf': info, "), std::string::npos);
  EXPECT_EQ(run({"data", "--help"}).code, 0);
  EXPECT_EQ(run({"top"}).code, 2);
  EXPECT_EQ(run({"top", "demo", "--interval", "-1"}).code, 2);
}

TEST_F(orrery_tool, a_crashed_world_is_stale_until_it_is_cleaned_away) {
  child p(program({"--orrery-world=crash", "--orrery-pes=1"}), false);
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  p.kill();
  (void)p.finish();
  const json worlds = run_json({"ls", "--json"}).at("worlds");
  ASSERT_EQ(worlds.size(), 1u);
  EXPECT_EQ(worlds[0].at("state"), "stale");
  EXPECT_NE(run({"ls"}).text.find("orrery clean"), std::string::npos);
  EXPECT_EQ(run_json({"clean", "--json"}).at("removed"), 1);
  EXPECT_TRUE(run_json({"ls", "--json"}).at("worlds").empty());
}

TEST_F(orrery_tool, top_once_shows_rates_between_two_samples) {
  const auto world = make_world("demo", 2);
  counter_publisher asleep(world->counters(0).data());
  asleep.sleeping({}, transport::now_ns());
  // A PE that executes one message in each microsecond of its own clock.
  std::jthread busy([&](const std::stop_token& stop) {
    counter_publisher p(world->counters(1).data());
    counters c;
    for (std::int64_t now = transport::now_ns(); !stop.stop_requested(); now += 1000) {
      c.executed += 1;
      p.publish(c, now);
    }
  });
  const json shown = run_json({"top", "demo", "--once", "--json", "--interval", "0.1"});
  const json& pes = shown.at("nodes").at(0).at("pes");
  EXPECT_EQ(pes.at(0).at("asleep"), true);
  EXPECT_GT(pes.at(0).at("idle"), 0.9);
  EXPECT_EQ(pes.at(0).at("per_second").at("messages"), 0.0);
  EXPECT_NEAR(pes.at(1).at("per_second").at("messages").get<double>(), 1e6, 1e4);
  EXPECT_EQ(pes.at(1).at("idle"), 0.0);
}

TEST_F(orrery_tool, top_without_a_terminal_prints_samples_until_the_world_ends) {
  auto world = make_world("demo", 1);
  child c(command({"top", "demo", "--interval", "0.05"}), false);
  ASSERT_TRUE(c.wait_for("MSG/s"));
  world.reset();
  EXPECT_EQ(c.finish(), 0) << c.output();
  EXPECT_NE(c.output().find("World demo has ended."), std::string::npos);
}

TEST_F(orrery_tool, top_on_a_terminal_shows_the_pes_and_quits_at_q) {
  const auto world = make_world("demo", 2);
  child c(command({"top", "demo"}), true);
  ASSERT_TRUE(c.wait_for("MAILBOX")) << c.output();
  c.write("q");
  EXPECT_EQ(c.finish(), 0);
  EXPECT_NE(c.output().find("world demo: tester"), std::string::npos);
}

TEST_F(orrery_tool, top_on_a_terminal_ends_with_the_world) {
  auto world = make_world("demo", 2);
  child c(command({"top", "demo", "--interval", "0.05"}), true);
  ASSERT_TRUE(c.wait_for("MAILBOX"));
  world.reset();
  EXPECT_EQ(c.finish(), 0);
  EXPECT_NE(c.output().find("World demo has ended."), std::string::npos);
}

TEST_F(orrery_tool, top_scrolls_through_more_pes_than_the_terminal_has_lines) {
  const auto world = make_world("demo", 200);
  child c(command({"top", "demo", "--interval", "60"}), true);
  ASSERT_TRUE(c.wait_for("MAILBOX"));
  c.write(std::string(20, ' '));
  EXPECT_TRUE(c.wait_for("199"));
  c.write("q");
  EXPECT_EQ(c.finish(), 0);
}

TEST_F(orrery_tool, top_on_a_terminal_that_cannot_be_drawn_on_prints_samples) {
  ::setenv("TERM", "nonsense", 1);
  auto world = make_world("demo", 1);
  child c(command({"top", "demo", "--interval", "0.05"}), true);
  ASSERT_TRUE(c.wait_for("MSG/s"));
  world.reset();
  EXPECT_EQ(c.finish(), 0);
}

TEST_F(orrery_tool, says_its_version) {
  const std::string said = run({"--version"}).text;
  EXPECT_TRUE(said.starts_with("orrery 0.") && said.ends_with("\n")) << said;
}

TEST_F(orrery_tool, help_prints_the_options_of_the_runtime_and_its_counters) {
  EXPECT_EQ(run({"help", "options"}).text, options_help("PROGRAM"));
  const std::string text = run({"help", "counters"}).text;
  for (const auto& c : scheduler::counter_table()) EXPECT_NE(text.find(c.meaning), std::string::npos) << c.name;
}

TEST_F(orrery_tool, a_program_of_several_nodes_is_shown_with_all_of_them_while_it_runs) {
  child p(program({"--orrery-world=real", "--orrery-nodes=2", "--orrery-pes=2"}), false);
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  const json shown = run_json({"ls", "real", "--json"});
  ASSERT_EQ(shown.at("nodes").size(), 2u);
  int pe = 0;
  std::uint64_t processes = 0;
  for (const json& node : shown.at("nodes")) {
    EXPECT_EQ(node.at("state"), "alive");
    for (const json& shown_pe : node.at("pes")) {
      EXPECT_EQ(shown_pe.at("pe"), pe++);
      processes += shown_pe.at("processes").get<std::uint64_t>();
    }
  }
  EXPECT_EQ(pe, 4);
  EXPECT_GE(processes, 100u);
  EXPECT_EQ(run({"top", "real", "--once", "--interval", "0.1"}).code, 0);
  p.close_input();
  EXPECT_EQ(p.finish(), 0) << p.output();
  EXPECT_TRUE(run_json({"ls", "--json"}).at("worlds").empty());
}

std::vector<std::string> names_in(const json& world) {
  std::vector<std::string> names;
  for (const json& n : world.at("names")) names.push_back(n.at("name"));
  return names;
}

class names_in_orrery_tool : public orrery_tool {
 protected:
  /// Names are shown a moment after they were published: looks until they are.
  static json wait_for_names(const std::vector<std::string>& names) {
    for (;;) {
      json shown = run_json({"ls", "real", "--json"});
      if (names_in(shown) == names) return shown;
    }
  }
  /// All nodes have ended when their output has: they remove files where the fixture does.
  void TearDown() override {
    p.close_input();
    (void)p.finish();
  }
  static void tell(child& p, const std::string& what) {
    p.write(what + "\n");
    ASSERT_TRUE(p.wait_for("done " + what.substr(0, what.find(' ')))) << p.output();
  }
  /// Two nodes of one PE each; PE 1 is of the second one.
  child p{program({"--orrery-world=real", "--orrery-nodes=2", "--orrery-pes=1"}), false};
};

TEST_F(names_in_orrery_tool, ls_shows_the_names_of_all_nodes_and_what_they_name) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  EXPECT_EQ(run_json({"ls", "real", "--json"}).at("name_count"), 0);
  tell(p, "publish /data/set/ 3");
  const json shown = wait_for_names({"/data/set/0", "/data/set/1", "/data/set/2"});
  EXPECT_EQ(shown.at("name_count"), 3);
  const json& second = shown.at("names").at(1);
  EXPECT_EQ(second.at("class"), "listed");
  EXPECT_EQ(second.at("node"), 1);
  EXPECT_EQ(second.at("pe"), 1);
  EXPECT_EQ(shown.at("names").at(2).at("node"), 0);
  const std::string text = run({"ls", "real"}).text;
  EXPECT_NE(text.find("CLASS"), std::string::npos) << text;
  EXPECT_NE(text.find("/data/set/1"), std::string::npos) << text;
  EXPECT_NE(text.find(second.at("process").get<std::string>()), std::string::npos) << text;
  EXPECT_NE(text.find("3 names"), std::string::npos) << text;
  EXPECT_NE(run({"top", "real", "--once", "--interval", "0.05"}).text.find("3 names"), std::string::npos);
}

TEST_F(names_in_orrery_tool, texts_of_a_list_are_printable_on_a_terminal_only) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  tell(p, "list /texts");
  EXPECT_EQ(run({"list", "real", "/texts", "find", "key"}).text, "\x1b[31mred\n");
  for (const char* const operation : {"find", "range"}) {
    child c(command({"list", "real", "/texts", operation, "key"}), true);
    EXPECT_EQ(c.finish(), 0);
    EXPECT_NE(c.output().find("?[31mred"), std::string::npos) << c.output();
    EXPECT_EQ(c.output().find('\x1b'), std::string::npos) << c.output();
  }
}

TEST_F(names_in_orrery_tool, ls_shows_only_the_names_that_were_asked_for) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  tell(p, "publish /data/ 12");
  while (run_json({"ls", "real", "--json"}).at("name_count") != 12) {
  }
  const json shown = run_json({"ls", "real", "--json", "--names", "/data/1"});
  EXPECT_EQ(names_in(shown), (std::vector<std::string>{"/data/1", "/data/10", "/data/11"}));
  EXPECT_EQ(run({"ls", "real", "--names", "/data/1"}).text.find("/data/2"), std::string::npos);
}

TEST_F(names_in_orrery_tool, names_vanish_when_they_are_taken_back_and_when_their_process_ends) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  tell(p, "publish n 4");
  (void)wait_for_names({"n0", "n1", "n2", "n3"});
  tell(p, "unpublish n1");
  (void)wait_for_names({"n0", "n2", "n3"});
  tell(p, "destroy n3");
  (void)wait_for_names({"n0", "n2"});
}

TEST_F(names_in_orrery_tool, names_vanish_when_their_node_is_killed) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  tell(p, "publish n 4");
  const json shown = wait_for_names({"n0", "n1", "n2", "n3"});
  ::kill(shown.at("nodes").at(1).at("pid").get<pid_t>(), SIGKILL);
  (void)wait_for_names({"n0", "n2"});
}

TEST_F(names_in_orrery_tool, many_long_names_are_shown) {
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  const std::string long_name(250, 'x');
  tell(p, "publish " + long_name + " 2000");
  json shown;
  do shown = run_json({"ls", "real", "--json"});
  while (shown.at("name_count") != 2000);
  EXPECT_EQ(shown.at("names").size(), 2000u);
  EXPECT_NE(run({"ls", "real"}).text.find(long_name + "1999 "), std::string::npos);
}

// A board as a node of another mind may write it.
class board_in_orrery_tool : public orrery_tool {
 protected:
  board_in_orrery_tool() { world->show_board(board.fd()); }
  void show(const detail::names_on_board& names) {
    std::vector<std::byte> text(wire_size(names));
    writer w(text);
    write(w, names);
    ASSERT_TRUE(board.show(text));
  }
  orrery::wire::unique_ptr<shm_world> world = make_world("demo", 1);
  transport::board board = std::move(transport::board::create().value());
};

TEST_F(board_in_orrery_tool, names_that_are_not_utf8_do_not_break_json_or_a_terminal) {
  show({2, {"Device\x07"}, {{"bad \xff\xfe name", {0, 1, 1}, 0}, {"\x1b[31mred \xc3\xa9", {0, 2, 1}, 0}}});
  const json shown = run_json({"ls", "demo", "--json"});
  ASSERT_EQ(shown.at("names").size(), 2u);
  EXPECT_EQ(shown.at("names").at(0).at("name"), "\x1b[31mred \xc3\xa9");
  const std::string text = run({"ls", "demo"}).text;
  EXPECT_NE(text.find("bad ?? name"), std::string::npos) << text;
  EXPECT_NE(text.find("?[31mred \xc3\xa9"), std::string::npos) << text;
  EXPECT_NE(text.find("Device? "), std::string::npos) << text;
}

TEST_F(board_in_orrery_tool, names_that_do_not_fit_onto_the_board_are_counted) {
  show({40, {"A"}, {{"n", {0, 1, 1}, 0}, {"m", {0, 2, 1}, 0}}});
  const json shown = run_json({"ls", "demo", "--json"});
  EXPECT_EQ(shown.at("name_count"), 40);
  EXPECT_EQ(names_in(shown), (std::vector<std::string>{"m", "n"}));
  const std::string text = run({"ls", "demo"}).text;
  EXPECT_NE(text.find("40 names"), std::string::npos) << text;
  EXPECT_NE(text.find("38 more names are too many to be shown."), std::string::npos) << text;
}

TEST_F(board_in_orrery_tool, nonsense_on_a_board_is_told_and_the_rest_is_shown) {
  const auto ls = [] {
    const outcome o = run({"ls", "demo"});
    EXPECT_EQ(o.code, 0);
    EXPECT_NE(o.text.find("world demo: tester"), std::string::npos) << o.text;
    return o.text;
  };
  show({1, {"A"}, {{"n", {0, 1, 1}, 7}}});  // there is no class 7
  EXPECT_NE(ls().find("names of node 0 cannot be read"), std::string::npos);
  ASSERT_TRUE(board.show(std::vector<std::byte>(1000, std::byte{0xff})));
  EXPECT_NE(ls().find("names of node 0 cannot be read"), std::string::npos);
  show({~std::uint64_t{0}, {"A"}, {{"n", {0, 1, 1}, 0}}});  // more names than there can be
  EXPECT_NE(ls().find("0.1#1"), std::string::npos);
  world->show_board(1 << 20);  // not open
  EXPECT_EQ(ls().find("0.1#1"), std::string::npos);
}

TEST_F(orrery_tool, a_program_of_several_nodes_leaves_one_trace) {
  const fs::path trace = directory_ / "trace.json";
  child p(program({"--orrery-nodes=2", "--orrery-pes=1", "--orrery-trace=" + trace.string()}), false);
  ASSERT_TRUE(p.wait_for("ready")) << p.output();
  p.close_input();
  EXPECT_EQ(p.finish(), 0) << p.output();
  EXPECT_NE(p.output().find("trace events"), std::string::npos);
  const json all = json::parse(std::ifstream(trace), nullptr, false);
  std::vector<int> nodes;
  for (const json& e : all.at("traceEvents"))
    if (e.at("name") == "listed::add") nodes.push_back(e.at("pid"));
  EXPECT_EQ(std::ranges::count(nodes, 0), 50);
  EXPECT_EQ(std::ranges::count(nodes, 1), 50);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1);
}

// The documentation is made by the tool.
class documentation : public orrery_tool, public ::testing::WithParamInterface<const char*> {};

TEST_P(documentation, has_the_tables_as_they_are) {
  const std::string topic = GetParam();
  const fs::path page = fs::path(TEST_DOCS) / (topic + ".md");
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  const std::string table = run({"help", topic, "--markdown"}).text;
  EXPECT_NE(text.str().find(table), std::string::npos)
      << page << " is not what 'orrery help " << topic << " --markdown' prints";
}

INSTANTIATE_TEST_SUITE_P(orrery_tool, documentation, ::testing::Values("options", "counters"));

// 100 processes, one call to each, spread over the PEs. Then it publishes and takes back what it reads.
int program(int argc, char** argv) {
  return orrery::run(argc, argv, [](const args&) {
    std::vector<remote<listed>> all;
    for (std::uint32_t i = 0; i < 100; ++i) all.push_back(spawn<listed>(pe(i % world_pes())));
    for (const auto& p : all) (void)start(p)->add(1).get();
    // What the PEs have counted is shown when they have come to rest.
    sleep_for(std::chrono::milliseconds(5));
    std::cout << "ready" << std::endl;
    // Others may use what this PE has, meanwhile.
    const auto await_input = [] {
      for (pollfd in{0, POLLIN, 0}; ::poll(&in, 1, 0) == 0;) sleep_for(std::chrono::milliseconds(1));
    };
    for (std::string what, text; await_input(), std::cin >> what >> text;) {
      std::size_t n = 0;
      if (what == "publish" && std::cin >> n) {
        for (std::size_t i = 0; i < n; ++i) publish(text + std::to_string(i), all[i % all.size()]);
      } else if (what == "list") {
        const auto texts = ordered_list<std::string, std::string>::make();
        texts.publish(text);
        texts.open().insert("key", "\x1b[31mred");
      } else if (what == "unpublish") {
        unpublish(text);
      } else if (what == "destroy") {
        destroy(lookup<listed>(text));
      }
      std::cout << "done " << what << std::endl;
    }
    return 0;
  });
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "program") return orrery::program(argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
