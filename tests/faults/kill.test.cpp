// SPDX-License-Identifier: Apache-2.0
// A node is killed (SIGKILL) in the middle of everything.
#include "../support/scenario.hpp"

#include <orrery/scheduler/node.hpp>
#include <orrery/transport/shm/world.hpp>

#include <algorithm>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <tuple>

#include <sys/mman.h>

namespace orrery::faults {
namespace {

using namespace testing;

constexpr std::uint32_t victim_node = 2;

// What the killed node serves.
struct server;
ORRERY_PROCESS(server, number, sum, numbers, never, note, eat, noted, ask, ask_never);
struct server {
  int number() { return 7; }
  double sum(std::span<const double> v) {
    return v.empty() ? 0.0 : v.front() + v.back() + static_cast<double>(v.size());
  }
  std::vector<double> numbers(std::size_t n) { return std::vector<double>(n, 1.5); }
  int never() {
    sleep_for(std::chrono::hours(1));
    return 0;
  }
  void note(int) { ++notes; }
  void eat(std::span<const double>) { ++notes; }
  int noted() { return notes; }
  int ask(remote<server> other) { return other->number(); }
  int ask_never(remote<server> other) { return other->never(); }
  int notes = 0;
};

struct worker;
ORRERY_PROCESS(worker, rank_of, meet);
struct worker : member<worker> {
  std::size_t rank_of() const { return rank(); }
  void meet() { barrier(); }
};

// The segments of nodes that this OS process has mapped, and the shared memory it has open.
struct shared_memory {
  std::set<std::string> mapped;
  std::size_t open = 0;
};
shared_memory look_at_memory() {
  shared_memory m;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:orrery-node") == std::string::npos) continue;
    std::istringstream words(line);
    std::string range, rights, offset, device, inode;
    words >> range >> rights >> offset >> device >> inode;
    m.mapped.insert(inode);
  }
  std::error_code e;
  for (const auto& f : std::filesystem::directory_iterator("/proc/self/fd"))
    if (std::filesystem::read_symlink(f.path(), e).string().find("memfd:orrery") != std::string::npos) ++m.open;
  return m;
}
std::size_t mapped_nodes() { return look_at_memory().mapped.size(); }
std::size_t open_memory() { return look_at_memory().open; }

transport::arena& own_arena() { return scheduler::current_pe->owner().world()->shared()->memory(); }
std::uint64_t bytes_in_use() { return own_arena().stats().in_use; }

// Waits until memory that the killed node held has come back. What is in use then.
std::uint64_t await_memory(std::uint64_t at_most) {
  while (bytes_in_use() > at_most) yield();
  return bytes_in_use();
}

// --- under load --------------------------------------------------------------------------------------------------------

// Runs `f` until it throws node_lost; false if it throws anything else or gives a wrong result.
template <class F>
bool until_lost(F f) {
  try {
    while (f()) {
    }
    return false;
  } catch (const node_lost&) {
    return true;
  } catch (const std::exception& e) {
    fmt::print(stderr, "node {}: {} instead of node_lost\n", this_node(), e.what());
    return false;
  }
}

// A future that must end: with the value or with node_lost.
template <class T>
bool ends(future<T>& f) {
  try {
    (void)f.get();
    return true;
  } catch (const node_lost&) {
    return true;
  } catch (const std::exception& e) {
    fmt::print(stderr, "node {}: a future ended with {}\n", this_node(), e.what());
    return false;
  }
}

bool calls(remote<server> s) {
  return until_lost([&] { return s->number() == 7; });
}
// Runs `f`, which posts, until the node of s is known to be lost. Nothing is thrown.
template <class F>
bool until_out_of_reach(remote<server> s, F f) {
  try {
    while (scheduler::current_pe->owner().reachable(s.address().pe)) {
      f();
      yield();  // who only posts never waits
    }
    return true;
  } catch (const std::exception& e) {
    fmt::print(stderr, "node {}: a post threw {}\n", this_node(), e.what());
    return false;
  }
}
bool posts(remote<server> s) {
  return until_out_of_reach(s, [&] {
    for (int i = 0; i < 100; ++i) post(s)->note(1);
  });
}
bool posts_of_blocks(remote<server> s) {
  const std::vector<double> v(3000, 2);
  return until_out_of_reach(s, [&] {
    for (int i = 0; i < 10; ++i) post(s)->eat(v);
  });
}
bool large_calls(remote<server> s) {
  const std::vector<double> v(100'000, 1);
  return until_lost([&] { return s->sum(v) == 100'002 && s->numbers(20'000).size() == 20'000; });
}
bool futures(remote<server> s) {
  std::vector<future<int>> never;
  for (int i = 0; i < 50; ++i) never.push_back(start(s)->never());
  std::vector<future<int>> many;
  const bool lost = until_lost([&] {
    many.push_back(start(spawn<server>(near(s)))->number());
    if (many.size() > 200) {
      for (auto& f : many) (void)f.get();
      many.clear();
    }
    return true;
  });
  bool good = lost;
  for (auto& f : never) good = ends(f) && good;
  for (auto& f : many) good = ends(f) && good;
  return good;
}
bool parked_callers(remote<server> s) {
  // Each is parked in a call; one more waits for somebody who waits for the victim.
  const auto middle = spawn<server>(here());
  std::vector<future<int>> all;
  all.push_back(start(middle)->ask_never(s));
  for (int i = 0; i < 20; ++i) all.push_back(start(spawn<server>(here()))->ask_never(s));
  bool good = true;
  for (auto& f : all) good = until_lost([&] { return f.get() != 0; }) && good;
  return good;
}
bool lookups(remote<server> s) {
  return until_lost([&] { return s->noted() >= 0; });
}

// All of that at once from this PE, with servers of its own on the victim.
bool load(std::uint32_t on_pe, remote<function> tell) {
  using job = bool (*)(remote<server>);
  std::vector<future<bool>> running;
  const auto begin = [&]<job F>(std::integral_constant<job, F>, placement where) {
    running.push_back(start_call<F>(here(), spawn<server>(where)));
  };
  const auto where = pe(on_pe);
  begin(std::integral_constant<job, &calls>{}, where);
  begin(std::integral_constant<job, &posts>{}, where);
  begin(std::integral_constant<job, &posts_of_blocks>{}, where);
  begin(std::integral_constant<job, &large_calls>{}, where);
  begin(std::integral_constant<job, &futures>{}, where);
  begin(std::integral_constant<job, &parked_callers>{}, where);
  begin(std::integral_constant<job, &lookups>{}, where);
  send(tell, 1);
  bool good = true;
  for (auto& f : running) good = f.get() && good;
  return good;
}

// The living still serve each other.
int living_server(std::uint32_t of_pe) {
  const auto s = spawn<server>(pe(of_pe));
  const std::vector<double> v(50'000, 3);
  int good = 0;
  for (int i = 0; i < 20; ++i) good += s->sum(v) == 50'006 && s->number() == 7 ? 1 : 0;
  destroy(s);
  return good;
}

std::vector<std::uint32_t> pes_not_on(std::uint32_t lost, std::vector<std::uint32_t>& lost_pes) {
  std::vector<std::uint32_t> living;
  std::vector<future<std::uint32_t>> nodes;
  for (std::uint32_t i = 0; i < world_pes(); ++i) nodes.push_back(start_call<&this_node>(pe(i)));
  for (std::uint32_t i = 0; i < world_pes(); ++i) (nodes[i].get() == lost ? lost_pes : living).push_back(i);
  return living;
}

void under_load() {
  std::vector<std::uint32_t> dying;
  const auto living = pes_not_on(victim_node, dying);
  const int pid = call<&own_pid>(node(victim_node));
  const auto named = spawn<server>(pe(dying[0]));
  publish("/victim", named);
  auto workers = spawn_group<worker>(everywhere(), 2 * world_pes());

  std::vector<future<bool>> loads;
  for (const auto p : living)
    loads.push_back(start_call<&load>(pe(p), dying[p % dying.size()], this_process<function>()));
  for (std::size_t i = 0; i < living.size(); ++i) (void)receive<int>();
  auto meeting = start(workers)->meet();
  (void)meeting.get();  // all are there
  ::kill(pid, SIGKILL);
  (void)thrown<node_lost>("a broadcast to a group with lost members", [&] {
    for (;;) (void)workers->rank_of();
  });
  for (auto& f : loads) check(f.get(), "something did not end as it should");

  for (const auto p : living) call<&await_loss_of>(pe(p), victim_node);
  (void)thrown<node_lost>("a call", [&] { (void)named->number(); });
  (void)thrown<node_lost>("a future", [&] { (void)start(named)->number().get(); });
  (void)thrown<node_lost>("a destroy", [&] { destroy(named); });
  (void)thrown<node_lost>("a spawn", [&] { (void)spawn<server>(pe(dying[0])); });
  (void)thrown<node_lost>("a spawn at the node", [&] { (void)spawn<server>(node(victim_node)); });
  (void)thrown<node_lost>("a remote function", [&] { (void)call<&own_pid>(pe(dying[0])); });
  (void)thrown<name_not_found>("a lookup", [&] { (void)lookup<server>("/victim"); });
  (void)thrown<node_lost>("a barrier", [&] { start(workers[0])->meet().get(); });
  for (int i = 0; i < 50; ++i)
    check(std::ranges::count(dying, spawn<server>(anywhere()).address().pe) == 0, "anywhere()");
  for (const auto from : living)
    for (const auto to : living) check(call<&living_server>(pe(from), to) == 20, "the living do not answer");
  quiescence();
}

// --- one-way messages --------------------------------------------------------------------------------------------------

std::uint64_t failed_posts() { return scheduler::current_pe->count().failed_posts; }

void posts_to_the_lost() {
  const auto there = spawn<server>(node(1));
  const int pid = call<&own_pid>(node(1));
  ::kill(pid, SIGKILL);
  await_loss_of(1);
  const std::uint64_t before = failed_posts();
  post(there)->note(1);
  check(try_post(there)->note(2), "try_post says that there is no room");
  post_call<&kill_own_node>(pe(there.address().pe));
  for (int i = 0; i < 1000; ++i) post(there)->note(i);
  check(failed_posts() == before + 1003, "not all are counted");
  const std::string said = thrown<node_lost>("a call", [&] { (void)there->number(); });
  check_contains(said, "before this was sent, so that nothing was done there");
}

void posts_on_the_way() {
  const auto there = spawn<server>(node(1));
  const int pid = call<&own_pid>(node(1));
  ::kill(pid, SIGSTOP);
  siginfo_t stopped{};
  check(::waitid(P_PID, static_cast<id_t>(pid), &stopped, WSTOPPED | WNOWAIT) == 0, "it is no child");
  for (int i = 0; i < 100; ++i) post(there)->note(i);
  auto answer = start(there)->number();
  ::kill(pid, SIGKILL);
  check_contains(thrown<node_lost>("a call on its way", [&] { (void)answer.get(); }),
                 "may or may not have taken effect");
  check(failed_posts() == 100, "not all are counted");
}

// --- memory ------------------------------------------------------------------------------------------------------------

void memory_comes_back() {
  std::vector<std::uint32_t> dying;
  const auto living = pes_not_on(victim_node, dying);
  const int pid = call<&own_pid>(node(victim_node));
  std::vector<std::uint64_t> before;
  for (const auto p : living) before.push_back(call<&bytes_in_use>(pe(p)));
  std::vector<future<bool>> loads;
  for (const auto p : living) loads.push_back(start_call<&load>(pe(p), dying[0], this_process<function>()));
  for (std::size_t i = 0; i < living.size(); ++i) (void)receive<int>();
  for (const auto p : living) check(call<&mapped_nodes>(pe(p)) == world_nodes(), "not all nodes are mapped");
  ::kill(pid, SIGKILL);
  for (auto& f : loads) check(f.get(), "something did not end as it should");
  for (const auto p : living) {
    call<&await_loss_of>(pe(p), victim_node);
    while (call<&mapped_nodes>(pe(p)) != world_nodes() - 1) yield();  // another PE of its node may use it still
    check(call<&open_memory>(pe(p)) == 2, "memory of other nodes is open");  // its own and the world's
  }
  // Rings and blocks to the dead are free; rings among the living may have been made since.
  quiescence();
  for (std::size_t i = 0; i < living.size(); ++i) {
    const std::uint64_t rings = world_pes() * std::uint64_t{256 << 10};
    (void)call<&await_memory>(pe(living[i]), before[i] + rings);
  }
}

// --- a world that many join and are killed in --------------------------------------------------------------------------

struct host_process {
  double take(std::span<const double> v) { return v.back(); }
  std::vector<double> give(std::size_t n) { return std::vector<double>(n, 2.5); }
  /// Comes back with a block of the guest in its hands.
  double take_and_wait(std::span<const double> v, remote<server> guest) {
    try {
      (void)guest->never();
    } catch (const node_lost&) {
    }
    return v.back();
  }
};
ORRERY_PROCESS(host_process, take, give, take_and_wait);

constexpr int guests = slowed_down ? 12 : 40;

void host() {
  publish("/host", spawn<host_process>(here()));
  fmt::print(stderr, "up\n");
  std::vector<std::uint64_t> used;
  for (int i = 0; i < guests; ++i) {
    const auto guest = await_name<server>(fmt::format("/guest/{}", i), patience);
    std::vector<future<double>> pending;
    const std::vector<double> v(30'000, 1);
    for (int k = 0; k < 4; ++k) pending.push_back(start(guest)->sum(v));
    auto never = start(guest)->never();
    publish(fmt::format("/kill/{}", i), spawn<server>(here()));
    for (auto& f : pending) check(ends(f), "a call to the guest");
    (void)thrown<node_lost>("a call that never ends", [&] { (void)never.get(); });
    (void)thrown<name_not_found>("lookup", [&] { (void)lookup<server>(fmt::format("/guest/{}", i)); });
    quiescence();
    while (mapped_nodes() != 1) yield();
    check(open_memory() <= 3, "memory of a guest is open");  // of the world, of this node, and the board with its names
    used.push_back(bytes_in_use());
    fmt::print(stderr, "next\n");
  }
  check(used.back() <= used.front(),
        fmt::format("{} bytes were in use after the first guest, {} after the last", used.front(), used.back()));
}

void guest(int number) {
  const auto host = lookup<host_process>("/host");
  const auto self = spawn<server>(here());
  std::vector<future<double>> held;
  const std::vector<double> v(40'000, 4);
  for (int k = 0; k < 3; ++k) held.push_back(start(spawn<host_process>(near(host)))->take_and_wait(v, self));
  publish(fmt::format("/guest/{}", number), self);
  (void)await_name<server>(fmt::format("/kill/{}", number), patience);
  for (int k = 0; k < number % 5; ++k) {
    check(host->take(v) == 4, "take");
    check(host->give(50'000).size() == 50'000, "give");
  }
  kill_own_node();
}

// --- the first node ----------------------------------------------------------------------------------------------------

// Everybody is busy when the first node dies.
void first_dies_under_load() {
  std::vector<future<bool>> loads;
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    loads.push_back(start_call<&load>(pe(p), (p + 1) % world_pes(), this_process<function>()));
  for (std::uint32_t p = 0; p < world_pes(); ++p) (void)receive<int>();
  kill_own_node();
}

// It says who it is, and computes for ever, as a method may that knows of no fault.
void compute_for_ever() {
  volatile std::uint64_t n = 0;
  for (;;) n = n + 1;
}
void first_dies_while_others_compute() {
  std::vector<future<void>> busy;
  for (std::uint32_t n = 1; n < world_nodes(); ++n) {
    const auto [first, count] = scheduler::current_pe->owner().pes_of(n);
    busy.push_back(start_call<&compute_for_ever>(pe(first)));
    check(call<&own_pid>(pe(first + 1)) != own_pid(), "pid");
  }
  kill_own_node();
}

void first_of_a_named_world() {
  publish("/first", spawn<server>(here()));
  fmt::print(stderr, "up\n");
  (void)await_name<server>("/second", patience);
  kill_own_node();
}
void second_of_a_named_world() {
  const auto first = lookup<server>("/first");
  publish("/second", spawn<server>(here()));
  for (;;) (void)first->number();
}
void first_of_a_new_world() {
  check(this_node() == 0, "it joined the dead world");
  check(names("/first").empty(), "names of the dead world");
}
void first_that_ends() {
  publish("/first", this_process<function>());
  fmt::print(stderr, "up\n");
  (void)receive<int>();
}
void second_that_waits() {
  const auto first = lookup<function>("/first");
  const std::string said = thrown<stopped>("receive", [&] {
    send(first, 1);
    (void)receive<std::string>();
  });
  check_contains(said, "receive: the first node of the world has ended");
}
// Joins with nodes of its own, and leaves.
void second_with_several_nodes() {
  check(world_nodes() == 4, "nodes");
  for (std::uint32_t n = 1; n < 4; ++n) check(spawn<server>(node(n))->number() == 7, "number");
}
void second_is_killed_with_several_nodes() {
  publish("/second", spawn<server>(node(world_nodes() - 1)));
  fmt::print(stderr, "up\n");
  (void)receive<int>();
}
// A constructor that is under way.
struct slow {
  explicit slow(remote<function> begun) {
    send(begun, 1);
    sleep_for(std::chrono::hours(1));
  }
};
void spawns_at_the_dying() {
  const int pid = call<&own_pid>(node(1));
  auto made = start_spawn<slow>(node(1), this_process<function>());
  (void)receive<int>();
  ::kill(pid, SIGKILL);
  check_contains(thrown<node_lost>("a spawn", [&] { (void)made.get(); }), "slow::(constructor) at PE 1: ");
}
// It sleeps: a wait for a message would be a deadlock, which is told if the signal is late.
void first_waits_to_be_killed() {
  fmt::print(stderr, "up\n");
  sleep_for(std::chrono::hours(1));
}

// --- the tests ---------------------------------------------------------------------------------------------------------

TEST(a_killed_node, fails_all_calls_to_it_and_the_others_go_on) {
  const std::string said = outcome_of({"--scenario=load", "--orrery-nodes=4", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  // One line for the whole program, from the node that has started the others.
  EXPECT_EQ(count_of(said, "orrery: node 2 "), 1) << said;
  EXPECT_EQ(
      count_of(
          said,
          "orrery: node 2 was killed by signal 9 (Killed) without leaving the world: calls to it fail with node_lost"),
      1)
      << said;
}
TEST(a_post, to_a_lost_node_is_counted_and_the_first_of_each_method_is_reported) {
  const std::string said = outcome_of({"--scenario=posts", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "failed, and nobody waits for its result"), 2) << said;
  EXPECT_EQ(count_of(said, "server::note failed, and nobody waits for its result: PE 1: its node has left"), 1) << said;
}
TEST(a_post, to_a_lost_node_that_is_not_reported_is_in_the_closing_line) {
  const std::string said = outcome_of({"--scenario=posts", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_EQ(count_of(said, "more one-way message"), 1) << said;
  EXPECT_EQ(count_of(said, "PE 0: 1001 more one-way messages"), 1) << said;
  EXPECT_EQ(count_of(said, "server::note failed as the first one did: node 1 was lost"), 1) << said;
}
TEST(a_post, that_is_on_its_way_when_its_node_is_lost_is_reported_and_counted) {
  const std::string said = outcome_of({"--scenario=on_the_way", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "100 one-way messages to PE 1 failed"), 1) << said;
}
TEST(a_killed_node, of_two_pes_fails_all_calls_to_it_and_the_others_go_on) {
  const std::string said = outcome_of({"--scenario=load", "--orrery-nodes=3", "--orrery-pes=2"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(a_killed_node, gives_its_memory_back_and_what_others_had_sent_to_it) {
  const std::string said = outcome_of({"--scenario=memory", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(a_killed_node, leaves_nothing_behind_in_a_named_world_however_many_come) {
  const scratch_directory worlds;
  program first({"--scenario=host", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  for (int i = 0; i < guests; ++i) {
    const std::string said =
        outcome_of({fmt::format("--scenario=guest{}", i), own_world(), worlds.option(), "--orrery-pes=1"});
    EXPECT_EQ(said, "killed by signal 9");  // and not a word of those that were there before
    first.hear("next");
  }
  const std::string said = first.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_TRUE(worlds.files().empty());
}

TEST(the_killed_first_node, ends_all_others_with_one_line_each) {
  const std::string said = outcome_of({"--scenario=first", "--orrery-nodes=4", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("killed by signal 9")) << said;
  for (int n = 1; n < 4; ++n) EXPECT_EQ(count_of(said, fmt::format("node {} ends too\n", n)), 1) << said;
  EXPECT_EQ(count_of(said, "\n"), 3) << said;
}
TEST(a_program, that_is_told_to_end_by_a_signal_ends_with_all_its_nodes) {
  for (const int how : {SIGTERM, SIGINT, SIGHUP}) {
    program first({"--scenario=wait", "--orrery-nodes=3", "--orrery-pes=1"});
    first.hear("up");
    ::kill(first.pid(), how);
    const std::string said = first.end();  // when the last node has ended
    EXPECT_TRUE(said.ends_with(fmt::format("killed by signal {}", how))) << said;
    EXPECT_EQ(count_of(said, "ends too\n"), 2) << said;
  }
}
TEST(a_constructor, whose_node_is_lost_fails_with_an_error_that_says_where) {
  const std::string said = outcome_of({"--scenario=spawns", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(the_first_node, that_ends_is_what_programs_hear_that_had_joined_and_wait) {
  const scratch_directory worlds;
  program first({"--scenario=ends", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  EXPECT_EQ(outcome_of({"--scenario=second_waits", own_world(), worlds.option(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(first.end(), "good");
}
TEST(a_program, that_has_joined_with_several_nodes_leaves_with_all_of_them) {
  const scratch_directory worlds;
  program first({"--scenario=ends", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  EXPECT_EQ(
      outcome_of({"--scenario=second_several", own_world(), worlds.option(), "--orrery-pes=1", "--orrery-nodes=3"}),
      "good");
  EXPECT_EQ(outcome_of({"--scenario=second_waits", own_world(), worlds.option(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(first.end(), "good");  // nobody was lost
}
TEST(a_program, that_joined_with_several_nodes_and_is_killed_takes_all_along) {
  const scratch_directory worlds;
  program first({"--scenario=ends", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  program second({"--scenario=second_hangs", own_world(), worlds.option(), "--orrery-pes=1", "--orrery-nodes=3"});
  second.hear("up");
  ::kill(second.pid(), SIGKILL);
  const std::string said = second.end();  // when the last node has ended
  EXPECT_EQ(count_of(said, "node 1, which started this one, "), 2) << said;
  // It may come before the others know that those nodes have ended, and then hears of it.
  const std::string next = outcome_of({"--scenario=second_waits", own_world(), worlds.option(), "--orrery-pes=1"});
  EXPECT_TRUE(next.ends_with("good")) << next;
  EXPECT_TRUE(first.end().ends_with("good"));
}
TEST(the_killed_first_node, ends_others_that_compute) {
  const std::string said = outcome_of({"--scenario=compute", "--orrery-nodes=3", "--orrery-pes=2"});
  EXPECT_TRUE(said.ends_with("killed by signal 9")) << said;
  for (int n = 1; n < 3; ++n) EXPECT_EQ(count_of(said, fmt::format("node {} ends too\n", n)), 1) << said;
}
TEST(the_killed_first_node, ends_programs_that_had_joined_and_leaves_the_name_free) {
  const scratch_directory worlds;
  program first({"--scenario=named_first", own_world(), worlds.option(), "--orrery-pes=1"});
  first.hear("up");
  const std::string said = outcome_of({"--scenario=named_second", own_world(), worlds.option(), "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("node 1 ends too\nexit status 1")) << said;
  EXPECT_EQ(count_of(said, "\n"), 1) << said;
  EXPECT_EQ(first.end(), "killed by signal 9");
  EXPECT_TRUE(worlds.files().empty());
}
TEST(the_killed_first_node, if_it_was_alone_leaves_a_name_that_the_next_takes_over) {
  const scratch_directory worlds;
  {
    program first({"--scenario=wait", own_world(), worlds.option(), "--orrery-pes=1"});
    first.hear("up");
    ::kill(first.pid(), SIGKILL);
    EXPECT_EQ(first.end(), "killed by signal 9");
  }
  EXPECT_EQ(outcome_of({"--scenario=new", own_world(), worlds.option(), "--orrery-pes=1"}), "good");
  EXPECT_TRUE(worlds.files().empty());
}

}  // namespace
}  // namespace orrery::faults

int main(int argc, char** argv) {
  using namespace orrery::faults;
  using namespace orrery::testing;
  scenarios all{{"load", under_load},
                {"memory", memory_comes_back},
                {"posts", posts_to_the_lost},
                {"spawns", spawns_at_the_dying},
                {"ends", first_that_ends},
                {"second_waits", second_that_waits},
                {"second_several", second_with_several_nodes},
                {"second_hangs", second_is_killed_with_several_nodes},
                {"on_the_way", posts_on_the_way},
                {"host", host},
                {"first", first_dies_under_load},
                {"compute", first_dies_while_others_compute},
                {"named_first", first_of_a_named_world},
                {"named_second", second_of_a_named_world},
                {"wait", first_waits_to_be_killed},
                {"new", first_of_a_new_world}};
  std::vector<std::string> guest_names;
  for (int i = 0; i < guests; ++i) guest_names.push_back(fmt::format("guest{}", i));
  for (int i = 0; i < guests; ++i) all[guest_names[static_cast<std::size_t>(i)]] = [i] { guest(i); };
  return run_tests_or_scenario(argc, argv, all);
}
