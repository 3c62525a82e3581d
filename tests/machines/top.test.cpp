// SPDX-License-Identifier: Apache-2.0
// What `orrery top` and `orrery ls` show of a world of several machines, from each of these.
#include "launch.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include <sys/wait.h>
#include <unistd.h>

namespace orrery {
namespace {

using namespace testing;
using nlohmann::json;

constexpr int calls = 200;

struct counted;
ORRERY_PROCESS(counted, add);
struct counted {
  int add() { return ++n; }
  int n = 0;
};

// stdout and stderr of a command, which runs where this is called.
std::string output_of(const std::string& command) {
  std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
  check(pipe != nullptr, "no command can be started");
  std::string text;
  char some[4096];
  for (std::size_t n = 0; (n = std::fread(some, 1, sizeof some, pipe)) != 0;) text.append(some, n);
  (void)::pclose(pipe);
  return text;
}

std::string tool() { return (std::filesystem::path(folder_of_program()).parent_path() / "orrery").string(); }

// Where several ranks of one host are machines, each has a name of its own.
std::string name_on(std::uint32_t machine, const std::string& name) {
  const std::string host = machine_names()[machine];
  const auto number = host.find('#');
  return number == std::string::npos ? name : name + "." + host.substr(number + 1);
}

std::string world_name;

// PEs publish their counters now and then.
bool shows_all_calls(const std::string& text) {
  const json shown = json::parse(text, nullptr, false);
  if (shown.is_discarded() || !shown.contains("nodes")) return true;  // check_sample says it
  for (const json& n : shown.at("nodes"))
    for (const json& pe : n.at("pes"))
      if (pe.at("executed").get<int>() + pe.at("inline_calls").get<int>() < calls) return false;
  return true;
}

void check_sample(const std::string& text) {
  const json shown = json::parse(text, nullptr, false);
  check(!shown.is_discarded() && !shown.contains("problems"), "orrery top: " + text);
  if (shown.is_discarded()) return;
  check(shown.at("machines") == json(machine_names()), "orrery top shows other machines: " + text);
  check(shown.at("nodes").size() == world_nodes(), "orrery top does not show all nodes");
  std::set<std::uint32_t> pes;
  for (const json& n : shown.at("nodes")) {
    const std::uint32_t node = n.at("node");
    check(n.at("pid") == call<&own_pid>(orrery::node(node)), "orrery top names another OS process");
    check(n.at("state") == "alive", "orrery top shows a node that is not alive");
    for (const json& pe : n.at("pes")) {
      pes.insert(pe.at("pe").get<std::uint32_t>());
      check(pe.at("executed").get<int>() + pe.at("inline_calls").get<int>() >= calls,
            "orrery top does not show what a PE has executed: " + pe.dump());
      check(pe.at("idle").get<double>() >= 0 && pe.at("idle").get<double>() <= 1, "a PE is idle for too long");
    }
  }
  check(pes.size() == world_pes(), "orrery top does not show all PEs");
}

void check_text(const std::string& text) {
  check(text.find(fmt::format("{} nodes on {} machines", world_nodes(), world_machines())) != std::string::npos, text);
  for (const std::string& m : machine_names()) {
    check(text.find("\n" + m + " ") != std::string::npos, m + " is not shown: " + text);
  }
}

void looked_at() {
  std::vector<remote<counted>> all;
  for (std::uint32_t pe = 0; pe < world_pes(); ++pe) all.push_back(spawn<counted>(orrery::pe(pe)));
  std::vector<future<int>> sums;
  for (int i = 0; i < calls; ++i)
    for (const auto& c : all) sums.push_back(start(c)->add());
  for (auto& s : sums) (void)s.get();
  for (std::uint32_t m = 0; m < world_machines(); ++m) {
    const std::string name = name_on(m, world_name);
    const auto run = [&](const std::string& words) {
      return call<&output_of>(orrery::machine(m), fmt::format("{} {}", tool(), words));
    };
    std::string sample;
    for (int tries = 0; tries < 100; ++tries) {
      sample = run(fmt::format("top {} --once --json --interval 0.05", name));
      if (shows_all_calls(sample)) break;
      orrery::sleep_for(std::chrono::milliseconds(10));
    }
    check_sample(sample);
    check_text(run(fmt::format("top {} --once --interval 0.05", name)));
    check_text(run(fmt::format("ls {}", name)));
    check(run("ls").find(name) != std::string::npos, "orrery ls does not list the world");
    const std::string joined =
        call<&output_of>(orrery::machine(m), fmt::format("{} list {} nothing size", tool(), name));
    check(joined.find("was started by an MPI launcher") != std::string::npos, "the world can be joined: " + joined);
  }
}

// A world without a name: tools call it by the first node of their machine, and list what is published on all machines.
void listed() {
  std::vector<remote<counted>> all;
  for (std::uint32_t pe = 0; pe < world_pes(); ++pe) {
    all.push_back(spawn<counted>(orrery::pe(pe)));
    publish(fmt::format("/listed/{}", pe), all.back());
  }
  for (std::uint32_t m = 0; m < world_machines(); ++m) {
    const auto there = orrery::machine(m);
    const std::string name = fmt::format("mpi-{}", call<&own_pid>(orrery::node(describe_machine(m).nodes.front())));
    const auto run = [&](const std::string& words) {
      return call<&output_of>(there, fmt::format("{} {}", tool(), words));
    };
    const json worlds = json::parse(run("ls --json"), nullptr, false).at("worlds");
    const auto own = std::ranges::find(worlds, name, [](const json& w) { return w.at("name").get<std::string>(); });
    check(own != worlds.end(), "orrery ls does not list this world: " + worlds.dump());
    if (own == worlds.end()) continue;
    check(own->at("nodes") == world_nodes() && own->at("pes") == world_pes() && own->at("state") == "running" &&
              own->at("program") == "test_machines_top",
          "orrery ls lists another world: " + own->dump());
    const json shown = json::parse(run(fmt::format("ls {} --json", name)), nullptr, false);
    check(!shown.is_discarded() && !shown.contains("problems") && shown.at("nodes").size() == world_nodes(),
          "orrery ls of this world: " + shown.dump());
    const json& names = shown.at("names");
    check(names.size() == world_pes() && shown.at("name_count") == world_pes(), "names are missing: " + names.dump());
    for (const json& n : names) {
      const std::uint32_t pe = n.at("pe");
      check(n.at("name") == fmt::format("/listed/{}", pe) && n.at("class").get<std::string>().ends_with("counted") &&
                n.at("node") == pe * world_nodes() / world_pes(),
            "a name is shown otherwise: " + n.dump());
    }
    check_contains(run(fmt::format("ls {} --names /listed/0", name)), "/listed/0");
    check_text(run(fmt::format("top {} --once --interval 0.05", name)));
  }
  check(unpublish("/listed/0"), "a name cannot be taken back");
  const std::string left = output_of(fmt::format("{} ls mpi-{} --json", tool(), own_pid()));
  check(json::parse(left, nullptr, false).at("names").size() == world_pes() - 1,
        "a name is shown that is gone: " + left);
}

// Each node but the first is in a method that does not end before the file is there.
void compute_until(const std::string& file) {
  while (!std::filesystem::exists(file)) {
  }
}
void looked_at_while_nodes_compute() {
  const std::string file = fmt::format("/dev/shm/orrery-test-top-{}", ::getpid());
  std::vector<future<void>> methods;
  for (std::uint32_t n = 1; n < world_nodes(); ++n)
    methods.push_back(start_call<&compute_until>(orrery::node(n), file));
  const std::string text = output_of(fmt::format("{} top {} --once --json --interval 0.05", tool(), world_name));
  std::ofstream(file) << "go on\n";
  for (auto& m : methods) m.get();
  std::filesystem::remove(file);
  const json shown = json::parse(text, nullptr, false);
  const bool is_good =
      !shown.is_discarded() && !shown.contains("problems") && shown.at("nodes").size() == world_nodes();
  check(is_good, "orrery top: " + text);
}

// The last node is stopped meanwhile, and then goes on.
void looked_at_while_one_is_stopped() {
  const auto last = orrery::node(world_nodes() - 1);
  const int pid = call<&own_pid>(last);
  ::kill(pid, SIGSTOP);
  const std::string text = output_of(fmt::format("{} top {} --once --interval 0.05", tool(), world_name));
  ::kill(pid, SIGCONT);
  check_contains(text, "some nodes do not answer: their figures are older");
  check_text(text);
  check(call<&own_pid>(last) == pid, "a node that was stopped does not answer");
}

std::string value_of(int argc, char** argv, std::string_view option) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(option)) return argv[i] + option.size();
  return {};
}

