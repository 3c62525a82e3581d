// SPDX-License-Identifier: Apache-2.0
// What can go wrong with ranks before, while and after they are a world. Nothing hangs.
#include "launch.hpp"

#include <array>
#include <csignal>
#include <filesystem>
#include <thread>

#include <sys/ptrace.h>

namespace orrery {
namespace {

using namespace testing;

std::uint32_t last_node() { return world_nodes() - 1; }

void answers() {
  for (std::uint32_t n = 0; n < world_nodes(); ++n) check(call<&own_pid>(node(n)) > 0, "a rank does not answer");
}

// What a program that is started from a method finds in its environment.
int status_of_search() {
  return std::system("env | grep -E '^(OMPI_COMM_WORLD_SIZE|PMI_RANK|PMI_FD|PMI_PORT|PMIX_RANK|PMIX_NAMESPACE)=' >&2");
}
void environment() {
  for (std::uint32_t n = 0; n < world_nodes(); ++n) {
    const int status = call<&status_of_search>(node(n));
    check(WIFEXITED(status) && WEXITSTATUS(status) == 1, "a program that a method starts would be taken for a rank");
  }
}

int deeper(int n) {
  std::array<volatile char, 4096> used{};
  used[static_cast<std::size_t>(n) % used.size()] = 1;
  return n < 1'000'000 ? deeper(n + 1) + used[0] : 0;
}
int overflow() { return deeper(0); }
void overflows() { (void)call<&overflow>(node(last_node())); }

volatile std::sig_atomic_t user_signals = 0;
int send_signal() {
  ::raise(SIGUSR1);
  return user_signals;
}
void own_handlers() {
  for (std::uint32_t n = 0; n < world_nodes(); ++n)
    check(call<&send_signal>(node(n)) == 1, "the program's own handler of a signal was not called");
}

// The end of the last node takes longer than others wait for it.
struct ends_slowly;
ORRERY_PROCESS(ends_slowly, pid);
struct ends_slowly {
  int pid() const { return own_pid(); }
  ~ends_slowly() { std::this_thread::sleep_for(std::chrono::seconds(20)); }
};
void slow_end() {
  const auto s = spawn<ends_slowly>(node(last_node()));
  check(s->pid() > 0, "the process is not there");
}

void killed() {
  answers();
  call<&kill_own_node>(node(last_node()));
}

// Until the others go on without it; then it runs again.
void stopped_rank() {
  const int pid = call<&own_pid>(node(last_node()));
  ::kill(pid, SIGSTOP);
  await_loss_of(last_node());
  ::kill(pid, SIGCONT);
}

// As a debugger does, which lets it run for a while before a breakpoint stops it for long.
void debugged_rank() {
  constexpr std::chrono::milliseconds node_timeout{500};  // as the command line says
  const int pid = call<&own_pid>(node(last_node()));
  // Threads are held one by one; to stop one of them with a signal of its process stops all.
  std::vector<pid_t> held;
  for (const auto& t : std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid))) {
    const pid_t thread = std::stoi(t.path().filename());
    if (::ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) != 0) {
      fmt::print(stderr, "nobody may be debugged here\n");
      return;
    }
    held.push_back(thread);
  }
  sleep_for(4 * node_timeout);
  for (const pid_t t : held) ::ptrace(PTRACE_INTERRUPT, t, nullptr, nullptr);
  for (const pid_t t : held) ::waitpid(t, nullptr, __WALL);
  sleep_for(6 * node_timeout);
  for (const pid_t t : held) ::ptrace(PTRACE_DETACH, t, nullptr, nullptr);
  answers();
}

// Signs of life would be missed much later.
void reported_loss() {
  answers();
  (void)thrown<node_lost>("node_lost", [] { call<&kill_own_node>(node(last_node())); });
  for (std::uint32_t n = 0; n < last_node(); ++n) check(call<&own_pid>(node(n)) > 0, "a rank does not answer");
}

class faults : public under_mpi {
 protected:
  static std::string self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }
  static std::string end_of(const std::vector<std::string>& words) {
    std::vector<std::string> all = launcher().options;
    all.insert(all.end(), words.begin(), words.end());
    return program(all, launcher().file).end();
  }
};
INSTANTIATE_TEST_SUITE_P(of, faults, ::testing::Values("openmpi", "mpich"), [](const auto& i) { return i.param; });

