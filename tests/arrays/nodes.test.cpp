// SPDX-License-Identifier: Apache-2.0
// Arrays in worlds of several nodes: at random against a model, as in orrery/array/chaos.test.cpp, where elements move to other OS processes. Each
// test starts this program again as the first node of a world (--scenario=NAME, --seed=N and the runtime's options), which says on stderr what is
// wrong and exits with 1, or exits with 0.
#include <orrery/array/balance.hpp>
#include <orrery/array/checkpoint.hpp>
#include <orrery/orrery.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace orrery;

std::atomic<int> failures = 0;
std::uint64_t seed = 0;

void check(bool good, std::string_view what) {
  if (good) return;
  ++failures;
  fmt::print(stderr, "node {}, seed {}: {}\n", this_node(), seed, what);
}

struct Block;
ORRERY_PROCESS(Block, take, ordered, hop, count, sum_of, bad, where, fill, filled, step, abstain, hear, heard, pid,
               shout, nap);
struct Block : element<Block, orrery::index<2>> {
  Block() = default;
  explicit Block(int n) : start(n) {}
  void take(std::uint64_t n) {
    ++got;
    total += n;
  }
  void ordered(std::uint64_t n) {
    if (n != last + 1) ++out_of_order;
    last = n;
  }
  void hop(std::uint32_t to) { migrate_to(to); }
  std::uint64_t count() const { return got; }
  std::uint64_t sum_of() const { return total; }
  int bad() const { return out_of_order; }
  std::uint32_t where() const { return this_pe(); }
  std::uint64_t pid() const { return static_cast<std::uint64_t>(getpid()); }
  void fill(const std::vector<double>& v) { data = v; }
  std::size_t filled() const {
    for (std::size_t i = 0; i < data.size(); ++i)
      if (data[i] != static_cast<double>(i)) return 0;
    return data.size();
  }
  void step(const result_target& t) {
    if (!abstains) contribute(std::uint64_t{1}, sum, t);
  }
  void abstain() { abstains = true; }
  void hear(int n) { broadcasts.push_back(n); }
  std::vector<int> heard() const { return broadcasts; }
  int nap() const {
    sleep_for(std::chrono::hours(1));
    return 0;
  }
  void shout() const { throw std::out_of_range("loud"); }
  template <class A>
  void serialize(A& a) {
    a & start & got & total & last & out_of_order & data & broadcasts;
  }
  int start = 0;
  std::uint64_t got = 0;
  std::uint64_t total = 0;
  std::uint64_t last = 0;
  int out_of_order = 0;
  std::vector<double> data;
  std::vector<int> broadcasts;
  bool abstains = false;  // elements that move contribute
};
using grid = array<Block>;

// Homes by a table.
struct by_row {
  std::vector<std::uint32_t> pe_of;
  std::uint32_t operator()(const orrery::index<2>& i, std::uint32_t) const {
    return pe_of[static_cast<std::size_t>(i[0]) % pe_of.size()];
  }
  template <class A>
  void serialize(A& a) {
    a & pe_of;
  }
};
void homes() {
  by_row map;
  for (std::uint32_t x = 0; x < 4; ++x) map.pe_of.push_back(static_cast<std::uint32_t>((seed + 7 * x) % world_pes()));
  auto g = create_array<Block>(range<orrery::index<2>>{{4, 5}}, {.name = "grid", .home = map}, {}, 3);
  g.insert({6, 1}, 1);
  for (const int x : {0, 1, 2, 3})
    for (int y = 0; y < 5; ++y)
      check(g[x, y]->where() == map.pe_of[static_cast<std::size_t>(x)], "an element is not at its home");
  check(g[6, 1]->where() == map.pe_of[2], "an element that was inserted is not at its home");
  destroy(g);
}

// Sends to others in order, wherever both are.
struct Talker;
ORRERY_PROCESS(Talker, say, hop, hear, heard, bad);
struct Talker : element<Talker> {
  static constexpr bool keep_order(std::string_view method) { return method == "hear"; }
  void say(int to, std::uint64_t times) {
    for (std::uint64_t k = 0; k < times; ++k) post(this_array()[to])->hear(this_index(), ++said[to]);
  }
  void hop(std::uint32_t to) { migrate_to(to); }
  void hear(int from, std::uint64_t number) {
    if (number != last[from] + 1) ++out_of_order;
    last[from] = number;
  }
  std::uint64_t heard() const {
    std::uint64_t n = 0;
    for (const auto& [from, number] : last) n += number;
    return n;
  }
  int bad() const { return out_of_order; }
  template <class A>
  void serialize(A& a) {
    a & said & last & out_of_order;
  }
  std::map<int, std::uint64_t> said;
  std::map<int, std::uint64_t> last;
  int out_of_order = 0;
};

