// SPDX-License-Identifier: Apache-2.0
// Worlds over MPI that have little: no shared memory left on a receiver, one core for all PEs of a rank. Nothing hangs, nothing
// is lost, nobody starves.
#include "launch.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <stdexcept>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

namespace orrery {
namespace {

using namespace testing;

std::uint32_t last_node() { return world_nodes() - 1; }

// --- memory ----------------------------------------------------------------------------------------------------------

// From now on the system has no shared memory for this node beyond the first 64 MiB of its segment.
void give_no_more_memory() {
  constexpr std::uint32_t room = 64 << 20;
  std::array<sock_filter, 10> code{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 6),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),  // the mode: 0 asks for memory
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 4),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2]) + 4),  // the offset, its upper half
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 0, 3, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, room, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
  }};
  const sock_fprog program{code.size(), code.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    throw std::runtime_error("this system does not let a program filter its own system calls");
}

std::atomic<int> held = 0;
std::atomic<bool> is_free = false;
int held_here() { return held; }
int held_by_last_node() { return call<&held_here>(pe(world_pes() - 1)); }
void let_go() { is_free = true; }
void let_go_at_last_node() { call<&let_go>(pe(world_pes() - 1)); }

struct holder;
ORRERY_PROCESS(holder, hold, note, notes);
struct holder {
  // Reads its argument where it has come to, and keeps it there meanwhile.
  std::uint64_t hold(std::span<const char> bytes) const {
    ++held;
    while (!is_free) sleep_for(std::chrono::milliseconds(1));
    return static_cast<std::uint64_t>(std::ranges::count(bytes, 'x'));
  }
  void note(int n) {
    if (n == notes_ + 1) notes_ = n;
  }
  int notes() const { return notes_; }
  int notes_ = 0;
};

std::uint64_t send_and_wait(remote<holder> to, std::size_t bytes) {
  auto sum = start(to)->hold(std::vector<char>(bytes, 'x'));
  for (int n = 1; n <= 10; ++n) post(to)->note(n);
  return sum.get();
}

// More arguments are sent to the last node than it has memory for, and it gives none back until no more come.
void full() {
  constexpr std::size_t bytes = 8 << 20;
  constexpr int count = 16;
  const auto to = pe(world_pes() - 1);
  const auto other = node(last_node() - 1);  // asks in our place: what follows a block in its ring waits for it
  check(call<&held_by_last_node>(other) == 0, "somebody holds an argument already");
  call<&give_no_more_memory>(to);
  std::vector<remote<holder>> holders;
  for (int i = 0; i < count; ++i) holders.push_back(spawn<holder>(to));
  std::vector<future<std::uint64_t>> sums;
  for (const auto& h : holders) sums.push_back(start_call<&send_and_wait>(here(), h, bytes));
  int now = 0;
  for (int before = -1; now == 0 || now != before;) {
    before = now;
    sleep_for(std::chrono::milliseconds(150));
    now = call<&held_by_last_node>(other);
  }
  check(now <= 8, fmt::format("{} arguments of 8 MiB are in 64 MiB", now));
  call<&let_go_at_last_node>(other);
  for (auto& s : sums) check(s.get() == bytes, "an argument came otherwise");
  for (const auto& h : holders) check(h->notes() == 10, "posts behind a block that waited were lost, or overtook it");
}

// --- one core --------------------------------------------------------------------------------------------------------

std::atomic<bool> is_told = false;
void compute_until_told() {
  while (!is_told) {
  }
}
void tell() { is_told = true; }
int doubled(int n) { return 2 * n; }

// Of each node one PE computes, and ends only when the other PE, on the same core, has heard from another machine.
void one_core() {
  check(world_pes() == 2 * world_nodes(), "nodes do not have two PEs");
  const auto quiet = [](std::uint32_t n) { return pe(2 * n); };
  const auto busy = [](std::uint32_t n) { return pe(2 * n + 1); };
  std::vector<future<void>> computing;
  for (std::uint32_t n = 0; n < world_nodes(); ++n) computing.push_back(start_call<&compute_until_told>(busy(n)));
  for (std::uint32_t n = 1; n < world_nodes(); ++n)
    for (int i = 0; i < 20; ++i) check(call<&doubled>(quiet(n), i) == 2 * i, "a call to a machine with a busy PE");
  for (std::uint32_t n = 0; n < world_nodes(); ++n) call<&tell>(quiet(n));
  for (auto& c : computing) c.get();
  for (std::uint32_t n = 0; n < world_nodes(); ++n) check(call<&doubled>(busy(n), 1) == 2, "a PE that computed");
}

// --- the tests -------------------------------------------------------------------------------------------------------

class limits : public under_mpi {};
INSTANTIATE_TEST_SUITE_P(of, limits, ::testing::Values("openmpi", "mpich"), [](const auto& i) { return i.param; });

std::string wrong_in(std::string said) { return said.ends_with("good") ? std::string{} : said; }

TEST_P(limits, of_memory_make_arguments_wait_until_others_were_read) {
  EXPECT_EQ(wrong_in(outcome("full", {3, 1, 1})), "");
}
TEST_P(limits, of_one_core_for_all_pes_of_a_rank_by_its_launcher_starve_nobody) {
  auto options = command(launcher(), {2, 2, 1}, "one core");
  const auto bind = GetParam() == "mpich" ? std::vector<std::string>{"-bind-to", "core:1"}
                                          : std::vector<std::string>{"--bind-to", "core:overload-allowed"};
  options.insert(options.begin(), bind.begin(), bind.end());
  EXPECT_EQ(wrong_in(program(options, launcher().file).end()), "");
}
TEST_P(limits, of_one_core_for_all_ranks_starve_nobody) {
  const std::string taskset = "/usr/bin/taskset";
  if (!std::filesystem::exists(taskset)) GTEST_SKIP() << taskset << " is not installed";
  auto options = command(launcher(), {2, 2, 1}, "one core");
  if (GetParam() == "openmpi") options.insert(options.begin(), {"--bind-to", "none"});
  options.insert(options.begin(), {"-c", "0", launcher().file});
  EXPECT_EQ(wrong_in(program(options, taskset).end()), "");
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  return orrery::testing::run_tests_or_scenario(argc, argv, {{"full", full}, {"one core", one_core}});
}
