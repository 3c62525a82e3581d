// SPDX-License-Identifier: Apache-2.0
// The suites of processes, arrays, storage, services and shared data pass between machines, too. Their scenarios are those of other
// tests, whose programs lie beside this one. All of them run under Open MPI, and one of each suite under MPICH.
#include "launch.hpp"

#include <algorithm>

namespace orrery::testing {
namespace {

constexpr ranks three_machines{3, 1, 1};
constexpr ranks two_machines{4, 1, 2};  // of two nodes each

struct suite {
  const char* program;
  std::vector<const char*> scenarios;
  std::vector<ranks> worlds;
};

/// What is wrong in a scenario, as its program and the launcher say it; nothing if it is good.
std::string wrong_between_machines(const mpi_launcher& l, const suite& s, const char* scenario, ranks r,
                                   std::vector<std::string> more = {}) {
  const scratch_folder folder;
  more.insert(more.end(), {"--seed=7", fmt::format("--folder={}", folder.path), "--orrery-node-timeout=1s"});
  std::vector<std::string> words = command(l, r, scenario, std::move(more), true);
  std::ranges::replace(words, std::filesystem::read_symlink("/proc/self/exe").string(),
                       folder_of_program() + '/' + s.program);
  return wrong_in(program(words, l.file).end());
}

bool is_built(const suite& s) { return std::filesystem::exists(folder_of_program() + '/' + s.program); }

void PrintTo(const suite& s, std::ostream* to) { *to << s.program; }

// A scenario that loses a node has three.
const std::vector<suite> all{
    {"test_calls_conditions", {"methods", "channels", "elements"}, {two_machines}},
    {"test_calls_conditions", {"lost"}, {three_machines}},
    {"test_calls_ends", {"watchers", "lost"}, {three_machines}},
    {"test_calls_made_groups", {"scattered", "exchanged"}, {two_machines}},
    {"test_calls_priorities", {"calls", "many"}, {two_machines}},
    {"test_calls_promises", {"answered_later", "exceptions", "elements"}, {two_machines}},
    {"test_calls_promises", {"lost", "lost_element"}, {three_machines}},
    {"test_calls_receive_any", {"orders"}, {two_machines}},
    {"test_calls_spread", {"values"}, {two_machines}},
    {"test_calls_timers", {"elsewhere"}, {two_machines}},
    {"test_calls_when", {"migration"}, {two_machines}},
    {"test_groups_nodes", {"calls", "exceptions", "values", "loss"}, {three_machines}},
    {"test_groups_nodes", {"views", "barriers", "order", "data", "loss"}, {two_machines}},
    {"test_names_nodes", {"all", "end"}, {three_machines}},
    {"test_names_nodes", {"all", "classes"}, {two_machines}},
    {"test_arrays_nodes", {"messages", "collectives", "balancing", "loss", "loss of homes"}, {three_machines}},
    {"test_arrays_nodes", {"state", "errors", "order", "loss", "loss of homes"}, {two_machines}},
    {"test_storage_nodes", {"work", "each", "damage"}, {three_machines}},
    {"test_storage_nodes", {"work"}, {two_machines}},
    {"test_service_nodes",
     {"all_pes_use_one_list", "a_lost_node_loses_its_ranges", "items_of_a_killed_worker_come_back"},
     {three_machines}},
    {"test_service_nodes", {"all_pes_use_one_list"}, {two_machines}},
    {"test_shared_nodes", {"model", "bulk", "ordered"}, {two_machines}},
    {"test_shared_nodes", {"loss", "bulk_loss"}, {three_machines}},
};
const std::vector<suite> some{
    {"test_calls_promises", {"answered_later"}, {two_machines}},
    {"test_groups_nodes", {"calls"}, {two_machines}},
    {"test_names_nodes", {"all"}, {two_machines}},
    {"test_arrays_nodes", {"order"}, {two_machines}},
    {"test_storage_nodes", {"work"}, {two_machines}},
    {"test_service_nodes", {"all_pes_use_one_list"}, {two_machines}},
};
// Random orders, migration, losses.
const std::vector<suite> chaotic{
    {"test_arrays_nodes", {"order", "balancing", "loss"}, {three_machines}},
    {"test_groups_nodes", {"order", "loss"}, {three_machines}},
    {"test_names_nodes", {"all"}, {three_machines}},
    {"test_service_nodes", {"all_pes_use_one_list"}, {three_machines}},
};

std::string name_of(const ::testing::TestParamInfo<suite>& i) {
  return fmt::format("{}_on_{}_machines_{}", std::string(i.param.program).substr(5),
                     i.param.worlds[0].count == 3 ? "three" : "two", i.index);
}

void pass(const mpi_launcher& l, const suite& s, const std::vector<std::string>& more = {}) {
  if (const auto why = missing(l)) GTEST_SKIP() << *why;
  if (!is_built(s)) GTEST_SKIP() << s.program << " was not built";
  for (const char* scenario : s.scenarios)
    for (const ranks r : s.worlds) EXPECT_EQ(wrong_between_machines(l, s, scenario, r, more), "") << scenario;
}

class suites : public ::testing::TestWithParam<suite> {};
INSTANTIATE_TEST_SUITE_P(of, suites, ::testing::ValuesIn(all), name_of);
TEST_P(suites, pass_between_machines) { pass(launcher_named("openmpi"), GetParam()); }

// What comes from other ranks is late by up to two milliseconds, and overtakes what comes from third ones.
class suites_on_a_late_network : public ::testing::TestWithParam<suite> {};
INSTANTIATE_TEST_SUITE_P(of, suites_on_a_late_network, ::testing::ValuesIn(chaotic), name_of);
TEST_P(suites_on_a_late_network, pass_between_machines) {
  pass(launcher_named("openmpi"), GetParam(), {"--orrery-machine-jitter=2ms"});
}

class suites_of_mpich : public ::testing::TestWithParam<suite> {};
INSTANTIATE_TEST_SUITE_P(of, suites_of_mpich, ::testing::ValuesIn(some), name_of);
TEST_P(suites_of_mpich, pass_between_machines) {
  if (slowed_down) GTEST_SKIP() << "MPICH's UCX replaces malloc, as sanitizers do";
  pass(launcher_named("mpich"), GetParam());
}

}  // namespace
}  // namespace orrery::testing

int main(int argc, char** argv) {
  orrery::testing::prepare_for_launchers();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