void order() {
  constexpr int n = 6;
  auto a = create_array<Talker>(range<int>{n}, {.name = "talkers"});
  std::mt19937_64 random(seed);
  std::uint64_t sent = 0;
  for (int step = 0; step < 2000; ++step) {
    if (step % 50 == 0) quiescence(a);  // so that no mailbox is full
    const int from = static_cast<int>(random() % n);
    const int to = static_cast<int>(random() % n);
    post(a[from])->say(to, 3);
    sent += 3;
    if (random() % 3 == 0) post(a[from])->hop(static_cast<std::uint32_t>(random() % world_pes()));
    if (random() % 3 == 0) post(a[to])->hop(static_cast<std::uint32_t>(random() % world_pes()));
  }
  quiescence(a);
  std::uint64_t got = 0;
  for (int i = 0; i < n; ++i) {
    check(a[i]->bad() == 0, fmt::format("{} messages came out of order", a[i]->bad()));
    got += a[i]->heard();
  }
  check(got == sent, fmt::format("{} messages came of {}", got, sent));
  destroy(a);
}

grid make() { return create_array<Block>(range<orrery::index<2>>{{4, 5}}, {.name = "grid"}, {}, 3); }

std::size_t local_size(grid g) { return g.local_size(); }

std::uint64_t send_many(grid g, std::uint64_t from, int n, bool moving) {
  std::mt19937_64 random(from);
  std::uint64_t all = 0;
  for (int k = 0; k < n; ++k) {
    const int x = static_cast<int>(random() % 4);
    const int y = static_cast<int>(random() % 5);
    const std::uint64_t number = random() % 1000;
    post(g[x, y])->take(number);
    all += number;
    if (moving && random() % 4 == 0) post(g[x, y])->hop(static_cast<std::uint32_t>(random() % world_pes()));
    if (random() % 20 == 0) yield();
  }
  return all;
}
int send_ordered(grid g, int x, std::uint64_t first, std::uint64_t n) {
  for (std::uint64_t k = first; k < first + n; ++k)
    for (int y = 0; y < 5; ++y) post(g[x, y])->ordered(k);
  return 0;
}

void messages() {
  auto g = make();
  std::vector<future<std::uint64_t>> f;
  const std::uint32_t pes = world_pes();
  for (std::uint32_t p = 0; p < pes; ++p) f.push_back(start_call<&send_many>(pe(p), g, seed + p, 1000, true));
  std::uint64_t sent = 0;
  for (auto& x : f) sent += x.get();
  quiescence();
  std::uint64_t got = 0;
  std::uint64_t total = 0;
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y) {
      got += g[x, y]->count();
      total += g[x, y]->sum_of();
    }
  check(got == 1000U * pes, fmt::format("{} messages arrived of {}", got, 1000 * pes));
  check(total == sent, "other messages arrived than were sent");
  // Where they are now nobody knows who has not asked: the way changes while messages are under way.
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::vector<future<int>> o;
    for (std::uint32_t p = 0; p < pes && p < 4; ++p)
      o.push_back(start_call<&send_ordered>(pe(p), g, static_cast<int>(p), round * 200 + 1, std::uint64_t{200}));
    for (auto& x : o) x.get();
    quiescence();
    for (std::uint32_t p = 0; p < pes && p < 4; ++p)
      for (int y = 0; y < 5; ++y) check(g[static_cast<int>(p), y]->bad() == 0, "messages came out of order");
    for (int x = 0; x < 4; ++x)
      for (int y = 0; y < 5; ++y) post(g[x, y])->hop(static_cast<std::uint32_t>((x + y) + round) % pes);
    quiescence();
  }
  destroy(g);
}

