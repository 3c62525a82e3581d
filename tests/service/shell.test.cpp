// SPDX-License-Identifier: Apache-2.0
// The program `orrery list` with files as other programs write them, and with nodes and clients that are killed. The servers here only
// make their lists: what the shell asks for is nowhere called in them.
#include "shell.hpp"

#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using orrery::testing::outcome_of;
using orrery::testing::own_world;
using orrery::testing::program;
using orrery::testing::shell;
using numbers = orrery::ordered_list<int, int>;
using texts = orrery::ordered_list<std::string, std::string>;

void serve() {
  auto n = numbers::make({.range_items = 50});
  n.publish("/numbers");
  auto t = texts::make();
  t.publish("/texts");
  auto w = orrery::walking_list<int, int>::make({.processes = 50});
  w.publish("/walking");
  fmt::print(stderr, "ready\n");
  auto s = n.open();
  while (!s.find(-1)) orrery::sleep_for(1ms);
}
// The last node is killed with its ranges when the shell has inserted -2.
void serve_and_lose_a_node() {
  auto n = numbers::make({.pes = {0, 1, 2}, .splits = {100, 200}, .balancing = false});
  n.publish("/numbers");
  fmt::print(stderr, "ready\n");
  auto s = n.open();
  while (!s.find(-2)) orrery::sleep_for(1ms);
  (void)orrery::testing::thrown<orrery::node_lost>(
      "a node that is killed", [] { orrery::call<&orrery::testing::kill_own_node>(orrery::node(2)); });
  s.insert(-3, 0);
  while (!s.find(-1)) orrery::sleep_for(1ms);
}
// PE 1, with the keys from 100 on, computes for as long as there is the file that the test has made.
constexpr const char* busy_while_there = "SHELL_TEST_BUSY";
void compute_for_long() {
  fmt::print(stderr, "ready\n");
  while (std::filesystem::exists(std::getenv(busy_while_there))) std::this_thread::sleep_for(1ms);
}
void serve_beside_a_busy_pe() {
  auto n = numbers::make({.pes = {0, 1}, .splits = {100}, .balancing = false});
  n.publish("/numbers");
  auto busy = orrery::start_call<&compute_for_long>(orrery::pe(1));
  auto s = n.open();
  while (!s.find(-1)) orrery::sleep_for(1ms);
  busy.get();
}
const orrery::testing::scenarios all = {{"serve", serve},
                                        {"serve_and_lose_a_node", serve_and_lose_a_node},
                                        {"serve_beside_a_busy_pe", serve_beside_a_busy_pe}};

std::string list(const std::string& arguments) { return shell("list", arguments); }

// A file that is there as long as this.
class csv_file {
 public:
  explicit csv_file(std::string_view content) { std::ofstream(path_, std::ios::binary) << content; }
  csv_file(const csv_file&) = delete;
  csv_file& operator=(const csv_file&) = delete;
  ~csv_file() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  static inline int count_ = 0;
  std::string path_ =
      (std::filesystem::path(::testing::TempDir()) / fmt::format("shell.{}.{}.csv", ::getpid(), count_++)).string();
};
// What loading a file with that content says.
std::string load(const char* into, std::string_view content) {
  const csv_file file(content);
  std::string said = list(fmt::format("{} load {}", into, file.path()));
  if (const auto at = said.find(file.path()); at != std::string::npos) said.replace(at, file.path().size(), "FILE");
  return said;
}
// The error at that line of the file.
std::string refused(int line, std::string_view why) {
  return fmt::format("orrery: FILE:{}: {}; what stands in the lines before it is in the list\n3", line, why);
}

class shell_of_lists : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(orrery::testing::shell_program()))
      GTEST_SKIP() << "the program orrery is not part of this build";
  }
  static void end(program& server) {
    EXPECT_EQ(list("/numbers insert -- -1 0"), "0");
    const std::string said = server.end();  // which clients were killed
    EXPECT_TRUE(said.ends_with("good")) << said;
  }
};

