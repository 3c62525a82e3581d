// SPDX-License-Identifier: Apache-2.0
// Messages of three levels, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/group_priority.hpp>
#include <orrery/process/priority.hpp>

#include <algorithm>
#include <stdexcept>

namespace orrery {
namespace priorities_tests {

using namespace std::chrono_literals;
using testing::check;
using testing::check_contains;
using testing::thrown;

struct Log {
  void add(const std::string& s) { text += s; }
  std::string read() const { return text; }
  int slow(int yields) {
    for (int i = 0; i < yields; ++i) yield();
    return yields;
  }
  void fail() { throw std::out_of_range("urgently"); }
  std::string text;
};
ORRERY_PROCESS(Log, add, read, slow, fail);

/// Each level has kept its order.
void check_levels(const std::string& all, std::string_view what) {
  for (const char* level : {"u", "n", "m", "b"}) {
    const auto at = [&](int i) { return all.find(fmt::format("{}{}", level, i)); };
    check(all.size() == 24 && at(0) < at(1) && at(1) < at(2), fmt::format("{}: {}", what, all));
  }
}

/// Posts while the process is in a method, so that all of them wait in its mailbox.
void send_all(remote<Log> to) {
  for (int i = 0; i < 3; ++i) {
    post(to, background)->add(fmt::format("b{}", i));
    post(to)->add(fmt::format("n{}", i));
    post(to, urgent)->add(fmt::format("u{}", i));
    post(to, priority::normal)->add(fmt::format("m{}", i));
  }
}

void mailboxes() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto log = spawn<Log>(pe(p));
    auto busy = start(log)->slow(50);
    call<&send_all>(pe(p), log);
    busy.get();
    quiescence();
    check(log->read() == "u0u1u2n0m0n1m1n2m2b0b1b2", "in a mailbox: " + log->read());
    // From elsewhere some may come when the process is idle: each level keeps its order.
    for (std::uint32_t from = 0; from < world_pes(); ++from) {
      const auto other = spawn<Log>(pe(p));
      call<&send_all>(pe(from), other);
      quiescence();
      check_levels(other->read(), "to an object");
    }
  }
}

/// Reads its messages when all of them are there.
void reader(remote<function> asker) {
  (void)receive<bool>();
  auto all = receive<std::string>(7);
  for (int i = 0; i < 12; ++i) all += receive<std::string>();
  send(asker, all);
}
void send_all_to_function(remote<function> to) {
  for (int i = 0; i < 3; ++i) {
    send(to, fmt::format("b{}", i), background);
    send(to, fmt::format("n{}", i));
    send(to, fmt::format("u{}", i), urgent);
    check(try_send(to, fmt::format("m{}", i), priority::normal), "there is room");
  }
  send(to, std::string("t"), 7, urgent);
  check(try_send(to, true, background), "there is room");
}

void functions() {
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    for (std::uint32_t from = 0; from < world_pes(); ++from) {
      const auto f = spawn(pe(p), &reader, this_process<function>());
      call<&send_all_to_function>(pe(from), f);
      const auto all = receive<std::string>();
      check(all.starts_with("tu0u1u2"), "to a function: " + all);
      if (from == p) check(all == "tu0u1u2n0m0n1m1n2m2b0b1b2", "to a function of the same PE: " + all);
      check_levels(all.substr(1), "to a function");
    }
}

/// Its PE has other processes that are to run.
struct Runner {
  void run(remote<Log> log, const std::string& s) { log->add(s); }
};
ORRERY_PROCESS(Runner, run);

std::string within_a_pe() {
  const auto log = spawn<Log>(here());
  std::vector<remote<Runner>> all;
  for (int i = 0; i < 6; ++i) all.push_back(spawn<Runner>(here()));
  post(all[0], background)->run(log, "b");
  for (int i = 1; i < 6; ++i) post(all[i])->run(log, "n");
  post(all[3], urgent)->run(log, "x");  // waits already
  post(all[0], urgent)->run(log, "y");
  post(all[5], urgent)->run(log, "z");
  while (log->read().size() < 9) sleep_for(50us);  // the PE has to be idle
  return log->read();
}

void pes() {
  for (std::uint32_t p = 0; p < world_pes(); ++p)
    for (int i = 0; i < 3; ++i) {
      const std::string all = call<&within_a_pe>(pe(p));
      check(all == "xyznnnnnb", "within a PE: " + all);
    }
}