void state() {
  auto g = make();
  std::vector<double> v(100'000);
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  g[1, 2]->fill(v);
  const element_ptr<Block> p = g[1, 2];
  std::map<std::uint64_t, int> pids;
  for (std::uint32_t to = 0; to < 2 * world_pes(); ++to) {
    start_migrate(p, to % world_pes()).get();
    check(p->filled() == v.size(), "the state did not arrive as it was");
    check(p->where() == to % world_pes(), "the element is elsewhere");
    ++pids[p->pid()];
  }
  check(pids.size() == world_nodes(), "the element was not in every OS process");
  destroy(g);
}

void collectives() {
  auto g = make();
  std::mt19937_64 random(seed);
  std::size_t alive = 20;
  for (int round = 0; round < 40; ++round) {
    for (int k = 0; k < 10; ++k)
      post(g[static_cast<int>(random() % 4), static_cast<int>(random() % 5)])
          ->hop(static_cast<std::uint32_t>(random() % world_pes()));
    post(g)->hear(round);
    auto [target, result] = expect_result<std::uint64_t>();
    post(g)->step(target);
    check(result.get() == alive, "a reduction missed an element");
    g.insert({100, round}, 1);
    ++alive;
  }
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y) {
      std::vector<int> all(40);
      for (int i = 0; i < 40; ++i) all[static_cast<std::size_t>(i)] = i;
      check(g[x, y]->heard() == all, "an element did not get every broadcast once and in order");
    }
  destroy(g);
}

template <class Error, class F>
std::string thrown(std::string_view what, F f) {
  try {
    f();
    check(false, fmt::format("{}: nothing was thrown", what));
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    check(false, fmt::format("{}: {}", what, e.what()));
  }
  return {};
}

void errors() {
  auto g = make();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const orrery::index<2> i{50, static_cast<int>(p)};
    g.insert_at(pe(p), i, 1);
    const auto taken = thrown<usage_error>("a second element", [&] { g.insert(i, 2); });
    check(taken.find(fmt::format("grid[[50, {}]]", p)) != std::string::npos, taken);
    check(thrown<std::out_of_range>("an exception", [&] { g[i]->shout(); }) == "loud", "another exception");
    destroy(g[i]);
    const auto gone = thrown<process_gone>("a call to a deleted element", [&] { (void)g[i]->count(); });
    check(gone.find(fmt::format("grid[[50, {}]]", p)) != std::string::npos, gone);
    g.insert(i, 1);
    check(g[i]->count() == 0, "the new element is the old one");
  }
  destroy(g);
}

// Balancing while messages are on their way, between OS processes.
void balancing() {
  auto g = make();
  measure_load(g, true);
  std::uint64_t sent = 0;
  for (std::uint64_t round = 0; round < 10; ++round) {
    sent += send_many(g, seed + round, 200, false);
    const auto r = balance(g, round % 2 == 0 ? *balance_random(seed + round) : *balance_bisection());
    check(r.elements == 20, fmt::format("{} elements were measured", r.elements));
    check(round % 2 != 0 || r.moved > 0, "nothing was moved");
  }
  quiescence();
  std::uint64_t total = 0;
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y) total += g[x, y]->sum_of();
  check(total == sent, "other messages arrived than were sent");
  destroy(g);
}

std::string folder;
void save() {
  auto g = make();
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y) {
      g[x, y]->take(static_cast<std::uint64_t>(10 * x + y));
      post(g[x, y])->hop(static_cast<std::uint32_t>(x * y) % world_pes());
    }
  quiescence();
  checkpoint(folder, g);
}
void restore() {
  const auto [g] = orrery::restore<array<Block>>(folder);
  std::size_t n = 0;
  for (std::uint32_t p = 0; p < world_pes(); ++p) n += call<&local_size>(pe(p), g);
  check(n == 20, fmt::format("{} elements came back", n));
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y)
      check(g[x, y]->sum_of() == static_cast<std::uint64_t>(10 * x + y), "an element has another state");
  post(g)->hear(1);
  auto [target, result] = expect_result<std::uint64_t>();
  post(g)->step(target);
  check(result.get() == 20, "a reduction of what came back");
  destroy(g);
}

struct Survivor;
ORRERY_PROCESS(Survivor, where, size_of);
struct Survivor : element<Survivor> {
  std::uint32_t where() const { return this_pe(); }
  std::uint32_t size_of(const std::vector<double>& v) const { return static_cast<std::uint32_t>(v.size()); }
  template <class A>
  void serialize(A&) {}
};

void kill_own_node() { ::kill(::getpid(), SIGKILL); }
int own_pid() { return ::getpid(); }