TEST_F(shell_of_lists, takes_files_as_other_programs_write_them) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(load("/numbers", ""), "0 inserted, 0 updated\n0");
  EXPECT_EQ(load("/numbers", "1,2\r\n3,4\r\n"), "2 inserted, 0 updated\n0");
  EXPECT_EQ(load("/numbers",
                 "\xef\xbb\xbf"
                 "5,6\n"),
            "1 inserted, 0 updated\n0")
      << "the mark of UTF-8";
  EXPECT_EQ(load("/numbers", "\n7,8\n\r\n1,0\n\n"), "1 inserted, 1 updated\n0") << "empty lines";
  EXPECT_EQ(load("/numbers", "9,10"), "1 inserted, 0 updated\n0") << "no end of the last line";
  EXPECT_EQ(list("/numbers range"), "1,0\n3,4\n5,6\n7,8\n9,10\n0");
  const std::string large(1'000'000, 'v');
  EXPECT_EQ(load("/texts", "large," + large + "\nempty,\n\"\",\"\"\n"), "3 inserted, 0 updated\n0");
  EXPECT_EQ(list("/texts find large"), large + "\n0");
  EXPECT_EQ(list("/texts find empty"), "\n0");
  EXPECT_EQ(list("/texts erase large"), "0");
  const std::string returns = "returns,\"ends with a carriage return\r\"\n";
  EXPECT_EQ(load("/texts", returns), "1 inserted, 0 updated\n0");
  EXPECT_TRUE(list("/texts range").contains(returns)) << "what range writes, load reads";
  end(server);
}

TEST_F(shell_of_lists, refuses_what_a_file_cannot_mean) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(load("/numbers", "1,2\n3\n"), refused(2, "1 field, where a key and a value must be"));
  EXPECT_EQ(list("/numbers find 1"), "2\n0");
  EXPECT_EQ(load("/numbers", "1,2,3\n"), refused(1, "3 fields, where a key and a value must be"));
  EXPECT_EQ(load("/numbers", "1,x\n"), refused(1, "'x' is no number of this list's type"));
  EXPECT_EQ(load("/numbers", "1,99999999999\n"), refused(1, "'99999999999' is no number of this list's type"));
  EXPECT_EQ(load("/numbers", "1," + std::string(1'000'000, 'x') + "\n"),
            refused(1, "'" + std::string(60, 'x') + "...' is no number of this list's type"));
  EXPECT_EQ(load("/numbers", std::string_view("\xff\xfe"
                                              "1\0,\0002\0\n\0",
                                              10)),
            refused(1, "the file is UTF-16; save it as UTF-8"));
  EXPECT_EQ(load("/texts", "k,\"several\nlines\"\n"),
            refused(1, "a quote has no end on its line; \\n is a line end in a text in quotes"));
  EXPECT_EQ(load("/texts", "k,\"say \"\"c\"\"\"\n"), refused(1, "a quote in quotes is written \\\" here, not \"\""));
  EXPECT_EQ(load("/texts", "k,\"a\"b\n"), refused(1, "a text behind the quotes of a field"));
  EXPECT_EQ(
      load("/texts", "k,5\" pipe\n"),
      refused(1, "a quote in the middle of a field: the whole field stands in quotes, and \\\" is a quote in it"));
  EXPECT_EQ(load("/texts", "k,\\q\n"), refused(1, "unknown escape sequence"));
  EXPECT_EQ(list("/texts range"), "0") << "no part of a line is in the list";
  EXPECT_EQ(list("/numbers load /"), "orrery: / cannot be read: Is a directory\n3");
  EXPECT_EQ(list("/numbers insert 1 2 3"), "orrery: orrery list: 'insert' has 2 arguments at most, not 3\n2");
  EXPECT_EQ(list("/numbers size 1"), "orrery: orrery list: 'size' has 0 arguments at most, not 1\n2");
  EXPECT_EQ(list("/numbers insert 1"), "orrery: orrery list: 'insert' needs a value\n2");
  EXPECT_EQ(list("/numbers find"), "orrery: orrery list: 'find' needs a key\n2");
  EXPECT_EQ(list("/numbers find 999"), "1") << "nothing to be found";
  EXPECT_EQ(list("/numbers erase 999"), "1");
  EXPECT_EQ(list("/numbers insert 1 1"), "1");
  for (const char* const wrong : {"find x", "insert 1 x", "erase x", "range x", "range 1 x"})
    EXPECT_EQ(list(fmt::format("/numbers {}", wrong)), "orrery: 'x' is no number of this list's type\n2") << wrong;
  EXPECT_TRUE(list("/numbers frobnicate").ends_with("\n2")) << list("/numbers frobnicate");
  EXPECT_TRUE(list("/nothing size").ends_with("\n3")) << list("/nothing size");
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(list("/numbers range >/dev/full"), "3") << "it said why to /dev/full, too";
  }
  end(server);
}

