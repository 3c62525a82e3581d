// SPDX-License-Identifier: Apache-2.0
// Walking lists in worlds of several nodes, and clients in other programs. Each test starts this program again as a node of a world
// (--scenario=NAME and the runtime's options), which says on stderr what is wrong and exits with 1, or exits with 0.
#include "shell.hpp"

#include <orrery/service/internal/test_extremes.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using orrery::consistency;
using orrery::testing::check;
using orrery::testing::outcome_of;
using orrery::testing::own_world;
using orrery::testing::program;
using orrery::testing::shell_program;
using orrery::testing::thrown;
using orrery::testing::tool;
using list = orrery::walking_list<int, std::string>;

constexpr int keys_of_each = 40;

std::string text_of(int k) { return "value " + std::to_string(k); }

// Inserts its share of the keys, many at a time.
int fill(const list& l, int first, int step, consistency order) {
  auto s = l.open({.window = 16, .order = order});
  for (int i = 0; i < keys_of_each; ++i) s.start_insert(first + i * step, text_of(first + i * step));
  int inserted = 0;
  while (const auto r = s.receive()) inserted += r->done ? 1 : 0;
  return inserted;
}

// How many keys are not as fill() made them.
int look_for_all(const list& l, int keys, consistency order) {
  auto s = l.open({.window = 32, .order = order, .replies = orrery::reply_order::as_requested});
  int wrong = 0;
  for (int k = 0; k < keys; ++k) s.start_find(k);
  for (int k = 0; k < keys; ++k) {
    const auto r = s.receive();
    if (!r || r->value != text_of(k)) ++wrong;
  }
  return wrong;
}

constexpr consistency levels[] = {consistency::total, consistency::sequential, consistency::per_key,
                                  consistency::unordered, consistency::sequential_of_the_paper};

// Clients on all PEs, each with another level.
void all_pes_use_one_list() {
  auto l = list::make({.processes = 60, .granularity = 6, .forwards = 4, .spares = orrery::spare_order::ring});
  const auto clients = static_cast<int>(orrery::world_pes());
  const auto level_of = [](int i) { return levels[static_cast<std::size_t>(i) % std::size(levels)]; };
  std::vector<orrery::future<int>> filled;
  for (int i = 0; i < clients; ++i)
    filled.push_back(orrery::start_call<&fill>(orrery::pe(static_cast<std::uint32_t>(i)), l, i, clients, level_of(i)));
  for (auto& f : filled) check(f.get() == keys_of_each, "all keys are inserted");
  const int keys = clients * keys_of_each;
  for (int i = 0; i < 5; ++i)
    check(orrery::call<&look_for_all>(orrery::pe(static_cast<std::uint32_t>(i % clients)), l, keys, level_of(i)) == 0,
          "all levels find all keys");
  {
    auto s = l.open();
    check(s.size() == static_cast<std::uint64_t>(keys), "the size is exact");
    check(s.snapshot(10, 20).size() == 10, "a snapshot");
    check(s.last()->first == keys - 1 && s.after(-5)->first == 0, "last and after");
    int walked = 0;
    auto walk = s.scan(5, {}, 16);
    for (auto part = walk.next(); !part.empty(); part = walk.next())
      for (const auto& [k, v] : part) check(k == 5 + walked++ && v == text_of(k), "a scan is in order");
    check(walked == keys - 5, "a scan has all");
  }
  for (const auto& r : l.statistics()) check(r.items > 0, "each PE has items");
  l.end();
}