class top_of_machines : public under_mpi {
 protected:
  void SetUp() override {
    under_mpi::SetUp();
    if (!std::filesystem::exists(tool())) GTEST_SKIP() << tool() << " was not built";
  }
  [[nodiscard]] static std::string option() { return fmt::format("--orrery-world=top-{}", ::getpid()); }
};
INSTANTIATE_TEST_SUITE_P(of, top_of_machines, ::testing::Values("openmpi", "mpich"),
                         [](const auto& i) { return i.param; });

TEST_P(top_of_machines, shows_all_of_them_from_each) {
  EXPECT_EQ(wrong_in(outcome("looked at", {4, 2, 2}, {option()})), "");
}
TEST_P(top_of_machines, and_ls_show_nameless_worlds_and_what_all_machines_have_published) {
  EXPECT_EQ(wrong_in(outcome("listed", {4, 2, 2})), "");
}
TEST_P(top_of_machines, shows_nodes_that_compute) {
  EXPECT_EQ(wrong_in(outcome("looked at while nodes compute", {3, 1, 1}, {option()})), "");
}
TEST_P(top_of_machines, says_that_a_node_does_not_answer) {
  EXPECT_EQ(wrong_in(outcome("looked at while one is stopped", {3, 1, 1}, {option(), "--orrery-node-timeout=5min"})),
            "");
}
TEST_P(top_of_machines, shows_hosts_with_networks_and_memory_of_their_own) {
  const on_hosts run({GetParam(), "4"}, "looked at", {option()});
  if (run.missing) GTEST_SKIP() << *run.missing;
  EXPECT_EQ(wrong_in(run.said), "");
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  const std::string name = value_of(argc, argv, "--orrery-world=");
  if (!name.empty()) world_name = name;
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"looked at", looked_at},
                                                 {"listed", listed},
                                                 {"looked at while nodes compute", looked_at_while_nodes_compute},
                                                 {"looked at while one is stopped", looked_at_while_one_is_stopped}});
}