TEST_F(shell_of_lists, says_what_a_list_does_whose_program_never_asks) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(load("/walking", "1,2\n3,4\n"), "2 inserted, 0 updated\n0");
  EXPECT_NE(list("/walking statistics").find("jumps"), std::string::npos);
  EXPECT_NE(list("/numbers statistics").find("splits"), std::string::npos);
  EXPECT_EQ(list("/walking size"), "2\n0");
  end(server);
}

TEST_F(shell_of_lists, names_a_program_that_is_stopped) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  ASSERT_EQ(::kill(server.pid(), SIGSTOP), 0);
  const std::string nodes = shell("ls", "");
  // It goes on when the tool has said so: else the tool waits for 10 s until it leaves.
  const std::string file = (std::filesystem::temp_directory_path() / fmt::format("stopped-{}", server.pid())).string();
  const std::string said =
      list(fmt::format("--timeout=0.2 /numbers size >{0} 2>&1 & tool=$!; for i in $(seq 300); do [ -s {0} ] && break; "
                       "sleep 0.1; done; kill -CONT {1}; wait $tool; code=$?; cat {0}; rm {0}; (exit $code)",
                       file, server.pid()));
  EXPECT_NE(nodes.find(" stopped "), std::string::npos) << nodes;
  EXPECT_NE(said.find(fmt::format("pid {}", server.pid())), std::string::npos) << said;
  EXPECT_NE(said.find("is stopped"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("\n3")) << said;
  end(server);
}

TEST_F(shell_of_lists, gives_up_what_is_not_done_in_time) {
  for (const std::string what : {"insert 150 1", "erase 150", "size", "statistics"}) {
    const csv_file busy("");
    ::setenv(busy_while_there, busy.path().c_str(), 1);
    program server({"--scenario=serve_beside_a_busy_pe", own_world(), "--orrery-pes=2"});
    server.hear("ready");
    // PE 1 goes on when the tool has said so: else the tool waits for it when it leaves.
    const std::string said = list(fmt::format(
        "--timeout=0.3 /numbers {0} >{1}.said 2>&1 & tool=$!; for i in $(seq 300); do [ -s {1}.said ] && break; "
        "sleep 0.1; done; rm {1}; wait $tool; code=$?; cat {1}.said; rm {1}.said; (exit $code)",
        what, busy.path()));
    EXPECT_NE(said.find("/numbers: a part of this service has not answered"), std::string::npos)
        << what << ": " << said;
    EXPECT_NE(said.find("--timeout=0.3"), std::string::npos) << what << ": " << said;
    EXPECT_TRUE(said.ends_with("\n3")) << what << ": " << said;
    end(server);
  }
  ::unsetenv(busy_while_there);
}

