// SPDX-License-Identifier: Apache-2.0
// Ordered lists in worlds of several nodes, and clients in other programs. Each test starts this program again as a node of a world
// (--scenario=NAME and the runtime's options), which says on stderr what is wrong and exits with 1, or exits with 0.
#include "shell.hpp"

#include <orrery/service/hash_map.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/work_queue.hpp>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace {

using namespace std::chrono_literals;
using orrery::testing::check;
using orrery::testing::outcome_of;
using orrery::testing::own_world;
using orrery::testing::program;
using orrery::testing::shell_program;
using orrery::testing::thrown;
using orrery::testing::tool;
using list = orrery::ordered_list<int, std::string>;

constexpr int keys_of_each = 500;

std::string text_of(int k) { return "value " + std::to_string(k); }

// Inserts its share of the keys, many at a time.
int fill(const list& l, int first, int step) {
  auto s = l.open({.window = 64});
  for (int i = 0; i < keys_of_each; ++i) s.start_insert(first + i * step, text_of(first + i * step));
  int inserted = 0;
  while (const auto r = s.receive()) inserted += r->done ? 1 : 0;
  return inserted;
}

// How many keys are not as fill() made them.
int look_for_all(const list& l, int keys) {
  auto s = l.open({.window = 256, .replies = orrery::reply_order::as_requested});
  int wrong = 0;
  for (int k = 0; k < keys; ++k) s.start_find(k);
  for (int k = 0; k < keys; ++k) {
    const auto r = s.receive();
    if (!r || r->value != text_of(k)) ++wrong;
  }
  return wrong;
}

// Clients on all PEs.
void all_pes_use_one_list() {
  auto l = list::make({.range_items = 100});
  const auto clients = static_cast<int>(orrery::world_pes());
  std::vector<orrery::future<int>> filled;
  for (int i = 0; i < clients; ++i)
    filled.push_back(orrery::start_call<&fill>(orrery::pe(static_cast<std::uint32_t>(i)), l, i, clients));
  for (auto& f : filled) check(f.get() == keys_of_each, "all keys are inserted");
  const int keys = clients * keys_of_each;
  for (std::uint32_t i = 0; i < orrery::world_pes(); ++i)
    check(orrery::call<&look_for_all>(orrery::pe(i), l, keys) == 0, "all PEs find all keys");
  auto s = l.open();
  check(s.size() == static_cast<std::uint64_t>(keys), "the size is exact");
  check(s.snapshot(10, 20).size() == 10, "a snapshot");
  check(s.last()->first == keys - 1 && s.after(-5)->first == 0, "last and after");
  int walked = 0;
  auto walk = s.scan(5);
  for (auto part = walk.next(); !part.empty(); part = walk.next())
    for (const auto& [k, v] : part) check(k == 5 + walked++ && v == text_of(k), "a scan is in order");
  check(walked == keys - 5, "a scan has all");
  check(l.statistics().size() > static_cast<std::size_t>(clients), "ranges split");
  l.end();
}

