// SPDX-License-Identifier: Apache-2.0
// Random spawns, calls, posts, destroys, barriers and messages in worlds of threads and of nodes, against a model that says
// what has to come of each. The seed is printed; ORRERY_STRESS_SEED sets it, and ORRERY_STRESS_SECONDS how long each world runs.
//
// Each test starts this program again as the first node of a world (--world-of=PARTICIPANTS and the runtime's options): to
// look at one that fails, run the command it prints.
#include "actor.hpp"

#include <cstdlib>
#include <random>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace orrery::stress {
namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::strtoull(text, nullptr, 0);
}

std::vector<std::uint64_t> processes_of_each_pe() {
  std::vector<std::uint64_t> v;
  for (std::uint32_t p = 0; p < world_pes(); ++p) v.push_back(call<&processes_here>(pe(p)));
  return v;
}

/// Sums f over the nodes of the world.
template <auto F>
auto sum_over_nodes() {
  decltype(F()) sum = 0;
  for (std::uint32_t n = 0; n < world_nodes(); ++n) sum += call<F>(node(n));
  return sum;
}

void check_the_end(const std::vector<report>& reports, const std::vector<remote<Server>>& hubs,
                   const std::vector<std::uint64_t>& processes_before) {
  std::uint64_t posted_ticks = 0;
  for (const report& r : reports) {
    posted_ticks += r.ticks;
    for (std::size_t h = 0; h < hubs.size(); ++h)
      check(hubs[h]->taken_from(r.id) == r.sent[h], "messages to a hub were lost");
  }
  for (const auto& h : hubs) destroy(h);
  quiescence();
  check(sum_over_nodes<&ticks_here>() == posted_ticks, "posted functions were lost or run twice");
  for (std::uint32_t n = 0; n < world_nodes(); ++n) {
    check(call<&objects_here>(node(n)) == 0, fmt::format("node {} has objects left", n));
    check(call<&cargo_here>(node(n)) == 0, fmt::format("node {} has payloads left", n));
  }
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    check(call<&failed_posts_here>(pe(p)) == 0, fmt::format("posts failed on PE {}", p));
  check(processes_of_each_pe() == processes_before, "processes are left");
}

int main_process(std::uint32_t participants) {
  using namespace std::chrono;
  const std::uint64_t seed = number_from("ORRERY_STRESS_SEED", 1);
  const std::uint64_t steps = number_from("ORRERY_STRESS_STEPS", UINT64_MAX);
  const auto until =
      steady_clock::now() + seconds(steps == UINT64_MAX ? number_from("ORRERY_STRESS_SECONDS", 3) : 3600);
  const auto processes_before = processes_of_each_pe();
  beginning b;
  for (std::uint32_t p = 0; p < world_pes(); ++p) b.hubs.push_back(spawn<Server>(pe(p), cargo(p, 8), p, 8));
  for (std::uint32_t i = 0; i < participants; ++i) {
    const assignment a{seed, i, duration_cast<nanoseconds>(until.time_since_epoch()).count(), steps,
                       this_process<function>()};
    b.participants.push_back(spawn(pe(i % world_pes()), participate, a));
  }
  for (const auto& p : b.participants) send(p, b);
  std::vector<report> reports;
  while (reports.size() < participants) reports.push_back(receive<report>());
  std::uint64_t all_steps = 0;
  std::uint64_t decisions = 0;
  for (const report& r : reports) {
    all_steps += r.steps;
    decisions += r.dice * (2 * r.id + 1);
  }
  check_the_end(reports, b.hubs, processes_before);
  const std::uint64_t wrong = sum_over_nodes<&failures>();
  fmt::print("{} steps, decisions {:016x}, {} failures\n", all_steps, decisions, wrong);
  std::fflush(stdout);
  return wrong == 0 ? 0 : 1;
}

// --- the tests -----------------------------------------------------------------------------------------------------

std::string output_of(const std::string& command, int& status) {
  std::string text;
  std::FILE* out = popen(command.c_str(), "r");
  if (out == nullptr) return text;
  char buffer[4096];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, out)) text.append(buffer, n);
  status = pclose(out);
  return text;
}

std::string program() {
  std::string path(4096, '\0');
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return path;
}

struct shape {
  std::uint32_t nodes;
  std::uint32_t pes;
};

/// Runs a world and returns what it printed. How queues and waiting are set depends on the seed too.
std::string run(shape s, std::uint64_t seed, const std::string& environment) {
  dice d(seed);
  const std::uint32_t participants = s.nodes * s.pes * static_cast<std::uint32_t>(1 + d.below(4));
  std::string command = fmt::format(
      "ORRERY_STRESS_SEED={} {} '{}' --world-of={} --orrery-failed-exit=0 --orrery-nodes={} --orrery-pes={}", seed,
      environment, program(), participants, s.nodes, s.pes);
  command += fmt::format(" --orrery-ring={}K", 32 << d.below(3));
  command += fmt::format(" --orrery-mailbox={}K", 4 << d.below(7));
  if (d.one_in(3)) command += " --orrery-waiting=immediate";
  if (d.one_in(3)) command += " --orrery-method-stack=64K";
  std::printf("[   SEED   ] %s\n", command.c_str());
  std::fflush(stdout);
  int status = -1;
  const std::string text = output_of("exec env " + command, status);
  std::printf("%s", text.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  return text;
}

class world : public ::testing::TestWithParam<shape> {};

std::string shape_name(const ::testing::TestParamInfo<shape>& i) {
  return i.param.nodes == 1 ? fmt::format("{}_threads", i.param.pes)
                            : fmt::format("{}_nodes_of_{}_pes", i.param.nodes, i.param.pes);
}
INSTANTIATE_TEST_SUITE_P(of_threads, world, ::testing::Values(shape{1, 1}, shape{1, 2}, shape{1, 3}, shape{1, 8}),
                         shape_name);
#ifndef ORRERY_TSAN  // it sees one OS process only
INSTANTIATE_TEST_SUITE_P(of_nodes, world, ::testing::Values(shape{2, 1}, shape{2, 2}, shape{4, 1}, shape{4, 2}),
                         shape_name);
#endif

TEST_P(world, does_what_the_model_says_whatever_is_done_at_random) {
  run(GetParam(), number_from("ORRERY_STRESS_SEED", std::random_device{}()), "");
}

TEST(same_seed, makes_the_same_decisions) {
  const std::uint64_t seed = number_from("ORRERY_STRESS_SEED", std::random_device{}());
  const std::string first = run({1, 2}, seed, "ORRERY_STRESS_STEPS=50");
  EXPECT_EQ(run({1, 2}, seed, "ORRERY_STRESS_STEPS=50"), first);
  EXPECT_NE(run({1, 2}, seed + 1, "ORRERY_STRESS_STEPS=50"), first);
}

}  // namespace
}  // namespace orrery::stress

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i)
    if (const std::string_view a = argv[i]; a.starts_with("--world-of=")) {
      const auto participants = static_cast<std::uint32_t>(std::strtoul(a.data() + 11, nullptr, 10));
      return orrery::run(argc, argv, [&](const orrery::args&) { return orrery::stress::main_process(participants); });
    }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
