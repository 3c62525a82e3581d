// SPDX-License-Identifier: Apache-2.0
// No memory, no descriptors, no threads: each is a clear error, and nothing hangs.
#include "../support/scenario.hpp"

#include <orrery/transport/shm/internal/test_support.hpp>

#include <span>

#include <sys/resource.h>
#include <sys/syscall.h>

namespace orrery::faults {
namespace {

using namespace testing;

struct store {
  double last(std::span<const double> v) { return v.back(); }
  std::vector<double> give(std::size_t n) { return std::vector<double>(n, 2.0); }
  std::vector<double> back(const std::vector<double>& v) {
    sleep_for(std::chrono::milliseconds(5));  // until others have filled the memory
    return v;
  }
};
ORRERY_PROCESS(store, last, give, back);

// All PEs send each other more than there is memory for: they wait, and nothing is lost.
int keep_sending(std::uint32_t to, int rounds) {
  const auto s = spawn<store>(pe(to));
  const std::vector<double> v(20'000, 3.0);
  int wrong = 0;
  for (int r = 0; r < rounds; ++r) {
    std::vector<future<double>> answers;
    for (int i = 0; i < 30; ++i) answers.push_back(start(s)->last(v));
    for (auto& a : answers)
      if (a.get() != 3.0) ++wrong;
    if (s->give(20'000).size() != 20'000) ++wrong;
  }
  return wrong;
}
void little_memory() {
  std::vector<future<int>> all;
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    all.push_back(start_call<&keep_sending>(pe(p), (p + 1) % world_pes(), 10));
  for (auto& f : all) check(f.get() == 0, "a wrong answer");
}

// Answers wait for memory that is taken by calls of processes which wait to answer, on each node for the other one.
int ask_for_much(std::uint32_t to) {
  const std::vector<double> v(12'000, 4.0);
  std::vector<future<std::vector<double>>> answers;
  for (int k = 0; k < 12; ++k) {
    const auto s = spawn<store>(pe(to));
    for (int i = 0; i < 3; ++i) answers.push_back(start(s)->back(v));
  }
  int wrong = 0;
  for (auto& a : answers) wrong += a.get() != v ? 1 : 0;
  return wrong;
}
void answers_wait() {
  std::vector<future<int>> all;
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    for (int k = 0; k < 3; ++k) all.push_back(start_call<&ask_for_much>(pe(p), (p + world_pes() / 2) % world_pes()));
  for (auto& f : all) check(f.get() == 0, "a wrong answer");
}

void say_hello() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) check(call<&keep_sending>(pe(p), 0U, 1) == 0, "a wrong answer");
}

// The system has no memory left when the first block is asked for.
void memory_ends() {
  const auto s = spawn<store>(pe(world_pes() - 1));
  transport::testing::fail_system_call(SYS_fallocate, ENOSPC);
  const std::vector<double> v(1 << 20, 1.0);
  const std::string said = thrown<world_error>("a large argument", [&] { (void)s->last(v); });
  check_contains(said, "memory");
  check(s->last(std::vector<double>{1.0, 5.0}) == 5.0, "what needs no memory");
}

// Node 1 has no descriptor left when another node sends it something for the first time, and cannot map that one's memory.
int take_all_descriptors() {
  int n = 0;
  while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) ++n;
  return n;
}
int answer() { return 42; }
std::string ask_node_1() {
  return thrown<node_lost>("a call to a node that cannot read it", [] { (void)call<&answer>(node(1)); });
}
void descriptors_end() {
  check(call<&take_all_descriptors>(node(1)) > 0, "no descriptor was left at once");
  check(!call<&ask_node_1>(node(2)).empty(), "the call to node 1 did not fail");
  check(call<&answer>(node(1)) == 42, "nodes that knew each other before do not");
}

TEST(little_memory, makes_senders_wait_and_loses_nothing) {
  EXPECT_EQ(outcome_of({"--scenario=little", "--orrery-nodes=3", "--orrery-pes=1", "--orrery-memory=2M"}), "good");
}
TEST(little_memory, does_not_keep_answers_waiting_for_each_other) {
  EXPECT_EQ(outcome_of({"--scenario=answers", "--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=1M"}), "good");
}
TEST(no_memory, in_the_middle_is_an_error_of_the_call_that_needs_it) {
  EXPECT_EQ(outcome_of({"--scenario=ends", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}

TEST(no_descriptors, of_a_receiving_node_are_the_loss_of_its_sender_and_said_by_both) {
  const std::string said = outcome_of({"--scenario=descriptors", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_NE(said.find("orrery: node 1 cannot read what node 2 sends"), std::string::npos) << said;
  EXPECT_NE(said.find("orrery: node 1 takes nothing more from this one, node 2"), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("good")) << said;
}

// What fails from the start of the program on; all nodes inherit it.
class no_system_call : public ::testing::TestWithParam<const char*> {};
TEST_P(no_system_call, is_an_error_of_a_line_and_nothing_hangs) {
  const scratch_directory worlds;
  for (const std::string& world : {std::string("--orrery-nodes=2"), own_world()}) {
    const std::string said =
        outcome_of({"--scenario=hello", std::string("--fail=") + GetParam(), world, worlds.option(), "--orrery-pes=1"});
    EXPECT_TRUE(said.ends_with("exit status 1")) << said;
    EXPECT_GE(count_of(said, "orrery: "), 1) << said;
    EXPECT_LE(count_of(said, "\n"), 3) << said;
    EXPECT_TRUE(worlds.files().empty()) << said;
  }
}
// UBSan itself needs pipes, and takes an object that it could not look at for a wrong one.
INSTANTIATE_TEST_SUITE_P(works, no_system_call,
                         ::testing::ValuesIn(slowed_down
                                                 ? std::vector{"memfd_create", "fallocate", "ftruncate"}
                                                 : std::vector{"memfd_create", "fallocate", "ftruncate", "pipe2"}),
                         [](const auto& i) { return std::string(i.param); });

}  // namespace
}  // namespace orrery::faults

int main(int argc, char** argv) {
  using namespace orrery::faults;
  using namespace orrery::testing;
  const std::map<std::string_view, std::pair<long, int>> faults{{"--fail=memfd_create", {SYS_memfd_create, EMFILE}},
                                                                {"--fail=fallocate", {SYS_fallocate, ENOSPC}},
                                                                {"--fail=ftruncate", {SYS_ftruncate, ENOSPC}},
                                                                {"--fail=pipe2", {SYS_pipe2, EMFILE}}};
  for (int i = 1; i < argc; ++i)
    if (const auto f = faults.find(argv[i]); f != faults.end())
      orrery::transport::testing::fail_system_call(f->second.first, f->second.second);
  return run_tests_or_scenario(argc, argv,
                               {{"little", little_memory},
                                {"answers", answers_wait},
                                {"ends", memory_ends},
                                {"descriptors", descriptors_end},
                                {"hello", say_hello}});
}