void calls() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto log = spawn<Log>(pe(p));
    check(call(log, urgent)->slow(2) == 2 && call(log, background)->slow(3) == 3 &&
              call(log, priority::normal)->slow(1) == 1,
          "calls");
    auto slow = start(log)->slow(20);
    auto last = start(log, background)->read();
    auto then = start(log)->add("then");
    auto first = start(log, urgent)->read();
    const std::string before = first.get();
    const std::string after = last.get();
    check((before.empty() && after == "then") || p != this_pe(), "futures: " + before + ", " + after);
    then.get();
    slow.get();
    thrown<std::out_of_range>("an urgent call", [&] { call(log, urgent)->fail(); });
    thrown<std::out_of_range>("one in the background", [&] { call(log, background)->fail(); });
    check(try_post(log, urgent)->add("") && try_post(log, background)->add(""), "there is room");
    quiescence();
    auto gone_last = start(log, background)->slow(1);
    auto gone = start(log)->slow(10);
    destroy(log);
    gone.get();
    try {
      check(gone_last.get() == 1, "it came before");
    } catch (const process_gone&) {
    }
    thrown<process_gone>("destroyed", [&] { call(log, urgent)->add(""); });
    thrown<process_gone>("destroyed", [&] { call(log, background)->add(""); });
  }
}

/// Members know each other before they are there.
struct Peer;
ORRERY_PROCESS(Peer, greet, greetings);
struct Peer : member<Peer> {
  Peer() {
    for (std::size_t i = 0; i < size(); ++i)
      for (const priority level : {urgent, background}) post(this_group()[i], level)->greet();
  }
  void greet() { ++greeted; }
  std::size_t greetings() const { return greeted; }
  std::size_t greeted = 0;
};

void peers() {
  const auto all = spawn_group<Peer>(everywhere(), 7);
  quiescence();
  check(all->greetings() == std::vector<std::size_t>(7, 14), "messages to processes that are being constructed");
}

/// To a group and to one of its members in turn: while they are in a method, and while they are idle.
void send_to_all(group<Log> to, std::size_t rank) {
  for (int i = 0; i < 3; ++i) {
    post(to, background)->add(fmt::format("b{}", 2 * i));
    post(to[rank], background)->add(fmt::format("b{}", 2 * i + 1));
    post(to)->add(fmt::format("n{}", 2 * i));
    post(to[rank])->add(fmt::format("n{}", 2 * i + 1));
    post(to, urgent)->add(fmt::format("u{}", 2 * i));
    post(to[rank], urgent)->add(fmt::format("u{}", 2 * i + 1));
    post(to, priority::normal)->add(fmt::format("m{}", i));
  }
}

void groups() {
  for (std::uint32_t from = 0; from < world_pes(); ++from) {
    const auto g = spawn_group<Log>(everywhere(), 5);
    const std::size_t own = std::size_t{from} % 5;  // its PE is `from`
    auto busy = start(g)->slow(50);
    call<&send_to_all>(pe(from), g, own);
    busy.get();
    quiescence();
    const auto all = g->read();
    check(g[own].address().pe != from || all[own] == "u0u1u2u3u4u5n0n1m0n2n3m1n4n5m2b0b1b2b3b4b5",
          "at a member of the sender's PE: " + all[own]);
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      for (const char* level : {"u", "n", "m", "b"}) {
        const bool each = level[0] != 'm' && rank == own;
        std::size_t last = 0;
        for (int i = 0; i < (level[0] == 'm' ? 3 : 6); i += each || level[0] == 'm' ? 1 : 2) {
          const std::size_t at = all[rank].find(fmt::format("{}{}", level, i));
          check(at != std::string::npos && at >= last, fmt::format("member {}: {}", rank, all[rank]));
          last = at;
        }
        check(all[rank].size() == (rank == own ? 42 : 24), fmt::format("member {}: {}", rank, all[rank]));
      }
    for (const priority p : {urgent, background, priority::normal}) {
      check(call(g, p)->read() == all, "a call of all");
      check(start(g, p)->slow(2).get() == std::vector(5, 2), "a future of all");
      thrown<std::out_of_range>("all throw", [&] { call(g, p)->fail(); });
    }
    destroy(g[3]);
    thrown<process_gone>("a member that is gone", [&] { (void)call(g, background)->read(); });
    auto slow = start(g[2])->slow(20);
    auto late = start(g, background)->slow(1);
    destroy(g);
    slow.get();
    thrown<process_gone>("members that ended before it was their turn", [&] { (void)late.get(); });
  }
}