TEST_P(faults, of_a_rank_that_ends_before_mpi_starts_end_the_others) {
  const std::string said =
      end_of({"-n", "1", self(), "--scenario=answers", "--orrery-startup-timeout=300ms", ":", "-n", "1", "/bin/true"});
  EXPECT_FALSE(said.ends_with("good")) << said;
  EXPECT_GE(count_of(said, "it waits for other ranks"), 1) << said;
  // Open MPI's launcher may see the end of the other rank before, and end the job.
  if (count_of(said, "exiting improperly") != 0) return;
  EXPECT_EQ(count_of(said, "as if a rank were not started, or had ended: this one ends"), 1) << said;
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
}
TEST_P(faults, of_the_library_of_another_launcher_are_said) {
  const std::string other = GetParam() == "mpich" ? "libmpi.so.40" : "libmpich.so.12";
  if (missing(launcher_named(GetParam() == "mpich" ? "openmpi" : "mpich"))) GTEST_SKIP() << "there is one MPI only";
  const std::string said = outcome("answers", {2, 1, 1}, {"--orrery-mpi=" + other});
  EXPECT_FALSE(said.ends_with("good")) << said;
  // MPICH that Open MPI has started jumps into nowhere under AddressSanitizer, before it says how many ranks it sees.
  if (scheduler::slowed_down && GetParam() == "openmpi") return;
  EXPECT_GE(count_of(said, "it is not the library of this launcher; name the right one with --orrery-mpi=PATH"), 1)
      << said;
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
}
TEST_P(faults, of_a_killed_rank_end_the_job_where_the_launcher_says_so) {
  const std::string said = outcome("killed", {2, 1, 1});
  EXPECT_TRUE(said.ends_with(GetParam() == "mpich" ? "exit status 9" : "exit status 137")) << said;
}
// Each rank under a shell that says how it has ended.
TEST_P(faults, end_ranks_that_are_taken_for_lost_with_1_and_the_others_as_main_does) {
  if (GetParam() == "mpich") GTEST_SKIP() << "under MPICH on one host the launcher ends the job, whatever it is told";
  std::vector<std::string> words = launcher().survives_loss;
  words.insert(words.end(),
               {"-n", "3", "/bin/sh", "-c", "code=0; \"$@\" || code=$?; echo ended with $code >&2", "rank", self(),
                "--scenario=stopped", "--orrery-pes=1", "--orrery-machine-ranks=1", "--orrery-node-timeout=500ms"});
  const std::string said = end_of(words);
  EXPECT_EQ(count_of(said, "node 2 is taken for lost by the first node of the world"), 1) << said;
  EXPECT_EQ(count_of(said, "ended with 1"), 1) << said;
  EXPECT_EQ(count_of(said, "ended with 0"), 2) << said;
}
TEST_P(faults, are_none_if_a_debugger_stops_a_rank_for_long) {
  const std::string said = outcome("debugged", {3, 1, 1}, {"--orrery-node-timeout=500ms"});
  if (count_of(said, "nobody may be debugged here") != 0) GTEST_SKIP() << said;
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST_P(faults, of_a_rank_that_never_starts_mpi_end_the_others_which_say_why) {
  const std::string said = end_of({"-n", "1", self(), "--scenario=answers", "--orrery-startup-timeout=200ms", ":", "-n",
                                   "1", "/bin/sh", "-c", "exec sleep 100"});
  EXPECT_GE(count_of(said, "it waits for other ranks; look whether all hosts have started theirs"), 1) << said;
  EXPECT_EQ(count_of(said, "as if a rank were not started, or had ended: this one ends"), 1) << said;
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
}
// Open MPI 5 where ./run bench machines has installed it, or as ORRERY_OPENMPI5 names its folder.
TEST(faults_under_ulfm, of_a_killed_rank_are_reported_by_the_library) {
  const char* const named = std::getenv("ORRERY_OPENMPI5");
  const auto folder = named != nullptr ? std::filesystem::path(named)
                                       : std::filesystem::path(folder_of_program()) / "../../bench/openmpi5";
  const std::string file = (folder / "bin/mpirun").string();
  const mpi_launcher five{
      "openmpi", file.c_str(), {"--oversubscribe"}, {"--with-ft", "ulfm", "--mca", "btl", "tcp,self"}};
  if (const auto why = missing(five)) GTEST_SKIP() << *why;
  const std::string library = (folder / "lib/libmpi.so.40").string();
  const std::string said =
      program(command(five, {3, 1, 1}, "reported loss",
                      {"--orrery-node-timeout=100s", fmt::format("--orrery-mpi={}", library)}, true),
              file)
          .end();
  EXPECT_EQ(count_of(said, "node 2 was reported as failed by the MPI library"), 1) << said;
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST_P(faults, of_ranks_that_take_long_to_end_are_said_by_those_that_waited) {
  if (GetParam() == "mpich") GTEST_SKIP() << "one launcher is enough for a test of 30 s";
  const std::string said = outcome("slow end", {2, 1, 1});
  EXPECT_EQ(count_of(said, "node 0 ends without MPI_Finalize, as 10 s after its own end these had not ended: 1"), 1)
      << said;
}
TEST_P(faults, are_none_if_a_program_runs_again_without_the_others) {
  EXPECT_TRUE(end_of({"-n", "2", self(), "--again", "--scenario=answers", "--orrery-pes=1", "--orrery-machine-ranks=1"})
                  .ends_with("good"));
}
TEST_P(faults, do_not_come_of_programs_that_a_method_starts) {
  const std::string said = outcome("environment", {2, 1, 1});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST_P(faults, of_a_stack_that_is_full_are_said_also_where_the_library_has_handlers) {
  const std::string said = outcome("overflows", {2, 1, 1});
  EXPECT_EQ(count_of(said, "stack overflow in"), 1) << said;
  if (scheduler::slowed_down) return;  // the sanitizer may end it
  EXPECT_TRUE(said.ends_with(GetParam() == "mpich" ? "exit status 11" : "exit status 139")) << said;
}
TEST_P(faults, leave_the_programs_own_signal_handlers_as_they_are) {
  const std::string said = outcome("own handlers", {2, 1, 1});
  EXPECT_TRUE(said.ends_with("good")) << said;
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  std::signal(SIGUSR1, [](int) { user_signals = user_signals + 1; });
  return orrery::testing::run_tests_or_scenario(argc, argv,
                                                {{"answers", answers},
                                                 {"environment", environment},
                                                 {"overflows", overflows},
                                                 {"own handlers", own_handlers},
                                                 {"stopped", stopped_rank},
                                                 {"debugged", debugged_rank},
                                                 {"killed", killed},
                                                 {"slow end", slow_end},
                                                 {"reported loss", reported_loss}});
}
