// SPDX-License-Identifier: Apache-2.0
// The trace of a world of several machines is one file, on the first node's.
#include "launch.hpp"

#include <fstream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <unistd.h>

namespace orrery {
namespace {

using namespace testing;
namespace fs = std::filesystem;

constexpr int calls = 2'000;  // several frames of events for each node

struct counted;
ORRERY_PROCESS(counted, add);
struct counted {
  int add() { return ++n; }
  int n = 0;
};

bool is_main = false;
void traced() {
  is_main = true;
  std::vector<remote<counted>> all;
  for (std::uint32_t n = 0; n < world_nodes(); ++n) all.push_back(spawn<counted>(node(n)));
  std::vector<future<int>> sums;
  for (int i = 0; i < calls; ++i)
    for (const auto& c : all) sums.push_back(start(c)->add());
  for (auto& s : sums) (void)s.get();
}
void traced_with_loss() {
  traced();
  const std::uint32_t last = world_nodes() - 1;
  (void)thrown<node_lost>("a call to a node that is killed", [&] { (void)call<&kill_own_node>(node(last)); });
  await_loss_of(last);
}

std::string value_of(int argc, char** argv, std::string_view option) {
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]).starts_with(option)) return argv[i] + option.size();
  return {};
}

// In the first rank, which has run main, when the world has ended: what is wrong with its trace.
std::string wrong_in_trace(const fs::path& path) {
  const auto all = nlohmann::json::parse(std::ifstream(path), nullptr, false);
  if (all.is_discarded()) return "it is no JSON";
  std::map<int, int> seen;
  std::map<int, double> last;
  std::set<std::string> names;
  for (const auto& e : all.at("traceEvents")) {
    const int node = e.at("pid");
    if (e.at("name") == "process_name") names.insert(e.at("args").at("name"));
    if (!std::string(e.at("name")).ends_with("counted::add") || e.at("ph") != "X") continue;
    ++seen[node];
    if (e.at("ts") < last[node]) return fmt::format("events of node {} are out of order", node);
    last[node] = e.at("ts");
  }
  if (seen.empty()) return "it has no event";
  for (const auto& [node, n] : seen)
    if (n != calls) return fmt::format("it has {} events of node {}", n, node);
  for (const std::string& n : names)
    if (n.find(" on ") == std::string::npos) return "it does not say where nodes are: " + n;
  for (const auto& f : fs::directory_iterator(path.parent_path()))
    if (f.path() != path && f.path().string().starts_with(path.string())) return f.path().string() + " was left";
  fmt::print(stderr, "{} nodes are in the trace\n", seen.size());
  return {};
}

class traces : public under_mpi {
 protected:
  void SetUp() override {
    under_mpi::SetUp();
    fs::remove_all(folder_);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string option() const { return "--orrery-trace=" + (folder_ / "t.json").string(); }
  const fs::path folder_ = fs::temp_directory_path() / fmt::format("orrery-test-trace-{}", ::getpid());
};
INSTANTIATE_TEST_SUITE_P(of, traces, ::testing::Values("openmpi", "mpich"), [](const auto& i) { return i.param; });

TEST_P(traces, of_two_machines_of_two_nodes_are_one_file) {
  const std::string said = outcome("traced", {4, 1, 2}, {option()});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "4 nodes are in the trace"), 1) << said;
}
// The path is in a folder that each host has for itself.
TEST_P(traces, of_hosts_that_share_no_files_are_one_file) {
  // Each host has that folder of its own, but for the first one, which other tests may use at the same time.
  const std::string file = "/dev/shm/orrery-test-" + std::to_string(::getpid()) + ".json";
  const on_hosts run({GetParam(), "4"}, "traced", {"--orrery-trace=" + file});
  if (run.missing) GTEST_SKIP() << *run.missing;
  const std::string& said = run.said;
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "4 nodes are in the trace"), 1) << said;
  fs::remove(file);
}
TEST_P(traces, of_worlds_that_have_lost_a_node_say_so) {
  if (GetParam() == "mpich") GTEST_SKIP() << "under MPICH on one host the launcher ends the job, whatever it is told";
  const auto words =
      command(launcher(), {3, 1, 1}, "traced with loss", {option(), "--orrery-node-timeout=500ms"}, true);
  const std::string said = program(words, launcher().file).end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "2 nodes are in the trace"), 1) << said;
  EXPECT_EQ(count_of(said, "of nodes 2 there are none"), 1) << said;
}
TEST_P(traces, that_only_some_ranks_are_to_make_are_refused) {
  auto words = command(launcher(), {1, 1, 1}, "traced", {option()});
  const auto more = command(launcher(), {1, 1, 1}, "traced");
  words.emplace_back(":");
  words.insert(words.end(), more.begin() + static_cast<std::ptrdiff_t>(launcher().options.size()), more.end());
  const std::string said = program(words, launcher().file).end();
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
  EXPECT_GE(count_of(said, "start them with the same options"), 1) << said;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  const std::string path = value_of(argc, argv, "--orrery-trace=");
  const int code =
      orrery::testing::run_tests_or_scenario(argc, argv, {{"traced", traced}, {"traced with loss", traced_with_loss}});
  if (code != 0 || !is_main) return code;
  const std::string wrong = wrong_in_trace(path);
  if (!wrong.empty()) fmt::print(stderr, "{}: {}\n", path, wrong);
  return wrong.empty() ? 0 : 1;
}
