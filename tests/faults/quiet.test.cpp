// SPDX-License-Identifier: Apache-2.0
// Cycles of calls, worlds at rest, and worlds in which nothing will ever happen again: across PEs and nodes.
#include "../support/scenario.hpp"

#include <orrery/task/task.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>

namespace orrery::faults {
namespace {

using namespace testing;

// --- cycles ------------------------------------------------------------------------------------------------------------

struct link;
ORRERY_PROCESS(link, next, value, round, start_round, ask_slowly, ask);
struct link {
  remote<link> after;
  void next(remote<link> l) { after = l; }
  int value() { return 1; }
  /// Calls its way round; `steps` of the length of the ring close it.
  int round(int steps) { return steps == 0 ? value() : after->round(steps - 1) + 1; }
  int start_round(int steps) {
    if (steps == 0) return value();
    auto f = start(after)->start_round(steps - 1);
    yield();
    return f.get() + 1;
  }
  int ask() { return after->value(); }
  int ask_slowly() {
    yield();
    return after->value();
  }
};

std::vector<remote<link>> ring_at(const std::vector<std::uint32_t>& places) {
  std::vector<remote<link>> ring;
  for (const auto p : places) ring.push_back(spawn<link>(pe(p)));
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i]->next(ring[(i + 1) % ring.size()]);
  return ring;
}

void is_a_deadlock(std::string_view what, std::string_view method, int length, const std::function<void()>& f) {
  const std::string said = thrown<deadlock_error>(what, f);
  check_contains(said, fmt::format("link::{} -> ", method));
  check(count_of(said, "link::") == length + 1, fmt::format("not the cycle of {}: {}", length, said));
}

// Rings of three at all placements on all PEs of the world.
void cycles_at_all_places() {
  const std::uint32_t n = world_pes();
  const std::uint32_t step =
      n > 4 ? 7 : 1;  // on more PEs than cores some of them: each step waits for its turn on a core
  for (std::uint32_t i = 0; i < n * n * n; i += step) {
    goes_on();
    const auto ring = ring_at({i % n, i / n % n, i / n / n});
    is_a_deadlock("calls", "round", 3, [&] { (void)ring[0]->round(3); });
    is_a_deadlock("futures", "start_round", 3, [&] { (void)ring[0]->start_round(3); });
    check(ring[0]->round(2) == 3 && ring[0]->start_round(2) == 3, "a chain that does not close");
    for (const auto& l : ring) destroy(l);
  }
}

// A process that calls itself, two of them, and more than one error can name.
void short_and_long_cycles() {
  const std::uint32_t n = world_pes();
  for (const int length : {1, 2, 20, 100}) {
    goes_on();
    std::vector<std::uint32_t> places;
    for (int i = 0; i < length; ++i) places.push_back(static_cast<std::uint32_t>(i + 1) % n);
    const auto ring = ring_at(places);
    const std::string called = thrown<deadlock_error>("calls", [&] { (void)ring[0]->round(length); });
    check_contains(called, "link::round -> ");
    const std::string waited = thrown<deadlock_error>("futures", [&] { (void)ring[0]->start_round(length); });
    check_contains(waited, "link::start_round -> ");
    check(ring[0]->round(length - 1) == length, "a chain that does not close");
  }
}

// A tail that leads into a cycle which it is no part of: the cycle is broken, and the tail gets the error or an answer.
void a_tail_into_a_cycle() {
  const std::uint32_t n = world_pes();
  for (std::uint32_t i = 0; i < 4 * n; ++i) {
    goes_on();
    const auto ring = ring_at({i % n, (i + 1) % n, (i / n) % n});
    const auto tail = ring_at({(i + 1) % n, i % n});
    tail[1]->next(ring[0]);
    auto f = start(tail[0])->round(5);
    (void)thrown<deadlock_error>("the tail", [&] { (void)f.get(); });
    check(ring[0]->value() + ring[1]->value() + ring[2]->value() == 3, "the ring");
  }
}

// Everybody asks its neighbour at once: at least one is told, and nobody hangs.
void cycles_that_close_at_once() {
  const std::uint32_t n = world_pes();
  for (std::uint32_t i = 0; i < 100; ++i) {
    goes_on();
    const auto ring = ring_at({i % n, (i + 1) % n, (i / n) % n, (i + 2) % n});
    std::vector<future<int>> all;
    for (const auto& l : ring) all.push_back(start(l)->ask_slowly());
    for (auto& f : all) try {
        check(f.get() == 1, "a wrong answer");
      } catch (const deadlock_error&) {
      }
  }
}

// Calls that wait for busy processes, but never in a circle: for processes are only asked in one direction.
bool ask_upwards(std::vector<remote<link>> chain, std::uint32_t seed, int rounds) {
  std::minstd_rand random(seed);
  for (int i = 0; i < rounds; ++i) {
    goes_on();
    const auto first = random() % (chain.size() - 1);
    const auto steps = static_cast<int>(random() % (chain.size() - first));
    const int said = random() % 2 == 0 ? chain[first]->round(steps) : chain[first]->start_round(steps);
    if (said != steps + 1) return false;
  }
  return true;
}
void no_cycles_under_load() {
  std::vector<std::uint32_t> places;
  for (std::uint32_t i = 0; i < 3 * world_pes(); ++i) places.push_back(i * 5 % world_pes());
  const auto chain = ring_at(places);
  std::vector<future<bool>> all;
  const int rounds = world_pes() > 4 ? 10 : slowed_down ? 50 : 100;
  for (std::uint32_t i = 0; i < 4 * world_pes(); ++i)
    all.push_back(start_call<&ask_upwards>(pe(i % world_pes()), chain, i + 1, rounds));
  for (auto& f : all) check(f.get(), "a wrong answer");
}

// --- quiescence --------------------------------------------------------------------------------------------------------

struct bouncer;
ORRERY_PROCESS(bouncer, hit, storm, work, hits, rest_then_hit);
struct bouncer {
  /// One way, to and fro.
  void hit(remote<bouncer> other, int left) {
    ++count;
    if (left > 0) post(other)->hit(this_process<bouncer>(), left - 1);
  }
  /// Each message makes two, on random PEs.
  void storm(int depth, std::uint32_t seed) {
    ++count;
    if (depth == 0) return;
    std::minstd_rand random(seed);
    for (int i = 0; i < 2; ++i) {
      const auto to = spawn<bouncer>(pe(static_cast<std::uint32_t>(random() % world_pes())));
      post(to)->storm(depth - 1, static_cast<std::uint32_t>(random()));
    }
    done_here.fetch_add(1);
  }
  /// Computes for a while, and only then sends.
  void work(remote<bouncer> next, int left) {
    volatile int n = 0;
    for (int i = 0; i < 300'000; ++i) n = n + 1;
    ++count;
    if (left > 0) post(next)->work(this_process<bouncer>(), left - 1);
  }
  /// Sleeps between two hits: a timer is something to wait for.
  void rest_then_hit(remote<bouncer> other, int left) {
    sleep_for(std::chrono::milliseconds(1));
    ++count;
    if (left > 0) post(other)->rest_then_hit(this_process<bouncer>(), left - 1);
  }
  int hits() { return count; }
  int count = 0;
  static inline std::atomic<int> done_here{0};
};
int done_here() { return bouncer::done_here.exchange(0); }

std::uint32_t last_pe() { return world_pes() - 1; }

void rest_of_the_world(int rounds) {
  const std::uint32_t n = world_pes();
  for (int r = 0; r < rounds; ++r) {
    goes_on();
    const auto a = spawn<bouncer>(pe(static_cast<std::uint32_t>(r) % n));
    const auto b = spawn<bouncer>(pe((static_cast<std::uint32_t>(r) / n + 1) % n));
    post(a)->hit(b, 501);
    quiescence();
    check(a->hits() + b->hits() == 502, "quiescence came too early for messages");
    post(a)->work(b, 9);
    quiescence();
    check(a->hits() + b->hits() == 512, "quiescence came too early for work");
    post(a)->rest_then_hit(b, 3);
    quiescence();
    check(a->hits() + b->hits() == 516, "quiescence came too early for timers");
    quiescence();  // at once
  }
}
void storms() {
  for (std::uint32_t r = 0; r < 5; ++r) {
    goes_on();
    post(spawn<bouncer>(here()))->storm(9, r + 1);
    quiescence();
    int all = 0;
    for (std::uint32_t p = 0; p < world_pes(); ++p) all += call<&done_here>(pe(p));
    // Those of one node share the count.
    check(all == 511, fmt::format("{} of 511 messages were executed", all));
  }
}

void wait_for_rest() { quiescence(); }
// Processes of every PE wait for it at the same time.
void all_wait_for_rest() {
  for (std::uint32_t r = 0; r < 20; ++r) {
    goes_on();
    const auto a = spawn<bouncer>(pe(r % world_pes()));
    const auto b = spawn<bouncer>(pe(last_pe()));
    std::vector<future<void>> waiting;
    for (std::uint32_t p = 0; p < world_pes(); ++p) waiting.push_back(start_call<&wait_for_rest>(pe(p)));
    post(a)->hit(b, 100);
    quiescence();
    for (auto& f : waiting) f.get();
    check(a->hits() + b->hits() == 101, "quiescence came too early");
  }
}
void all_of_quiescence() {
  rest_of_the_world(slowed_down ? 10 : 40);
  storms();
  all_wait_for_rest();
}

// A node with which everybody had talked is lost; the others come to rest as ever.
void rest_after_a_loss() {
  rest_of_the_world(3);
  const std::uint32_t lost = call<&this_pe>(node(2));
  const auto far = spawn<bouncer>(pe(lost));
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto near = spawn<bouncer>(pe(p));
    post(near)->hit(far, 51);
  }
  quiescence();
  const auto near = spawn<bouncer>(pe(1));
  post(near)->hit(far, 1'000'000'000);
  try {
    call<&kill_own_node>(pe(lost));
  } catch (const node_lost&) {
  }
  for (int r = 0; r < 20; ++r) {
    const auto a = spawn<bouncer>(pe(0));
    const auto b = spawn<bouncer>(pe(1));
    post(a)->hit(b, 100);
    quiescence();
    check(a->hits() + b->hits() == 101, "quiescence came too early");
  }
}

// --- a named world -----------------------------------------------------------------------------------------------------

void host() {
  publish("/host", spawn<bouncer>(here()));
  publish("/host/main", this_process<function>());
  fmt::print(stderr, "up\n");
  for (int i = 0; i < 3; ++i) {
    const auto guest = receive<std::uint32_t>();  // not with a time limit: that would be something to wait for
    await_loss_of(guest);  // it leaves
    quiescence();
    fmt::print(stderr, "next\n");
  }
}
void guest() {
  const auto far = lookup<bouncer>("/host");
  const auto mine = spawn<bouncer>(here());
  int hits = far->hits();
  for (int r = 0; r < 30; ++r) {
    post(mine)->hit(far, 99);
    quiescence();
    check(mine->hits() == 50 * (r + 1), "quiescence came too early");
    check(far->hits() == hits + 50 * (r + 1), "quiescence came too early for the host");
  }
  send(lookup<function>("/host/main"), this_node());
}

// --- dead worlds -------------------------------------------------------------------------------------------------------

void wait_for_ever() { (void)receive<int>(); }
void main_waits_in_receive() { (void)receive<int>(); }
void all_wait_in_receive() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) (void)spawn(pe(p), wait_for_ever);
  (void)receive<int>();
}