/// What waits until a PE is idle, when the program ends.
void groups_end() {
  const auto g = spawn_group<Log>(everywhere(), 5);
  post(g)->slow(1000);
  for (const priority level : {urgent, background}) post(g, level)->add("at the end");
}

struct Ping;
ORRERY_PROCESS(Ping, back, around);
struct Ping {
  int back() { return 1; }
  int around(remote<Ping> other, remote<Ping> self, priority p) {
    return other ? call(other, p)->around({}, self, p) : call(self, p)->back();
  }
};

void circles() {
  for (const priority p : {urgent, background}) {
    const auto a = spawn<Ping>(here());
    const auto b = spawn<Ping>(pe(world_pes() - 1));
    check_contains(thrown<deadlock_error>("a circle", [&] { (void)a->around(b, a, p); }), "Ping::around");
  }
}

void many() {
  const auto log = spawn<Log>(pe(world_pes() - 1));
  auto slow = start(log)->slow(100);
  for (int i = 0; i < 1000; ++i) {
    post(log, i % 2 == 0 ? urgent : background)->add("x");
    post(log)->add("y");
  }
  slow.get();
  quiescence();
  check(log->read().size() == 2000, "all have come");
}

void ends() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto log = spawn<Log>(pe(p));
    post(log)->slow(1000);
    for (const priority level : {urgent, background}) post(log, level)->add("at the end");
  }
}

struct Restless;
ORRERY_PROCESS(Restless, again);
struct Restless {
  void again(priority level) { post(this_process<Restless>(), level)->again(level); }
};
void never_rest() {  // on another PE than main, which would not have its turn
  for (const priority level : {urgent, priority::normal, background})
    post(spawn<Restless>(pe(world_pes() - 1)), level)->again(level);
  sleep_for(std::chrono::milliseconds(1));
}

TEST(priorities_of_messages, that_follow_each_other_for_ever_let_the_program_end) {
  for (const char* world : {"--orrery-pes=2", "--orrery-nodes=2", "--orrery-sim=machines=2,pes=1,message=1us"}) {
    const std::string said = testing::outcome_of({world, "--scenario=never_rest", "--orrery-quiet"});
    EXPECT_TRUE(said.ends_with("good")) << said;  // after a line on those that were not executed
  }
}

using priorities = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(priorities);
TEST_P(priorities, hold_in_mailboxes) { EXPECT_EQ(wrong_in("mailboxes"), ""); }
TEST_P(priorities, hold_for_values_sent_to_functions) { EXPECT_EQ(wrong_in("functions"), ""); }
TEST_P(priorities, hold_among_the_processes_of_a_pe) { EXPECT_EQ(wrong_in("pes"), ""); }
TEST_P(priorities, hold_for_calls_and_futures) { EXPECT_EQ(wrong_in("calls"), ""); }
TEST_P(priorities, hold_for_groups) { EXPECT_EQ(wrong_in("groups_of_priorities"), ""); }
TEST_P(priorities, of_groups_end_with_the_program) { EXPECT_EQ(wrong_in("groups_end"), ""); }
TEST_P(priorities, let_objects_be_constructed_first) { EXPECT_EQ(wrong_in("peers"), ""); }
TEST_P(priorities, let_circles_be_found) { EXPECT_EQ(wrong_in("circles_of_priorities"), ""); }
TEST_P(priorities, lose_no_message) { EXPECT_EQ(wrong_in("many_of_priorities"), ""); }
TEST_P(priorities, end_with_the_program) { EXPECT_EQ(wrong_in("ends_of_priorities"), ""); }

const orrery::testing::scenarios_of_file of_this({{"mailboxes", mailboxes},
                                                  {"never_rest", never_rest},
                                                  {"functions", functions},
                                                  {"pes", pes},
                                                  {"calls", calls},
                                                  {"peers", peers},
                                                  {"groups_of_priorities", groups},
                                                  {"groups_end", groups_end},
                                                  {"circles_of_priorities", circles},
                                                  {"many_of_priorities", many},
                                                  {"ends_of_priorities", ends}});

}  // namespace priorities_tests
}  // namespace orrery