// Another program: what it inserted is there when it is gone.
void serve() {
  auto l = list::make({.range_items = 50});
  l.publish("/test/list");
  auto s = l.open();
  fmt::print(stderr, "ready\n");
  while (!s.find(-1)) orrery::sleep_for(1ms);
  check(look_for_all(l, keys_of_each) == 0, "all is there that was acknowledged to the other program");
  l.end();
}
void use() {
  const auto l = list::await_name("/test/list", orrery::testing::patience);
  check(fill(l, 0, 1) == keys_of_each, "the other program inserts");
  orrery::testing::check_contains(
      thrown<orrery::usage_error>("a list of other types",
                                  [] { (void)orrery::ordered_list<int, int>::lookup("/test/list").open(); }),
      "other types of keys or values");
}
// It is killed while requests are outstanding.
void use_and_die() {
  use();
  auto s = list::lookup("/test/list").open({.window = 64});
  for (int i = 0; i < 10'000; ++i) s.start_insert_or_update(1000 + i % 200, "unfinished");
  orrery::testing::kill_own_node();
}
// Makes its list while another program is there, which fills it and leaves.
void serve_late() {
  const std::size_t own = orrery::reachable_pes().size();
  fmt::print(stderr, "ready\n");
  while (orrery::reachable_pes().size() == own) orrery::sleep_for(1ms);
  auto l = list::make({.range_items = 20});
  auto m = orrery::hash_map<int, int>::make();
  l.publish("/test/list");
  auto s = l.open();
  while (!s.find(-1)) orrery::sleep_for(1ms);
  while (orrery::reachable_pes().size() != own) orrery::sleep_for(1ms);
  for (const auto& r : l.statistics()) check(r.pe < own, "no range is on a PE of the guest");
  for (const auto& r : m.statistics()) check(r.pe < own, "no part is on a PE of the guest");
  check(look_for_all(l, keys_of_each) == 0, "all is there that the program inserted which has left");
  l.end();
}
void use_and_leave() {
  auto l = list::await_name("/test/list", orrery::testing::patience);
  check(fill(l, 0, 1) == keys_of_each, "the guest inserts");
  check(l.open().insert(-1, ""), "the server is told");
}
void finish() {
  auto s = list::await_name("/test/list", orrery::testing::patience).open();
  check(s.insert(-1, ""), "the server is told to end");
}

// --- a node of the service is killed ------------------------------------------------------------------------------------

void a_lost_node_loses_its_ranges() {
  auto l = list::make({.pes = {0, 1, 2}, .range_items = 40, .splits = {100, 200}, .balancing = false});
  check(fill(l, 0, 1) == keys_of_each, "all keys are inserted");  // the last range splits, onto all nodes
  check(l.lost().empty(), "nothing is lost yet");
  (void)thrown<orrery::node_lost>("a node that is killed",
                                  [] { orrery::call<&orrery::testing::kill_own_node>(orrery::node(2)); });
  const auto lost = l.lost();
  check(!lost.empty(), "something is lost");
  auto s = l.open();
  int gone = 0;
  for (int k = 0; k < keys_of_each; ++k) {
    bool is_lost = false;
    for (const auto& keys : lost) is_lost = is_lost || keys.contains(k);
    if (is_lost) {
      (void)thrown<orrery::node_lost>("a key that is lost", [&] { (void)s.find(k); });
      ++gone;
    } else {
      check(s.find(k) == text_of(k) && s.update(k, "new"), "another key is there");
    }
  }
  check(gone > 0 && gone < keys_of_each, fmt::format("{} keys are lost", gone));
  l.end();
}

// --- finds in the memory of another node --------------------------------------------------------------------------------

using numbers = orrery::ordered_list<int, int>;

// Even keys are there at all times, with a value that only grows; odd ones come and go.
int write_numbers(const numbers& l, int first, int rounds) {
  auto s = l.open({.window = 32});
  for (int i = 1; i <= rounds; ++i) {
    for (int k = first; k < keys_of_each; k += 4) {
      if (k % 2 == 0) {
        s.start_update(k, i);
      } else if (i % 2 == 1) {
        s.start_insert(k, i);
      } else {
        s.start_erase(k);
      }
      while (s.try_receive()) {
      }
    }
  }
  while (const auto r = s.receive()) check(r->done, "each request does what it is to do");
  return 0;
}
// Returns how many finds went without a message.
std::uint64_t read_numbers(const numbers& l, int rounds) {
  auto s = l.open();
  auto by_message = l.open({.one_sided = false});
  std::vector<int> seen(keys_of_each, -1);
  for (int i = 0; i < rounds; ++i)
    for (int k = 0; k < keys_of_each; ++k) {
      const auto v = s.find(k);
      check(v || k % 2 == 1, "a key that is there is found");
      if (!v) continue;
      check(*v >= seen[static_cast<std::size_t>(k)], "a value is not older than before");
      seen[static_cast<std::size_t>(k)] = *v;
      if (i % 8 != 0 || k % 2 == 1) continue;
      const auto later = by_message.find(k);
      check(later && *later >= *v, "a message that follows finds nothing older");
      seen[static_cast<std::size_t>(k)] = *later;
    }
  check(by_message.one_sided_finds() == 0, "no memory is read where that is not wanted");
  return s.one_sided_finds();
}
void finds_read_the_memory_of_other_nodes() {
  auto l = numbers::make({.range_items = 40});
  {
    auto s = l.open();
    for (int k = 0; k < keys_of_each; k += 2) check(s.insert(k, 0), "an even key is inserted");
  }
  // what one has written, another one finds at once
  auto s = l.open();
  for (int i = 1; i < 300; ++i) {
    check(s.update(2 * (i % 200), 0), "an update");
    check(s.find(2 * (i % 200)) == 0 && !s.find(2 * (i % 200) + 1), "it is seen");
  }
  std::vector<orrery::future<int>> writers;
  std::vector<orrery::future<std::uint64_t>> readers;
  const auto pes = orrery::world_pes();
  for (std::uint32_t i = 0; i < 4; ++i)
    writers.push_back(orrery::start_call<&write_numbers>(orrery::pe(i % pes), l, static_cast<int>(i), 40));
  for (std::uint32_t i = 0; i < pes; ++i) readers.push_back(orrery::start_call<&read_numbers>(orrery::pe(i), l, 40));
  for (int i = 0; i < 20; ++i) {
    (void)l.balance();
    orrery::sleep_for(1ms);
  }
  for (auto& w : writers) w.get();
  for (auto& r : readers) r.get();
  // nobody writes any more
  std::uint64_t in_memory = 0;
  for (std::uint32_t i = 0; i < pes; ++i) in_memory += orrery::call<&read_numbers>(orrery::pe(i), l, 2);
  check(in_memory > 0 || orrery::world_nodes() == 1, "finds read the memory of other nodes");
  l.end();
  (void)thrown<orrery::process_gone>("a list that has ended", [&] {
    for (int k = 0; k < 1000; ++k) (void)s.find(k % 100);
  });
}
// The memory outlives its owner, but who reads it hears of the loss.
void finds_in_memory_hear_of_a_loss() {
  auto l = numbers::make({.pes = {1}, .balancing = false});
  auto s = l.open();
  for (int k = 0; k < 100; ++k) check(s.insert(k, k), "a key is inserted");
  for (int k = 0; k < 100; ++k) check(s.find(k) == k, "a key is found");
  check(s.one_sided_finds() > 0, "finds read the memory of the other node");
  auto dies = orrery::start_call<&orrery::testing::kill_own_node>(orrery::node(1));
  (void)thrown<orrery::node_lost>("a node that was killed", [&] {
    for (int k = 0;; ++k) check(s.find(k % 100) == k % 100, "until then all is there");
  });
  (void)thrown<orrery::node_lost>("a call there", [&] { dies.get(); });
}
int insert_number(const numbers& l) {
  auto s = l.open();
  return s.insert(7, 7) ? 1 : 0;
}
// Who looks for something in a loop does not keep others on its PE from running.
void looking_in_a_loop_lets_others_run() {
  auto l = numbers::make({.pes = {1}});
  auto s = l.open();
  auto done = orrery::start_call<&insert_number>(orrery::here(), l);
  while (!s.find(7)) {
  }
  check(done.get() == 1, "the other process ran");
  l.end();
}
// In another program.
void serve_numbers() {
  auto l = numbers::make();
  l.publish("/test/numbers");
  auto s = l.open();
  for (int k = 0; k < 100; ++k) check(s.insert(k, k), "a key is inserted");
  fmt::print(stderr, "ready\n");
  while (!s.find(-1)) orrery::sleep_for(1ms);
  l.end();
}
void look_for_numbers() {
  auto s = numbers::await_name("/test/numbers", orrery::testing::patience).open();
  for (int k = 0; k < 1000; ++k) check(s.find(k % 100) == k % 100, "a key is found");
  check(s.one_sided_finds() > 900, fmt::format("{} finds read the memory of the other program", s.one_sided_finds()));
  check(s.insert(-1, 0), "the server is told to end");
}

// --- work queues --------------------------------------------------------------------------------------------------------

using jobs = orrery::work_queue<std::string>;

// Does items until there are none; is killed with three in its hands if `dies`.
int work(const jobs& q, bool dies) {
  auto s = q.open();
  if (dies) {
    check(s.take_some(3).size() == 3, "three items in its hands");
    orrery::testing::kill_own_node();
  }
  int n = 0;
  for (; const auto w = s.take(); ++n) check(s.done(*w), "an item in its hands is done");
  return n;
}
void items_of_a_killed_worker_come_back() {
  auto q = jobs::make();
  {
    auto s = q.open();
    for (int i = 0; i < 200; ++i) s.start_put(i % 5, text_of(i));
    while (const auto r = s.receive()) check(r->done, "an item is put in");
  }
  auto dies = orrery::start_call<&work>(orrery::node(1), q, true);
  (void)thrown<orrery::node_lost>("a worker that is killed", [&] { dies.get(); });
  auto lives = orrery::start_call<&work>(orrery::node(2), q, false);
  q.close();
  const int mine = work(q, false);
  const int other = lives.get();
  check(mine + other == 200, fmt::format("{} and {} items are done", mine, other));
  check(q.counts() == orrery::service::work_counts{0, 0, 200, 3}, "three items came back");
  q.end();
}
// Takes as many items at a time as it gets.
int take_large_items(const jobs& q) {
  auto s = q.open();
  int n = 0;
  for (auto all = s.take_some(16); !all.empty(); all = s.take_some(16))
    for (const auto& w : all) {
      check(w.item.size() == 200'000 && s.done(w), "a large item arrives");
      ++n;
    }
  return n;
}
void large_items_travel_in_little_memory() {
  auto q = jobs::make();
  auto s = q.open();
  for (int i = 0; i < 20; ++i) s.put(0, std::string(200'000, 'x'));
  q.close();
  check(orrery::call<&take_large_items>(orrery::node(1), q) == 20, "all items are done");
  check(q.counts() == orrery::service::work_counts{0, 0, 20, 0}, "none had to come back");
  q.end();
}
// Does what arrives, and what it hears of.
int work_around_errors(const jobs& q) {
  auto s = q.open();
  int errors = 0;
  for (bool more = true; more;) {
    try {
      const auto w = s.take();
      more = w.has_value();
      if (w) check(w->item.size() < 10 && s.done(*w), "a small item arrives");
    } catch (const orrery::world_error&) {
      ++errors;
      check(s.unreadable().size() == 1, "the item that cannot be sent is named");
      for (const auto& w : s.unreadable()) check(w.id == 1 && w.times == 1 && s.done(w), "it is done");
    }
  }
  check(s.unreadable().empty(), "no other item is named");
  return errors;
}
void an_item_that_cannot_be_sent_is_named() {
  auto q = jobs::make();
  auto s = q.open();
  s.put(0, "first");
  s.put(0, std::string(4'000'000, 'x'));
  s.put(0, "last");
  q.close();
  check(orrery::call<&work_around_errors>(orrery::node(1), q) == 1, "one call has failed");
  check(q.counts() == orrery::service::work_counts{0, 0, 3, 0}, "all items are done");
  q.end();
}
// A join whose items are more than a message may have.
void large_items_are_not_joined() {
  auto l = list::make({.pes = {0, 1}, .splits = {100, 200}, .balancing = false});
  auto s = l.open();
  check(s.insert(1, "one"), "an insert");
  for (int k = 100; k < 120; ++k) check(s.insert(k, std::string(100'000, 'x')), "an insert of much");
  for (int k = 200; k < 220; ++k) check(s.insert(k, "little"), "an insert of little");
  (void)l.balance();  // what was done until now does not count
  for (int i = 0; i < 20'000; ++i) {
    s.start_find(200 + i % 20);
    while (s.try_receive()) {
    }
  }
  while (s.receive()) {
  }
  (void)l.balance();
  auto fresh = l.open();
  for (auto* session : {&s, &fresh}) {
    for (int k = 100; k < 120; ++k)
      check(session->find(k).value_or("").size() == 100'000, fmt::format("the key {} is lost", k));
    check(session->find(1).has_value() && session->size() == 41, "items are lost");
  }
  l.end();
}
void serve_work() {
  auto q = jobs::make();
  q.publish("/test/jobs");
  (void)thrown<orrery::usage_error>("other items", [] { (void)orrery::work_queue<int>::lookup("/test/jobs").open(); });
  fmt::print(stderr, "ready\n");
  auto s = q.open();
  check(s.put(0, "job").has_value(), "the queue is open");
  while (q.counts().came_back == 0) orrery::sleep_for(1ms);  // another program had it, and was killed
  const auto again = s.take();
  check(again && again->item == "job" && again->times == 2 && s.done(*again), "the item came back");
  q.end();
}
void work_and_die() {
  auto s = jobs::await_name("/test/jobs", orrery::testing::patience).open();
  (void)s.take();
  orrery::testing::kill_own_node();
}

const orrery::testing::scenarios all = {{"all_pes_use_one_list", all_pes_use_one_list},
                                        {"serve", serve},
                                        {"use", use},
                                        {"use_and_die", use_and_die},
                                        {"finish", finish},
                                        {"serve_late", serve_late},
                                        {"use_and_leave", use_and_leave},
                                        {"a_lost_node_loses_its_ranges", a_lost_node_loses_its_ranges},
                                        {"items_of_a_killed_worker_come_back", items_of_a_killed_worker_come_back},
                                        {"large_items_travel_in_little_memory", large_items_travel_in_little_memory},
                                        {"an_item_that_cannot_be_sent_is_named", an_item_that_cannot_be_sent_is_named},
                                        {"large_items_are_not_joined", large_items_are_not_joined},
                                        {"finds_read_the_memory_of_other_nodes", finds_read_the_memory_of_other_nodes},
                                        {"finds_in_memory_hear_of_a_loss", finds_in_memory_hear_of_a_loss},
                                        {"looking_in_a_loop_lets_others_run", looking_in_a_loop_lets_others_run},
                                        {"serve_numbers", serve_numbers},
                                        {"look_for_numbers", look_for_numbers},
                                        {"serve_work", serve_work},
                                        {"work_and_die", work_and_die}};

TEST(services, are_used_by_three_nodes_of_one_pe) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-nodes=3", "--orrery-pes=1"}), "good");
}
TEST(services, are_used_by_two_nodes_of_two_pes) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-nodes=2", "--orrery-pes=2"}), "good");
}
TEST(services, are_used_by_threads_whose_messages_take_their_wire_form) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-pes=3", "--orrery-serialize"}), "good");
}

TEST(services, are_used_with_small_rings_mailboxes_and_memory) {
  EXPECT_EQ(outcome_of({"--scenario=all_pes_use_one_list", "--orrery-nodes=2", "--orrery-pes=2", "--orrery-ring=32K",
                        "--orrery-mailbox=4K", "--orrery-memory=1M"}),
            "good");
}

TEST(services, are_found_by_name_from_other_programs) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=use", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(outcome_of({"--scenario=finish", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(server.end(), "good");
}
TEST(services, that_are_made_while_a_guest_is_there_lose_nothing_when_it_leaves) {
  for (const char* const nodes : {"--orrery-nodes=1", "--orrery-nodes=2"}) {
    program server({"--scenario=serve_late", own_world(), "--orrery-pes=1", nodes});
    server.hear("ready");
    EXPECT_EQ(outcome_of({"--scenario=use_and_leave", own_world(), "--orrery-pes=2"}), "good");
    EXPECT_EQ(server.end(), "good");
  }
}
TEST(services, are_used_from_the_shell) {
  if (!std::filesystem::exists(shell_program())) GTEST_SKIP() << "the program orrery is not part of this build";
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=use", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(tool("find 7"), "value 7\n0");
  EXPECT_EQ(tool("find 1000"), "1");
  EXPECT_EQ(tool("insert 1000 thousand"), "0");
  EXPECT_EQ(tool("range 498"), "498,value 498\n499,value 499\n1000,thousand\n0");
  EXPECT_EQ(tool("erase 1000"), "0");
  EXPECT_EQ(tool("size"), fmt::format("{}\n0", keys_of_each));
  const std::filesystem::path csv =
      std::filesystem::path(::testing::TempDir()) / fmt::format("list.{}.csv", ::getpid());
  std::ofstream(csv) << "2000,two\n2001,\"a, b\"\n2001,\"say \\\"c\\\"\"\n";
  EXPECT_EQ(tool("load " + csv.string()), "2 inserted, 1 updated\n0");
  EXPECT_EQ(tool("range 2000"), "2000,two\n2001,\"say \\\"c\\\"\"\n0");
  std::ofstream(csv) << "2002,good\n2003\n";
  EXPECT_NE(tool("load " + csv.string()).find(":2: 1 field,"), std::string::npos);
  std::ofstream(csv) << "2002,\"say \"\"c\"\"\"\n";
  EXPECT_NE(tool("load " + csv.string()).find(":1: a quote in quotes"), std::string::npos);
  std::filesystem::remove(csv);
  EXPECT_NE(tool("load " + csv.string()).find("cannot be read"), std::string::npos);
  EXPECT_NE(tool("statistics").find("items"), std::string::npos);
  const std::string top = orrery::testing::shell("top", "--once --interval 0.05");
  EXPECT_TRUE(std::regex_search(top, std::regex("MAILBOX +W +G +K"))) << top;
  EXPECT_TRUE(std::regex_search(top, std::regex("\n *0 +0 .* [1-9][0-9]* +50 *\n")))
      << "W, and G as it was made: " << top;
  for (const int k : {2000, 2001, 2002}) EXPECT_EQ(tool(fmt::format("erase {}", k)), "0");
  EXPECT_NE(tool("find seven").find("'seven' is no number"), std::string::npos);
  EXPECT_EQ(tool("insert -- -1 end"), "0");
  EXPECT_EQ(server.end(), "good");
}

TEST(services, lose_nothing_acknowledged_when_a_client_is_killed) {
  program server({"--scenario=serve", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=use_and_die", own_world(), "--orrery-pes=1"}), "killed by signal 9");
  EXPECT_EQ(outcome_of({"--scenario=finish", own_world(), "--orrery-pes=1"}), "good");
  const std::string said = server.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
}

TEST(services, say_which_keys_are_lost_with_a_node) {
  const std::string said =
      outcome_of({"--scenario=a_lost_node_loses_its_ranges", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}

TEST(services, let_finds_read_the_memory_of_three_nodes) {
  EXPECT_EQ(outcome_of({"--scenario=finds_read_the_memory_of_other_nodes", "--orrery-nodes=3", "--orrery-pes=1"}),
            "good");
}
TEST(services, let_finds_read_the_memory_of_two_nodes_of_two_pes) {
  EXPECT_EQ(outcome_of({"--scenario=finds_read_the_memory_of_other_nodes", "--orrery-nodes=2", "--orrery-pes=2"}),
            "good");
}
TEST(services, let_finds_read_the_memory_of_another_program) {
  program server({"--scenario=serve_numbers", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=look_for_numbers", own_world(), "--orrery-pes=1"}), "good");
  EXPECT_EQ(server.end(), "good");
}
TEST(services, say_that_the_memory_which_finds_read_is_lost) {
  const std::string said =
      outcome_of({"--scenario=finds_in_memory_hear_of_a_loss", "--orrery-nodes=2", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(services, that_are_looked_at_in_a_loop_let_others_run) {
  EXPECT_EQ(outcome_of({"--scenario=looking_in_a_loop_lets_others_run", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
}

TEST(services, give_items_of_a_killed_worker_to_others) {
  const std::string said =
      outcome_of({"--scenario=items_of_a_killed_worker_come_back", "--orrery-nodes=3", "--orrery-pes=1"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(services, hand_out_large_items_in_little_memory) {
  EXPECT_EQ(outcome_of({"--scenario=large_items_travel_in_little_memory", "--orrery-nodes=2", "--orrery-pes=1",
                        "--orrery-memory=1M"}),
            "good");
}
TEST(services, name_an_item_that_is_larger_than_the_memory_for_messages) {
  const std::string said = outcome_of(
      {"--scenario=an_item_that_cannot_be_sent_is_named", "--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=1M"});
  EXPECT_TRUE(said.ends_with("good")) << said;
}
TEST(services, keep_items_that_are_too_large_to_be_joined) {
  EXPECT_EQ(
      outcome_of({"--scenario=large_items_are_not_joined", "--orrery-nodes=2", "--orrery-pes=1", "--orrery-memory=1M"}),
      "good");
}
TEST(services, give_items_back_when_another_program_is_killed_that_had_them) {
  program server({"--scenario=serve_work", own_world(), "--orrery-pes=1"});
  server.hear("ready");
  EXPECT_EQ(outcome_of({"--scenario=work_and_die", own_world(), "--orrery-pes=1"}), "killed by signal 9");
  const std::string said = server.end();
  EXPECT_TRUE(said.ends_with("good")) << said;
}

}  // namespace

int main(int argc, char** argv) { return orrery::testing::run_tests_or_scenario(argc, argv, all); }