struct meeting;
ORRERY_PROCESS(meeting, meet, wait_for, meet_unless_last);
struct meeting : member<meeting> {
  void meet() { barrier(); }
  void wait_for(remote<meeting> other) { other->meet(); }
  void meet_unless_last() {
    if (rank() + 1 == size()) throw std::runtime_error("the last one is late");
    barrier();
  }
};
// The others wait in a barrier that one of them, which threw, will never reach.
void one_throws_before_the_barrier() {
  const auto g = spawn_group<meeting>(everywhere(), 2 * world_pes());
  g->meet_unless_last();
}
void one_of_its_pe_throws_before_the_barrier() {
  const auto g = spawn_group<meeting>(everywhere(), world_pes());
  g->meet_unless_last();
}
// Main waits for a method that waits for a method that waits in a barrier to which nobody else comes.
void waits_for_who_never_comes() {
  const auto g = spawn_group<meeting>(everywhere(), world_pes() + 1);
  g[0]->wait_for(g[world_pes() - 1]);
}
// Main, or a task of C on the last PE for which main waits, waits for a name that nobody will have.
void waits_for_a_name() { (void)await_name<function>("/never", std::chrono::nanoseconds::max()); }
void waits_for_a_task() {
  orrery_task t{};
  const auto find = [](void*, std::size_t) {
    orrery_task found{};
    orrery_status said = orrery_find("nobody", &found, ORRERY_FOREVER);
    if (said != ORRERY_STOPPED || std::strstr(orrery_error(), "(a deadlock)") == nullptr) std::abort();
  };
  if (orrery_create(find, nullptr, 0, orrery_pe(last_pe()), &t) == ORRERY_OK) (void)orrery_join(t, ORRERY_FOREVER);
}
void sleeps_for_ever() { sleep_for(std::chrono::nanoseconds::max()); }
void nothing_is_left_after_a_loss() {
  const auto a = spawn<bouncer>(pe(1));
  const auto b = spawn<bouncer>(pe(last_pe()));
  post(a)->hit(b, 100);
  quiescence();
  post(a)->hit(b, 1'000'000'000);
  try {
    call<&kill_own_node>(pe(last_pe()));
  } catch (const node_lost&) {
  }
  (void)receive<int>();
}
// Main takes no notice of the end.
void takes_no_notice() {
  try {
    (void)receive<int>();
  } catch (const stopped&) {
  }
}
// Nothing moves for longer than it takes to find a world dead, and yet it is not.
void asleep_is_not_dead() {
  const auto a = spawn<bouncer>(pe(last_pe()));
  (void)start(a)->rest_then_hit(a, 0);
  auto f = start_call<&sleep_for>(pe(last_pe()), std::chrono::milliseconds(800));
  f.get();
  check(a->hits() == 1, "hits");
}

// --- the tests ---------------------------------------------------------------------------------------------------------

// Each on PEs of one node, on nodes, and on both.
struct shape {
  const char* nodes;
  const char* pes;
};
class everywhere_the_same : public ::testing::TestWithParam<shape> {
 protected:
  static std::string outcome(const std::string& scenario) {
    std::vector<std::string> options{"--scenario=" + scenario, GetParam().pes};
    if (*GetParam().nodes != 0) options.emplace_back(GetParam().nodes);
    return outcome_of(options);
  }
};
std::string shape_name(const ::testing::TestParamInfo<shape>& i) {
  constexpr const char* names[] = {"two_pes", "two_nodes", "two_nodes_of_two", "more_pes_than_cores", "three_nodes"};
  return names[i.index];
}
const auto shapes = ::testing::Values(shape{"", "--orrery-pes=2"}, shape{"--orrery-nodes=2", "--orrery-pes=1"},
                                      shape{"--orrery-nodes=2", "--orrery-pes=2"}, shape{"", "--orrery-pes=8"},
                                      shape{"--orrery-nodes=3", "--orrery-pes=1"});

using deadlock = everywhere_the_same;
INSTANTIATE_TEST_SUITE_P(on, deadlock, shapes, shape_name);
TEST_P(deadlock, of_three_at_all_places_is_an_error_that_names_the_cycle) { EXPECT_EQ(outcome("cycles"), "good"); }
TEST_P(deadlock, of_one_or_of_a_hundred_is_an_error) { EXPECT_EQ(outcome("lengths"), "good"); }
TEST_P(deadlock, is_an_error_for_who_waits_for_it_from_outside) { EXPECT_EQ(outcome("tails"), "good"); }
TEST_P(deadlock, of_calls_that_cross_ends) { EXPECT_EQ(outcome("at_once"), "good"); }
TEST_P(deadlock, is_not_seen_under_load_where_there_is_none) { EXPECT_EQ(outcome("load"), "good"); }

using at_rest = everywhere_the_same;
INSTANTIATE_TEST_SUITE_P(on, at_rest, shapes, shape_name);
TEST_P(at_rest, is_a_world_in_which_nothing_is_left_to_do) { EXPECT_EQ(outcome("rest"), "good"); }

using dead = everywhere_the_same;
INSTANTIATE_TEST_SUITE_P(on, dead, shapes, shape_name);
void expect_dead(const std::string& said, const char* who) {
  EXPECT_EQ(count_of(said, "orrery: deadlock: nothing runs and nothing is on its way in the whole world"), 1) << said;
  EXPECT_NE(said.find(who), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
}
TEST_P(dead, world_ends_with_an_error_if_all_wait_in_receive) {
  expect_dead(outcome("receive"), "waits in receive");
  expect_dead(outcome("all_receive"), "waits in receive");
}
TEST_P(dead, world_ends_with_an_error_though_main_takes_no_notice) {
  expect_dead(outcome("no_notice"), "waits in receive");
}
TEST_P(dead, world_ends_with_an_error_that_says_what_main_waits_for) {
  const std::string said = outcome("never_comes");
  expect_dead(said, "waits for");
  EXPECT_NE(said.find("meeting::meet waits in barrier"), std::string::npos) << said;  // on whatever PE that is
}
TEST_P(dead, world_says_who_failed_before_the_barrier_that_others_wait_in) {
  for (const char* scenario : {"late", "late_alone"}) {
    const std::string said = outcome(scenario);
    expect_dead(said, "waits in barrier");
    EXPECT_NE(said.find("the last one is late"), std::string::npos) << said;
  }
}
TEST_P(dead, world_ends_with_an_error_that_says_which_name_is_waited_for) {
  expect_dead(outcome("name"), "waits in await_name \"/never\"");
  expect_dead(outcome("task"), "waits in orrery_find \"nobody\"");
}
TEST_P(dead, world_ends_with_an_error_if_all_sleep_for_ever) { expect_dead(outcome("sleeps"), "waits"); }
TEST_P(dead, world_is_none_whose_processes_sleep) { EXPECT_EQ(outcome("asleep"), "good"); }

TEST(a_lost_node, does_not_keep_the_others_from_rest) {
  const std::string said = outcome_of({"--scenario=rest_after_loss", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(a_lost_node, does_not_hide_that_the_world_is_dead) {
  expect_dead(outcome_of({"--scenario=dead_after_loss", "--orrery-nodes=3", "--orrery-pes=1"}), "waits in receive");
}
TEST(a_named_world, comes_to_rest_for_those_who_join_it) {
  program first({"--scenario=host", own_world(), "--orrery-pes=2"});
  first.hear("up");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(outcome_of({"--scenario=guest", own_world(), "--orrery-pes=2"}), "good");
    first.hear("next");
  }
  EXPECT_EQ(first.end(), "good");
}

}  // namespace
}  // namespace orrery::faults

int main(int argc, char** argv) {
  using namespace orrery::faults;
  using namespace orrery::testing;
  return run_tests_or_scenario(argc, argv,
                               {{"cycles", cycles_at_all_places},
                                {"no_notice", takes_no_notice},
                                {"lengths", short_and_long_cycles},
                                {"tails", a_tail_into_a_cycle},
                                {"at_once", cycles_that_close_at_once},
                                {"load", no_cycles_under_load},
                                {"rest", all_of_quiescence},
                                {"rest_after_loss", rest_after_a_loss},
                                {"host", host},
                                {"guest", guest},
                                {"receive", main_waits_in_receive},
                                {"all_receive", all_wait_in_receive},
                                {"never_comes", waits_for_who_never_comes},
                                {"name", waits_for_a_name},
                                {"task", waits_for_a_task},
                                {"sleeps", sleeps_for_ever},
                                {"late", one_throws_before_the_barrier},
                                {"late_alone", one_of_its_pe_throws_before_the_barrier},
                                {"dead_after_loss", nothing_is_left_after_a_loss},
                                {"asleep", asleep_is_not_dead}});
}