// What waits for elements of a node that is killed hears of it, and so does what comes later.
void loss() {
  auto g = make();
  const std::uint32_t victim = world_pes() - 1;
  g.insert_at(pe(victim), {9, 0}, 0);
  g[9, 0]->abstain();
  auto never = start(g[9, 0])->nap();  // the broadcast may come before it
  auto [target, result] = expect_result<std::uint64_t>();
  post(g)->step(target);
  auto early = start(g[8, 8])->count();  // waits at a home
  thrown<node_lost>("the end of the node", [&] { call<&kill_own_node>(pe(victim)); });
  thrown<node_lost>("a call that was under way", [&] { (void)never.get(); });
  thrown<node_lost>("a reduction", [&] { (void)result.get(); });
  thrown<node_lost>("an early call", [&] { (void)early.get(); });
  thrown<node_lost>("a broadcast", [&] { post(g)->hear(1); });
  thrown<node_lost>("a call", [&] { (void)g[9, 0]->count(); });
  thrown<node_lost>("an element there", [&] { g.insert_at(pe(victim), {60, 0}, 1); });
  int alive = 0;
  int lost = 0;
  for (int x = 0; x < 4; ++x)
    for (int y = 0; y < 5; ++y) try {
        alive += g[x, y]->where() < world_pes();
      } catch (const node_lost&) {
        ++lost;
      }
  check(alive > 0 && lost > 0 && alive + lost == 20, fmt::format("{} elements answered, {} were lost", alive, lost));
  // Another array is on the PEs that are left.
  const auto other = make();
  auto [all, number] = expect_result<std::uint64_t>();
  post(other)->step(all);
  check(number.get() == 20, "a reduction of an array that was made after the loss");
}

