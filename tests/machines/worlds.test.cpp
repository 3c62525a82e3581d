// SPDX-License-Identifier: Apache-2.0
// What works between nodes of one machine works between machines. Each rank, or each two, of an mpirun on this machine are taken
// for a machine of their own. suites.test.cpp runs the scenarios of other tests so.
#include "launch.hpp"

#include <orrery/array/array.hpp>
#include <orrery/process/spread.hpp>
#include <orrery/transport/mpi/launcher.hpp>

#include <array>
#include <cstdlib>
#include <numeric>
#include <set>

namespace orrery {
namespace {

using namespace testing;

std::uint32_t last_pe() { return world_pes() - 1; }

// Bytes of which one in each 4 KiB, and the last, are not 0.
template <class Each>
void for_each_mark(std::uint64_t bytes, Each&& each) {
  for (std::uint64_t i = 0; i < bytes; i += 4096) each(i);
  each(bytes - 1);
}
std::vector<char> with_marks(std::uint64_t bytes) {
  std::vector<char> v(bytes);
  for_each_mark(bytes, [&](std::uint64_t i) { v[i] = static_cast<char>(1 + i / 4096 % 127); });
  return v;
}
std::uint64_t sum_of_marks(std::span<const char> v) {
  std::uint64_t sum = v.size();
  for_each_mark(v.size(), [&](std::uint64_t i) { sum = sum * 31 + static_cast<unsigned char>(v[i]); });
  return sum;
}

struct server;
ORRERY_PROCESS(server, add, total, note, sum, numbers, marks, marked, refuse, ask, where, know, wait_for_other);
struct server {
  int add(int n) { return total_ += n; }
  int total() const { return total_; }
  void note(int n) {
    if (n != last_ + 1) ++out_of_order_;
    last_ = n;
    total_ += out_of_order_ == 0 ? 1 : 0;
  }
  double sum(std::span<const double> v) const { return std::accumulate(v.begin(), v.end(), 0.0); }
  std::vector<double> numbers(std::size_t n) const {
    std::vector<double> v(n);
    std::iota(v.begin(), v.end(), 0.0);
    return v;
  }
  std::uint64_t marks(std::span<const char> v) const { return sum_of_marks(v); }
  std::vector<char> marked(std::uint64_t bytes) const { return with_marks(bytes); }
  void refuse(const std::string& why) const { throw std::out_of_range(why); }
  int ask(remote<server> other, int n) const { return other->add(n); }
  std::uint32_t where() const { return this_machine(); }
  void know(remote<server> other) { other_ = other; }
  int wait_for_other() { return other_->wait_for_other(); }
  int total_ = 0;
  int last_ = 0;
  int out_of_order_ = 0;
  remote<server> other_;
};

void messages() {
  const auto s = spawn<server>(pe(last_pe()));
  check(s->where() == world_machines() - 1, "the last PE is not on the last machine");
  check(s->add(3) == 3 && s->add(4) == 7, "calls do not add up");
  std::vector<future<int>> all;
  for (int i = 0; i < 100; ++i) all.push_back(start(s)->add(1));
  int last = 0;
  for (auto& f : all) last = f.get();
  check(last == 107, "started calls do not add up");
  const auto counted = spawn<server>(pe(last_pe()));
  constexpr int posts = 20'000;
  for (int i = 1; i <= posts; ++i) post(counted)->note(i);
  check(counted->total() == posts, "posts were lost or overtook each other");
  check_contains(thrown<std::out_of_range>("an exception", [&] { s->refuse("no such thing"); }), "no such thing");
  std::vector<remote<server>> everywhere;
  for (const std::uint32_t p : reachable_pes()) everywhere.push_back(spawn<server>(pe(p)));
  for (const auto& a : everywhere)
    for (const auto& b : everywhere)
      if (!(a == b)) check(a->ask(b, 1) > 0, "a call from another machine failed");
}

// Larger than a record, than a frame and than a ring.
void blocks() {
  const auto s = spawn<server>(pe(last_pe()));
  for (const std::size_t n : {100UL, 1'000UL, 10'000UL, 100'000UL, 1'000'000UL}) {
    const std::vector<double> there(n, 0.5);
    check(s->sum(there) == static_cast<double>(n) / 2, fmt::format("{} numbers came otherwise", n));
    const auto back = s->numbers(n);
    check(back.size() == n && back.back() == static_cast<double>(n - 1),
          fmt::format("{} numbers came back otherwise", n));
  }
  std::vector<future<double>> all;
  const std::vector<double> some(5'000, 1.0);
  for (int i = 0; i < 300; ++i) {
    all.push_back(start(s)->sum(some));
    if (i % 3 == 0) post(s)->note(i);
  }
  for (auto& f : all) check(f.get() == 5'000, "one of many blocks came otherwise");
}

// There and back, as large as messages can be that are counted with 31 and 32 bits, and more.
void marked_blocks(std::span<const std::uint64_t> sizes) {
  const auto s = spawn<server>(pe(last_pe()));
  for (const std::uint64_t bytes : sizes) {
    const std::uint64_t expected = [&] {
      const std::vector<char> there = with_marks(bytes);
      const std::uint64_t sum = sum_of_marks(there);
      check(s->marks(there) == sum, fmt::format("{} bytes came otherwise", bytes));
      return sum;
    }();
    check(sum_of_marks(s->marked(bytes)) == expected, fmt::format("{} bytes came back otherwise", bytes));
  }
}
void pieces() {
  constexpr std::uint64_t piece = 64 << 10;  // as the command line says
  marked_blocks(
      std::array{piece - 1, piece, piece + 1, 2 * piece - 1, 2 * piece, 2 * piece + 1, 5 * piece, 100 * piece});
}
template <std::uint64_t Bytes>
void huge() {
  marked_blocks(std::array{Bytes});
}
constexpr std::uint64_t gib = std::uint64_t{1} << 30;

int one_more(int n) { return n + 1; }
std::uint32_t own_machine() { return this_machine(); }
std::string own_host_name() {
  char name[256] = {};
  (void)::gethostname(name, sizeof name - 1);
  return name;
}

struct cell;
ORRERY_PROCESS(cell, step, hop, where);
struct cell : element<cell> {
  cell() = default;
  explicit cell(double v) : value(v) {}
  void step(const result_target& to) { contribute(value, orrery::sum, to); }
  void hop(std::uint32_t to) { migrate_to(to); }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & value;
  }
  double value = 0;
};

void everything_else() {
  check(call<&one_more>(pe(last_pe()), 1) == 2, "a function on the last machine");
  const auto named = spawn<server>(pe(last_pe()));
  publish("/machines/server", named);
  check(lookup<server>("/machines/server") == named, "a name is not found");
  constexpr int n = 64;
  const auto a = create_array<cell>(range<int>{n}, {.name = "cells"}, {}, 1.5);
  for (int i = 0; i < n; ++i) post(a[i])->hop(static_cast<std::uint32_t>(i * 7) % world_pes());
  quiescence();
  for (int i = 0; i < n; i += 9)
    check(a[i]->where() == static_cast<std::uint32_t>(i * 7) % world_pes(), "an element is not where it went");
  for (int round = 0; round < 5; ++round) {
    auto [done, total] = expect_result<double>();
    post(a)->step(done);
    check(total.get() == 1.5 * n, "a reduction over machines");
  }
}

void await_nothing() {
  auto [unused, never] = expect_result<double>();
  (void)never.get();
}

// A cycle of calls between machines.
void cycle() {
  const auto a = spawn<server>(pe(0));
  const auto b = spawn<server>(pe(last_pe()));
  a->know(b);
  b->know(a);
  check_contains(thrown<deadlock_error>("a cycle of calls", [&] { (void)a->wait_for_other(); }), "wait_for_other");
}

// Programs that are started from a process are not taken for ranks.
void no_launch() { check(!transport::find_mpi_launch(), "variables of the launcher are still set"); }

// Nothing can ever happen again.
void dead() { call<&await_nothing>(pe(last_pe())); }

// The other ranks run another program, which knows this function, too, but no server.
void others_programs() {
  check(world_nodes() == 3, "the ranks of two programs are not one world");
  for (std::uint32_t n = 0; n < world_nodes(); ++n) {
    check(call<&own_pid>(node(n)) > 0, "a rank of another program does not answer");
  }
  check_contains(thrown<std::exception>("a class that the other program does not have",
                                        [] { spawn<server>(pe(last_pe()))->add(1); }),
                 "server");
  // What is made on all PEs of a program is made on none of the other one, which lacks the classes.
  check(program_pes() == std::vector<std::uint32_t>{0}, "PEs of another program are taken for own ones");
  check(*spread(std::string("here")) == "here", "a value for all nodes of a program");
  const auto a = create_array<cell>(range<int>{5}, {.name = "cells"}, {}, 2.0);
  auto [done, total] = expect_result<double>();
  post(a)->step(done);
  check(total.get() == 10, "a reduction beside another program");
}

// By the names of their hosts; and what each says of itself.
void places() {
  const std::vector<std::string> names = machine_names();
  check(names.size() == world_machines(), "machines without names");
  std::set<std::uint32_t> pes;
  for (std::uint32_t m = 0; m < world_machines(); ++m) {
    check(spawn<server>(machine(m))->where() == m, "machine(i) is another one");
    check(spawn<server>(machine(names[m]))->where() == m, "machine(name) is another one");
    const machine_state s = describe_machine(m);
    check(s.number == m && s.name == names[m], "a machine describes another one");
    check(s.cores > 0 && s.memory > 0 && !s.system.empty() && !s.file_systems.empty(),
          "a machine does not say what it has");
    check(s.nodes.size() == world_nodes() / world_machines(), "a machine has other nodes");
    for (const std::uint32_t n : s.nodes)
      check(call<&own_machine>(node(n)) == m, "node(i) is on another machine than it was said to be");
    pes.insert(s.pes.begin(), s.pes.end());
  }
  check(pes.size() == world_pes(), "machines do not have all PEs");
  check_contains(thrown<usage_error>("a host that is not there", [] { (void)machine("no-such-host"); }), names.back());
}

// On hosts that share nothing.
void hosts() {
  check(world_machines() == 2 && world_nodes() == 4, "four ranks on two hosts are not two machines of two nodes");
  const std::string host = call<&own_host_name>(node(1));
  check(spawn<server>(machine(host))->where() == call<&own_machine>(node(1)), "machine(host) is another one");
  messages();
  blocks();
  everything_else();
}
// The same on four, each with one node.
void four_hosts() {
  check(world_machines() == 4 && world_nodes() == 4, "four ranks on four hosts are not four machines");
  places();
  messages();
  everything_else();
}

// The other ranks count in the server of the first one, until the world ends.
void count_role() {
  const auto s = await_name<server>("/roles/server", std::chrono::seconds(60));
  s->add(1);
  check(this_node() != 0, "the first rank runs a role");
  for (;;) sleep_for(std::chrono::seconds(1));
}
void with_roles() {
  const auto s = spawn<server>(here());
  publish("/roles/server", s);
  while (s->total() != static_cast<int>(world_nodes()) - 1) sleep_for(std::chrono::milliseconds(1));
}

// Asks who started it to cut one of two hosts off, by a line, and misses it then.
void cut_off() {
  check(world_machines() == 2 && world_nodes() == 4, "four ranks on two hosts are not two machines of two nodes");
  std::vector<remote<server>> here;
  std::vector<remote<server>> there;
  for (const std::uint32_t p : reachable_pes()) {
    const auto s = spawn<server>(pe(p));
    (s->where() == this_machine() ? here : there).push_back(s);
  }
  check(here.size() == 2 && there.size() == 2, "the hosts do not have two PEs each");
  fmt::print(stderr, "cut {}\n", here.size());
  for (const auto& s : there) {
    (void)thrown<node_lost>("calls to a host that is cut off", [&] {
      for (;;) (void)s->add(1);
    });
  }
  for (const auto& s : here) check(s->add(1) == 1, "a rank of the same host does not answer any more");
}

int own_rank_survives() {
  kill_own_node();
  return 0;
}

void loss() {
  const auto s = spawn<server>(pe(last_pe()));
  const auto other = spawn<server>(pe(1));
  s->add(1);
  (void)thrown<node_lost>("a call to a machine that is lost", [] { (void)call<&own_rank_survives>(pe(last_pe())); });
  (void)thrown<node_lost>("a later call", [&] { s->add(1); });
  check(other->add(5) == 5, "other machines do not answer any more");
  check(spawn<server>(pe(0))->ask(other, 1) == 6, "nor each other");
}

// A rank that does not run for a while.
void stopped_rank() {
  const auto s = spawn<server>(pe(last_pe()));
  s->add(1);
  const int pid = call<&own_pid>(pe(last_pe()));
  ::kill(pid, SIGSTOP);
  (void)thrown<node_lost>("a call to a rank that is stopped", [&] { s->add(1); });
  ::kill(pid, SIGCONT);
  check(call<&one_more>(pe(1), 1) == 2, "the others do not answer any more");
}

void flood(remote<server> all_to) {
  for (int i = 0; i < 20'000; ++i) post(all_to)->add(1);
}
void flooded() {
  const auto one = spawn<server>(pe(last_pe()));
  std::vector<future<void>> all;
  for (const std::uint32_t p : reachable_pes()) all.push_back(start_call<&flood>(pe(p), one));
  for (auto& f : all) f.get();
  quiescence();
  check(one->total() == static_cast<int>(20'000 * reachable_pes().size()), "posts of many to one were lost");
}

}  // namespace
}  // namespace orrery

// --- the tests -----------------------------------------------------------------------------------------------------

namespace orrery {
namespace {

// All of it under one library, a part under the other.
class over_mpi : public under_mpi {};
INSTANTIATE_TEST_SUITE_P(of, over_mpi, ::testing::Values("openmpi", "mpich"), [](const auto& i) { return i.param; });
class over_open_mpi : public under_mpi {};
INSTANTIATE_TEST_SUITE_P(of, over_open_mpi, ::testing::Values("openmpi"), [](const auto& i) { return i.param; });

TEST_P(over_mpi, machines_call_each_other_and_posts_keep_their_order) {
  EXPECT_EQ(wrong_in(outcome("messages", {3, 1, 1})), "");
}
TEST_P(over_mpi, machines_of_two_nodes_share_memory_inside) { EXPECT_EQ(wrong_in(outcome("messages", {4, 2, 2})), ""); }
TEST_P(over_mpi, large_arguments_and_results_travel) { EXPECT_EQ(wrong_in(outcome("blocks", {2, 1, 1})), ""); }
TEST_P(over_mpi, large_arguments_travel_in_pieces) {
  EXPECT_EQ(wrong_in(outcome("pieces", {2, 1, 1}, {"--orrery-piece=64K"})), "");
  EXPECT_EQ(wrong_in(outcome("blocks", {2, 1, 1}, {"--orrery-piece=4K"})), "");
}
// By hand: up to 16 GiB of memory, and half a minute each.
TEST_P(over_open_mpi, arguments_of_2_and_5_gib_travel) {
  if (std::getenv("ORRERY_TEST_HUGE") == nullptr) GTEST_SKIP() << "it takes 16 GiB: ORRERY_TEST_HUGE=1 runs it";
  for (const char* scenario : {"2 GiB - 1", "2 GiB", "5 GiB"})
    EXPECT_EQ(wrong_in(outcome(scenario, {2, 1, 1}, {"--orrery-memory=6G", "--orrery-node-timeout=30s"})), "")
        << scenario;
}
TEST_P(over_mpi, small_rings_hold_senders_back) {
  EXPECT_EQ(wrong_in(outcome("blocks", {2, 1, 1}, {"--orrery-ring=32K"})), "");
  EXPECT_EQ(wrong_in(outcome("messages", {3, 1, 1}, {"--orrery-ring=32K", "--orrery-mailbox=4K"})), "");
}
TEST_P(over_mpi, functions_names_arrays_and_quiescence_work) {
  EXPECT_EQ(wrong_in(outcome("everything else", {3, 1, 1})), "");
  EXPECT_EQ(wrong_in(outcome("everything else", {4, 2, 2})), "");
}
TEST_P(over_mpi, hosts_with_networks_and_memory_of_their_own_are_machines) {
  const on_hosts run({GetParam(), "4"}, "hosts");
  if (run.missing) GTEST_SKIP() << *run.missing;
  EXPECT_EQ(wrong_in(run.said), "");
}
TEST_P(over_mpi, four_hosts_are_four_machines) {
  const on_hosts run({"--hosts=4", GetParam(), "4"}, "four hosts");
  if (run.missing) GTEST_SKIP() << *run.missing;
  EXPECT_EQ(wrong_in(run.said), "");
}
TEST_P(over_mpi, machines_are_found_by_name_and_say_what_they_have) {
  EXPECT_EQ(wrong_in(outcome("places", {3, 1, 1})), "");
  EXPECT_EQ(wrong_in(outcome("places", {4, 2, 2})), "");
}
// The script cuts when the scenario has asked for it, and then says what the ranks on both hosts have said.
TEST_P(over_mpi, a_host_that_is_cut_off_is_lost_and_its_ranks_end) {
  const on_hosts run({"--cut", GetParam(), "4"}, "cut off", {"--orrery-node-timeout=2s"});
  if (run.missing) GTEST_SKIP() << *run.missing;
  const std::string& said = run.said;
  EXPECT_TRUE(said.ends_with("good")) << said;
  for (const int node : {1, 3}) {
    EXPECT_EQ(count_of(said, fmt::format("node {} was silent for 2000 ms: calls to it fail with node_lost", node)), 1)
        << said;
  }
  // The second of them may be held up by MPICH, which asks its launcher for the end of the first.
  const int alone = count_of(said, "the first node of the world was silent for 2000 ms: node ");
  EXPECT_GE(alone, 1) << said;
  EXPECT_EQ(alone + count_of(said, " has not returned for 4000 ms, as if the launcher or the network were gone"), 2)
      << said;
  EXPECT_EQ(count_of(said, "ended with 1"), 2) << said;
}
TEST_P(over_mpi, a_cycle_of_calls_is_found) { EXPECT_EQ(wrong_in(outcome("cycle", {2, 1, 1})), ""); }
TEST_P(over_mpi, a_world_where_nothing_can_happen_ends_with_a_report) {
  const std::string said = outcome("dead", {3, 1, 1});
  EXPECT_EQ(count_of(said, "nothing runs and nothing is on its way in the whole world"), 1) << said;
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
}
TEST_P(over_mpi, starting_nodes_under_a_rank_is_refused) {
  const std::string said = outcome("messages", {2, 1, 1}, {"--orrery-nodes=2"});
  EXPECT_GE(count_of(said, "leave out --orrery-nodes"), 1) << said;
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
}
TEST_P(over_mpi, ranks_are_worlds_of_their_own_if_the_user_says_so) {
  EXPECT_EQ(wrong_in(outcome("cycle", {2, 2, 1}, {"--orrery-mpi=off"})), "");
}
TEST_P(over_mpi, what_a_launcher_has_set_is_not_there_while_the_program_runs) {
  EXPECT_EQ(wrong_in(outcome("no launch", {2, 1, 1})), "");
  EXPECT_EQ(wrong_in(outcome("no launch", {2, 1, 1}, {"--orrery-mpi=off"})), "");
}
TEST_P(over_mpi, the_file_of_the_library_may_be_named) {
  const std::string file = GetParam() == "mpich" ? "libmpich.so.12" : "libmpi.so.40";
  EXPECT_EQ(wrong_in(outcome("messages", {2, 1, 1}, {"--orrery-mpi=" + file})), "");
}
TEST_P(over_mpi, a_file_that_is_no_mpi_library_is_refused) {
  const std::string said = outcome("cycle", {2, 1, 1}, {"--orrery-mpi=libm.so.6"});
  EXPECT_GE(count_of(said, "is no MPI library"), 1) << said;
}

// Under MPICH on one host the launcher ends the job, whatever it is told.
TEST_P(over_open_mpi, a_rank_that_is_killed_is_lost_and_the_others_go_on) {
  const auto options = command(launcher(), {3, 1, 1}, "loss", {"--orrery-node-timeout=1s"}, true);
  const std::string said = program(options, launcher().file).end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "node 2 was silent for 1000 ms: calls to it fail with node_lost"), 1) << said;
}
TEST_P(over_open_mpi, a_killed_rank_of_a_shared_machine_is_missed_at_once) {
  const auto options = command(launcher(), {4, 1, 2}, "loss", {"--orrery-node-timeout=1min"}, true);
  const std::string said = program(options, launcher().file).end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "node 3"), 1) << said;
}

TEST_P(over_open_mpi, a_rank_that_was_stopped_is_lost_and_ends_when_it_goes_on) {
  const auto options = command(launcher(), {3, 1, 1}, "stopped", {"--orrery-node-timeout=500ms"}, true);
  const std::string said = program(options, launcher().file).end();
  EXPECT_EQ(count_of(said, "node 2 was silent for 500 ms: calls to it fail with node_lost"), 1) << said;
  EXPECT_EQ(count_of(said, "node 2 is taken for lost by the first node of the world"), 1) << said;
  EXPECT_EQ(count_of(said, "do not answer"), 0) << said;
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST_P(over_mpi, several_programs_of_one_launch_are_one_world) {
  const std::string other = folder_of_program() + "/test_groups_nodes";
  if (!std::filesystem::exists(other)) GTEST_SKIP() << other << " was not built";
  auto options = command(launcher(), {1, 1, 1}, "others");
  options.insert(options.end(),
                 {":", "-n", "2", other, "--scenario=calls", "--orrery-pes=1", "--orrery-machine-ranks=1"});
  EXPECT_EQ(wrong_in(program(options, launcher().file).end()), "");
}
TEST_P(over_mpi, programs_that_contradict_each_other_are_refused_by_name) {
  const std::string shop = folder_of_program() + "/meeting_shop";
  const std::string other = folder_of_program() + "/meeting_customer_other_signature";
  if (!std::filesystem::exists(shop) || !std::filesystem::exists(other)) GTEST_SKIP() << shop << " was not built";
  std::vector<std::string> options = launcher().options;
  options.insert(options.end(), {"-n", "1", shop, "--orrery-pes=1", ":", "-n", "1", other, "--orrery-pes=1"});
  const std::string said = program(options, launcher().file).end();
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
  EXPECT_GE(count_of(said,
                     "program 'meeting_customer_other_signature' of rank 1 contradicts a program of the ranks "
                     "before it: "),
            1)
      << said;
  EXPECT_GE(count_of(said, "int shop::counter::add(long)"), 1) << said;
}
TEST_P(over_mpi, ranks_that_run_no_main_may_run_a_role) {
  EXPECT_EQ(wrong_in(outcome("roles", {3, 1, 1}, {"--orrery-role=count"})), "");
  // As in mpirun -n 1 ./storage : -n 2 ./transform --orrery-role=work
  std::vector<std::string> words = command(launcher(), {1, 1, 1}, "roles");
  const auto others = command(launcher(), {2, 1, 1}, "roles", {"--orrery-role=count"});
  words.emplace_back(":");
  words.insert(words.end(), others.begin() + static_cast<std::ptrdiff_t>(launcher().options.size()), others.end());
  EXPECT_EQ(wrong_in(program(words, launcher().file).end()), "");
  const std::string said = outcome("roles", {2, 1, 1}, {"--orrery-role=cook"});
  EXPECT_GE(count_of(said, "--orrery-role=cook: the roles of this program are count, fail"), 1) << said;
}
TEST_P(over_mpi, a_rank_that_is_refused_ends_the_launch) {
  std::vector<std::string> words = command(launcher(), {1, 1, 1}, "messages");
  const auto others = command(launcher(), {2, 1, 1}, "messages", {"--orrery-role=cook"});
  words.emplace_back(":");
  words.insert(words.end(), others.begin() + static_cast<std::ptrdiff_t>(launcher().options.size()), others.end());
  const std::string said = program(words, launcher().file).end();
  EXPECT_GE(count_of(said, "--orrery-role=cook: the roles of this program are count, fail"), 1) << said;
  EXPECT_EQ(count_of(said, "has not returned"), 0) << said;
  EXPECT_TRUE(ended_with_1(launcher(), said)) << said;
}
TEST_P(over_mpi, a_role_that_fails_is_one_line) {
  const std::string said = outcome("messages", {2, 1, 1}, {"--orrery-role=fail"});
  EXPECT_EQ(count_of(said, "orrery: the role of node 1 ended with an exception: int was thrown"), 1) << said;
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST_P(over_mpi, everybody_may_flood_one_process) {
  EXPECT_EQ(wrong_in(outcome("flooded", {4, 1, 1}, {"--orrery-mailbox=8K"})), "");
}

}  // namespace
}  // namespace orrery

int main(int argc, char** argv) {
  using namespace orrery;
  orrery::testing::prepare_for_launchers();
  return orrery::testing::run_tests_or_scenario(
      argc, argv,
      {{"messages", messages},
       {"blocks", blocks},
       {"pieces", pieces},
       {"2 GiB - 1", huge<2 * gib - 1>},
       {"2 GiB", huge<2 * gib>},
       {"5 GiB", huge<5 * gib>},
       {"everything else", everything_else},
       {"hosts", hosts},
       {"four hosts", four_hosts},
       {"places", places},
       {"others", others_programs},
       {"cut off", cut_off},
       {"stopped", stopped_rank},
       {"flooded", flooded},
       {"cycle", cycle},
       {"dead", dead},
       {"no launch", no_launch},
       {"roles", with_roles},
       {"loss", loss}},
      {{"count", [](const args&) { count_role(); }}, {"fail", [](const args&) { throw 7; }}});
}