// Another program finds it by its name: what that inserted is there when it is gone.
void serve() {
  auto l = list::make({.processes = 200, .granularity = 2, .forwards = 4});
  l.publish("/test/list");
  {
    auto s = l.open();
    fmt::print(stderr, "ready\n");
    while (!s.find(-1)) orrery::sleep_for(1ms);
    check(look_for_all(l, keys_of_each, consistency::total) == 0, "all is there that was acknowledged to the other");
  }
  l.end();
}
void use() {
  const auto l = list::await_name("/test/list", orrery::testing::patience);
  check(l.has_these_types(), "it has these types");
  check(fill(l, 0, 1, consistency::per_key) == keys_of_each, "the other program inserts");
  for (const consistency order : levels)
    check(look_for_all(l, keys_of_each, order) == 0, "the other program finds what it has inserted, with each level");
  orrery::testing::check_contains(
      thrown<orrery::usage_error>("a list of other types",
                                  [] { (void)orrery::walking_list<int, int>::lookup("/test/list").open(); }),
      "other types of keys or values");
  orrery::testing::check_contains(
      thrown<orrery::usage_error>("another kind",
                                  [] { (void)orrery::ordered_list<int, std::string>::lookup("/test/list").open(); }),
      "this service is of the kind \"walking list\"");
}
// It is killed while requests are outstanding.
void use_and_die() {
  use();
  auto s = list::lookup("/test/list").open({.window = 64});
  for (int i = 0; i < 2'000; ++i) s.start_insert_or_update(1000 + i % 100, "unfinished");
  orrery::testing::kill_own_node();
}
void finish() {
  auto s = list::await_name("/test/list", orrery::testing::patience).open();
  check(s.insert(-1, ""), "the server is told to end");
}

// --- a node of the list is killed ---------------------------------------------------------------------------------------

int use_until_it_is_lost(const list& l, consistency order) {
  auto s = l.open({.window = 32, .order = order});
  int answered = 0;
  bool lost = false;
  for (int i = 0; !lost; ++i) {
    s.start_insert_or_update(i % 50, "x");
    while (const auto r = s.try_receive()) {
      lost = lost || r->error != nullptr;
      answered += r->error == nullptr ? 1 : 0;
    }
  }
  while (const auto r = s.receive())
    if (r->error != nullptr) (void)thrown<orrery::node_lost>("an outstanding request", [&] { r->check(); });
  (void)thrown<orrery::node_lost>("a request of the lost list", [&] { (void)s.find(1); });
  return answered;
}
void a_lost_node_ends_the_list() {
  auto l = list::make({.processes = 40, .forwards = 4, .spares = orrery::spare_order::ring});
  std::vector<orrery::future<int>> ends;
  for (const consistency order : {consistency::total, consistency::sequential, consistency::per_key})
    for (const std::uint32_t n : {0U, 1U})
      ends.push_back(orrery::start_call<&use_until_it_is_lost>(orrery::node(n), l, order));
  {
    auto s = l.open();
    for (int k = 100; k < 110; ++k) check(s.insert(k, "y"), "the list works");
  }
  (void)thrown<orrery::node_lost>("a node that is killed",
                                  [] { orrery::call<&orrery::testing::kill_own_node>(orrery::node(2)); });
  for (auto& e : ends) check(e.get() >= 0, "clients hear of it");
  (void)thrown<orrery::node_lost>("a session of a lost list", [&] { (void)l.open(); });
  l.end();
}

// --- lists of both kinds at their extremes --------------------------------------------------------------------------------

template <template <class, class> class List>
void bear_extremes() {
  const auto nothing_wrong = [](const std::string& wrong) { check(wrong.empty(), wrong); };
  nothing_wrong(orrery::testing::hold_one_item<List<int, std::string>>());
  for (const auto order : orrery::testing::key_orders)
    nothing_wrong(orrery::testing::compare_many<List<std::string, int>>(order, 100, consistency::per_key));
  nothing_wrong(orrery::testing::grow_values<List<int, std::string>>());
  nothing_wrong(orrery::testing::erase_under_ranges<List<int, int>>(100));
  nothing_wrong(orrery::testing::serve_beside_clients_that_never_fetch<List<int, int>>());
}

const orrery::testing::scenarios all = {{"all_pes_use_one_list", all_pes_use_one_list},
                                        {"serve", serve},
                                        {"use", use},
                                        {"use_and_die", use_and_die},
                                        {"finish", finish},
                                        {"a_lost_node_ends_the_list", a_lost_node_ends_the_list},
                                        {"ordered_lists_bear_extremes", bear_extremes<orrery::ordered_list>},
                                        {"walking_lists_bear_extremes", bear_extremes<orrery::walking_list>}};

TEST(walking_lists, are_used_by_three_nodes_of_one_pe) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-nodes=3", "--orrery-pes=1"}), "good");
}
TEST(walking_lists, are_used_by_threads_whose_messages_take_their_wire_form) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-pes=3", "--orrery-serialize"}), "good");
}

TEST(walking_lists, are_found_by_name_from_other_programs) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=use", own_world(), "--orrery-pes=1"}), "good");
  if (std::filesystem::exists(shell_program())) {
    EXPECT_EQ(tool("find 7"), "value 7\n0");
    EXPECT_EQ(tool("range 37 39"), "37,value 37\n38,value 38\n0");
    EXPECT_NE(tool("statistics").find("jumps"), std::string::npos);
  }
  EXPECT_EQ(outcome_of({"--scenario=finish", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(server.end(), "good");
}
TEST(walking_lists, lose_nothing_acknowledged_when_a_client_is_killed) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=use_and_die", own_world(), "--orrery-pes=1"}), "killed by signal 9");
  EXPECT_EQ(outcome_of({"--scenario=finish", own_world(), "--orrery-pes=1"}), "good");
  const std::string said = server.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(lists, bear_extremes_on_two_nodes) {
  for (const char* const kind : {"ordered", "walking"})
    EXPECT_EQ(
        outcome_of({fmt::format("--scenario={}_lists_bear_extremes", kind), "--orrery-nodes=2", "--orrery-pes=1"}),
        "good");
}
TEST(walking_lists, end_with_an_error_when_a_node_is_killed) {
  const std::string said = outcome_of({"--scenario=a_lost_node_ends_the_list", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}

}  // namespace

int main(int argc, char** argv) { return orrery::testing::run_tests_or_scenario(argc, argv, all); }