// Writes to PE 1 what no PE writes, and reads nothing any more: PE 1 treats this node as lost, but no other one does.
void send_nonsense_and_hang() {
  scheduler::pe& self = *scheduler::current_pe;
  scheduler::outbound& c = self.outbound_to(1);
  ::usleep(200'000);  // while others call
  wire::envelope* e = self.reserve(c, wire::granule);
  e->kind = static_cast<wire::record_kind>(99);
  self.commit(c, wire::granule);
  for (;;) ::sleep(1);  // until it is killed
}

// The messages that a PE had sent on to a node that only it treats as lost: who waits for an answer hears of that.
std::uint32_t on_last_node(const int&, std::uint32_t pes) { return pes - 1; }
std::uint32_t on_node_1(const int&, std::uint32_t) { return 1; }
void insert_here(array<Survivor> a, int count) {
  for (int i = 0; i < count; ++i) a.insert_at(here(), i);
}
void loss_that_not_all_know() {
  constexpr int count = 40;
  const auto a = create_array<Survivor>({.home = &on_node_1});
  call<&insert_here>(pe(2), a, count);  // so only their homes know where they are
  const int victim = call<&own_pid>(pe(2));
  post_call<&send_nonsense_and_hang>(pe(2));
  std::vector<future<std::uint32_t>> calls;
  for (int i = 0; i < count; ++i) calls.push_back(start(a[i])->where());
  calls.push_back(start(a[0])->size_of(std::vector<double>(100'000)));  // in pieces
  for (auto& c : calls)
    thrown<node_lost>("a call", [&] {
      if (!c.wait_for(std::chrono::seconds(20))) {
        fmt::print(stderr, "a call to a lost node does not end\n");
        std::_Exit(1);
      }
      (void)c.get();
    });
  ::kill(victim, SIGKILL);
}

// An index that has several homes is found as long as one of them is left, and the element.
std::uint32_t on_other_nodes(const int& i, std::uint32_t pes) {
  return static_cast<std::uint32_t>(i) % (pes == 3 ? 2 : pes / 2);
}
int found(array<Survivor> a) {
  int n = 0;
  for (int i = 0; i < 20; ++i) try {
      if (a[i]->where() < world_pes()) ++n;
    } catch (const node_lost&) {
    }
  return n;
}
// Waits until this PE has heard of a loss: what is under way then may be lost.
void hear(array<Survivor> a) {
  for (;;) try {
      detail::part_of<Survivor, int>(detail::here_pe(), a.id()).require_whole("a test");
      sleep_for(std::chrono::milliseconds(1));
    } catch (const node_lost&) {
      return;
    }
}
void loss_of_homes() {
  const std::uint32_t victim = world_pes() - 1;
  const auto make_one = [&](std::uint32_t homes) {
    auto a = create_array<Survivor>(range<int>{20}, {.home = &on_last_node, .homes = homes}, &on_other_nodes);
    for (int i = 0; i < 10; ++i) start_migrate(a[i], 0).get();
    quiescence();
    return a;
  };
  const auto one = make_one(1);
  const auto several = make_one(world_pes());
  thrown<node_lost>("the end of the node", [&] { call<&kill_own_node>(pe(victim)); });
  for (const std::uint32_t p : reachable_pes()) call<&hear>(pe(p), several);
  check(found(several) == 20, "elements were not found, though homes are left");
  std::vector<future<int>> all;  // at once: each hears of the others, while its calls are under way
  for (const std::uint32_t p : reachable_pes()) all.push_back(start_call<&found>(pe(p), several));
  for (auto& n : all) check(n.get() == 20, "neither by another PE");
  if (world_pes() > 2) check(found(one) < 20, "elements were found without their home");
}

const std::map<std::string_view, void (*)()> scenarios{
    {"messages", messages}, {"state", state},     {"collectives", collectives},
    {"errors", errors},     {"loss", loss},       {"loss not known", loss_that_not_all_know},
    {"order", order},       {"homes", homes},     {"balancing", balancing},
    {"save", save},         {"restore", restore}, {"loss of homes", loss_of_homes}};

// --- the tests -----------------------------------------------------------------------------------------------------

struct shape {
  int nodes;
  int pes;
};

class program_of_nodes {
 protected:
  static int run(std::string_view scenario, shape s, const std::string& in_folder) {
    const std::string line = fmt::format(
        "exec '{}' --orrery-failed-exit=0 --scenario={} --seed={} --folder={} --orrery-nodes={} --orrery-pes={}",
        program(), scenario, orrery::testing::test_seed(), in_folder, s.nodes, s.pes);
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  static std::string program() {
    std::string path(4096, '\0');
    path.resize(static_cast<std::size_t>(::readlink("/proc/self/exe", path.data(), path.size())));
    return path;
  }
};
class array_across_nodes : public ::testing::TestWithParam<shape>, protected program_of_nodes {
 protected:
  using program_of_nodes::run;
  static int run(std::string_view scenario) { return run(scenario, GetParam(), "none"); }
};
class array_across_three_nodes : public ::testing::Test, protected program_of_nodes {};
INSTANTIATE_TEST_SUITE_P(of, array_across_nodes, ::testing::Values(shape{2, 1}, shape{3, 1}, shape{2, 2}),
                         [](const auto& i) { return fmt::format("{}_nodes_of_{}_pes", i.param.nodes, i.param.pes); });

TEST_P(array_across_nodes, every_message_arrives_once_and_in_order_where_nothing_moves) {
  EXPECT_EQ(run("messages"), 0);
}
TEST_P(array_across_nodes, messages_whose_order_is_kept_come_in_order_while_all_move) { EXPECT_EQ(run("order"), 0); }
TEST_P(array_across_nodes, homes_are_where_a_function_with_state_says) { EXPECT_EQ(run("homes"), 0); }
TEST_P(array_across_nodes, elements_take_their_state_along) { EXPECT_EQ(run("state"), 0); }
TEST_P(array_across_nodes, broadcasts_and_reductions_are_exact_while_elements_move) {
  EXPECT_EQ(run("collectives"), 0);
}
TEST_P(array_across_nodes, errors_name_the_element) { EXPECT_EQ(run("errors"), 0); }
TEST_P(array_across_nodes, balancing_a_working_array_loses_nothing) { EXPECT_EQ(run("balancing"), 0); }
TEST_P(array_across_nodes, a_checkpoint_comes_back_on_another_number_of_nodes_and_pes) {
  std::string in = "/tmp/orrery-arrays-XXXXXX";
  ASSERT_NE(mkdtemp(in.data()), nullptr);
  EXPECT_EQ(run("save", GetParam(), in + "/saved"), 0);
  for (const shape s : {shape{1, 1}, shape{2, 2}, shape{4, 1}}) EXPECT_EQ(run("restore", s, in + "/saved"), 0);
  std::filesystem::remove_all(in);
}
TEST_P(array_across_nodes, nobody_waits_for_elements_of_a_node_that_was_killed) { EXPECT_EQ(run("loss"), 0); }
TEST_F(array_across_three_nodes, nobody_waits_for_what_was_sent_on_to_a_node_that_another_lost) {
  EXPECT_EQ(run("'loss not known'", {3, 1}, "none"), 0);
}
TEST_P(array_across_nodes, elements_are_found_as_long_as_a_home_is_left) { EXPECT_EQ(run("'loss of homes'"), 0); }

int run_scenario(std::string_view name, int argc, char** argv) {
  return orrery::run(argc, argv, [&](const orrery::args&) {
    scenarios.at(name)();
    return failures == 0 ? 0 : 1;
  });
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view scenario;
  for (int i = 1; i < argc; ++i) {
    const std::string_view a = argv[i];
    if (a.starts_with("--scenario=")) scenario = a.substr(11);
    if (a.starts_with("--folder=")) folder = a.substr(9);
    if (a.starts_with("--seed=")) seed = std::strtoull(argv[i] + 7, nullptr, 10);
  }
  if (!scenario.empty()) return run_scenario(scenario, argc, argv);
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