// It is stopped while it waits for more of its file.
TEST_F(shell_of_lists, is_not_held_up_by_a_client_that_is_stopped) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=2"});
  server.hear("ready");
  const std::string pipe = fmt::format("{}/shell.{}.stopped", ::testing::TempDir(), ::getpid());
  const std::string script = fmt::format(
      "exec 2>/dev/null; mkfifo {0}; {1} list {2} /numbers load {0} & loader=$!; exec 3>{0}; "
      "for i in $(seq 100); do {1} ls {2} | grep -q \" $loader \" && break; sleep 0.1; done; kill -STOP $loader; "
      "{1} list {2} --timeout=300 /numbers insert 5 6 && {1} list {2} --timeout=300 /texts insert a b; code=$?; "
      "{1} list {2} --timeout=300 /nothing size; test $? = 3 || code=9; "
      "kill -CONT $loader; exec 3>&-; wait $loader || code=8; rm {0}; exit $code",
      pipe, orrery::testing::shell_program().string(), own_world().substr(own_world().find('=') + 1));
  EXPECT_EQ(WEXITSTATUS(std::system(script.c_str())), 0);
  EXPECT_EQ(list("/numbers find 5"), "6\n0");
  end(server);
}

// It is killed while it waits for more of its file.
TEST_F(shell_of_lists, loses_nothing_of_others_when_it_is_killed) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(list("/numbers insert 0 7"), "0");
  const std::string pipe = fmt::format("{}/shell.{}.pipe", ::testing::TempDir(), ::getpid());
  const std::string world = own_world().substr(own_world().find('=') + 1);
  for (int i = 0; i < 5; ++i) {
    const std::string script = fmt::format(
        "exec 2>/dev/null; mkfifo {0}; {1} list {2} /numbers load {0} & loader=$!; exec 3>{0}; seq -f '%.0f,1' 1 20000 >&3; "
        "kill -9 $loader; wait $loader; test $? = 137; code=$?; rm {0}; exit $code",
        pipe, orrery::testing::shell_program().string(), world);
    EXPECT_EQ(WEXITSTATUS(std::system(script.c_str())), 0);
    EXPECT_EQ(list("/numbers find 0"), "7\n0");
  }
  const std::string loaded = load("/numbers", "1,2\n");  // one that was killed may have inserted the key
  EXPECT_TRUE(loaded == "0 inserted, 1 updated\n0" || loaded == "1 inserted, 0 updated\n0") << loaded;
  EXPECT_EQ(list("/numbers find 1"), "2\n0");
  end(server);
}

TEST_F(shell_of_lists, says_what_is_lost_with_a_node_and_goes_on_with_the_rest) {
  program server({"--scenario=serve_and_lose_a_node", own_world(), "--orrery-nodes=3", "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(load("/numbers", "50,5\n150,15\n250,25\n"), "3 inserted, 0 updated\n0");
  // The node is killed now, perhaps before the client has left, which says so then.
  const std::string said = list("/numbers insert -- -2 0");
  EXPECT_TRUE(said == "0" || said.ends_with("fail with node_lost\n0")) << said;
  while (list("/numbers find -- -3") != "0\n0") {
  }
  EXPECT_EQ(list("/numbers find 50"), "5\n0");
  EXPECT_EQ(list("/numbers find 150"), "15\n0");
  const std::string lost = "has left the world, or crashed";
  for (const char* const what : {"find 250", "insert 251 1", "erase 250", "range", "size"}) {
    const std::string why = list(fmt::format("/numbers {}", what));
    EXPECT_NE(why.find(lost), std::string::npos) << what << ": " << why;
    EXPECT_NE(why.find("its lost() names them"), std::string::npos) << what << ": " << why;
    EXPECT_EQ(why.find("spawn the process again"), std::string::npos) << what << ": " << why;
    EXPECT_TRUE(why.ends_with("\n3")) << what << ": " << why;
  }
  EXPECT_EQ(list("/numbers range 40 160"), "50,5\n150,15\n0");
  EXPECT_NE(load("/numbers", "51,1\n252,2\n").find(lost), std::string::npos);
  EXPECT_EQ(list("/numbers find 51"), "1\n0");
  EXPECT_NE(list("/numbers statistics").find("lost with a node: keys from 200 to the last"), std::string::npos)
      << list("/numbers statistics");
  end(server);
}

}  // namespace

int main(int argc, char** argv) { return orrery::testing::run_tests_or_scenario(argc, argv, all); }
