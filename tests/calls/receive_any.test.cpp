// SPDX-License-Identifier: Apache-2.0
// Receiving any of several types, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/process/priority.hpp>
#include <orrery/process/receive_any.hpp>

#include <array>
#include <memory>
#include <stdexcept>
#include <utility>

namespace orrery {
namespace receive_any_tests {

using namespace std::chrono_literals;
using testing::check;
using testing::thrown;

struct Stop {};
struct Text {
  std::string words;
};

void send_all(remote<function> to) {
  send(to, 1);
  send(to, Text{"two"});
  send(to, 3L);
  send(to, std::vector<int>(2000, 4));
  send(to, 5);
  send(to, Stop{});
}

void orders() {
  const auto me = this_process<function>();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    call<&send_all>(pe(p), me);
    std::string seen;
    for (bool more = true; more;) {
      more = receive(on<int>([&](int n) { return seen += std::to_string(n), true; }),
                     on<Text>([&](const Text& t) { return seen += t.words, true; }),
                     on<std::vector<int>>([&](std::vector<int> v) { return seen += std::to_string(v.size()), true; }),
                     on<Stop>([](Stop) { return false; }));
    }
    check(seen == "1two20005", "in the order in which they came: " + seen);
    check(has_message<long>() && !has_message<int>(), "what nobody asked for waits on");
    check(receive<long>() == 3 && !has_message<long>(), "until somebody does");
  }
}

void guards() {
  const auto me = this_process<function>();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    call<&send_all>(pe(p), me);
    const auto large = [](int n) { return n > 3; };
    int taken = 0;
    receive(on<int>(large, [&](int n) { taken = n; }));
    check(taken == 5, "the guard lets the second one pass");
    receive(on<std::vector<int>>([](const std::vector<int>& v) { return v.empty(); }, [&](const auto&) { taken = -1; }),
            on<int>(large, [&](int) { taken = -2; }), on<int>([&](int n) { taken = n; }));
    check(taken == 1, "the first case of two that a message fits, and that lets it pass");
    thrown<std::out_of_range>("a case", [] { receive(on<long>([](long) { throw std::out_of_range("case"); })); });
    (void)receive<Text>();
    (void)receive<std::vector<int>>();
    (void)receive<Stop>();
  }
}

void send_two(remote<function> to) {
  send(to, 10);
  send(to, 20);
}
void send_urgent(remote<function> to) { send(to, 7, urgent); }

// Messages come while a guard looks at the only one that was there.
void guards_that_call() {
  const auto me = this_process<function>();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    int taken = 0;
    const auto take = [&](auto call_once, auto passes) {
      send(me, 1);
      bool called = false;
      receive(on<int>(
          [&](int n) {
            if (!std::exchange(called, true)) call_once();
            return passes(n);
          },
          [&](int n) { taken = n; }));
      return taken;
    };
    const auto two = [&] { call<&send_two>(pe(p), me); };
    const auto an_urgent_one = [&] { call<&send_urgent>(pe(p), me); };
    const auto all = [](int) { return true; };
    check(take(two, all) == 1 && receive<int>() == 10 && receive<int>() == 20, "what the guard lets pass, once");
    check(take(two, [](int n) { return n == 20; }) == 20, "what has come while the guard looked");
    check(receive<int>() == 1 && receive<int>() == 10, "the others wait on");
    check(take(an_urgent_one, all) == 1 && receive<int>() == 7, "an urgent one comes before it");
    check(take(an_urgent_one, [](int n) { return n == 7; }) == 7 && receive<int>() == 1, "and is looked at");
    check(!has_message<int>(), "each was taken once");
    thrown<usage_error>("receiving in a guard", [&] { take([] { (void)try_receive<int>(); }, all); });
    check(receive<int>() == 1, "the message stays");
  }
}

/// Larger than what a message has room for.
struct Fussy {
  int value = 0;
  std::array<char, 600> more{};
  template <class A>
  void serialize(A& a) {
    a & value;
    if constexpr (A::is_loading::value)
      if (value < 0) throw std::domain_error("a negative value");
  }
};
void send_fussy(remote<function> to) {
  for (const int value : {-1, 2}) {
    Fussy f;
    f.value = value;
    send(to, f);
  }
  send(to, 3);
}
void unreadable() {
  const auto me = this_process<function>();
  const std::uint32_t last = world_pes() - 1;
  call<&send_fussy>(pe(last), me);
  thrown<std::domain_error>("a value that cannot be read", [] { (void)receive<Fussy>(); });
  check(receive<Fussy>().value == 2 && receive<int>() == 3, "it is gone, and the others are there");
  call<&send_fussy>(pe(last), me);
  const auto next = [] {
    return receive(on<Fussy>([](const Fussy&) { return true; }, [](const Fussy& f) { return f.value; }));
  };
  thrown<std::domain_error>("one for a case with a guard", [&] { (void)next(); });
  check(next() == 2 && receive<int>() == 3, "it is gone, too");
}

void limits() {
  bool late = false;
  receive(on<int>([](int) {}), after(1ms, [&] { late = true; }));
  check(late, "nothing comes");
  const auto me = this_process<function>();
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    post_call<&send_all>(pe(p), me);
    const int n = receive(on<Stop>([](Stop) { return 7; }), after(60s, [] { return 8; }));
    check(n == 7, "it comes in time");
    (void)receive<int>(), (void)receive<int>(), (void)receive<long>(), (void)receive<Text>();
    (void)receive<std::vector<int>>();
  }
}

void waits(remote<function> to) {
  try {
    receive(on<int>([](int) {}), on<Stop>([](Stop) {}));
  } catch (const stopped&) {
    send(to, 1);
    throw;
  }
}

void ends() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto f = spawn(pe(p), waits, this_process<function>());
    destroy(f);
    check(receive<int>() == 1, "it was destroyed");
  }
  (void)spawn(pe(world_pes() - 1), [] { receive(on<int>([](int) {}), after(1000s, [] {})); });  // ends with the program
}

// More than a mailbox holds, for a process that waits until nothing happens any more.
void send_large(remote<function> to) { send(to, std::vector<double>(300'000, 1.5)); }
void large_values() {
  for (int round = 0; round < 3; ++round)
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      spawn(pe(p), send_large, this_process<function>());
      quiescence();
      check(receive<std::vector<double>>().size() == 300'000, "the value is whole");
    }
}

using receiving = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(receiving);
TEST_P(receiving, any_of_several_types_keeps_their_order) { EXPECT_EQ(wrong_in("orders"), ""); }
TEST_P(receiving, with_guards_leaves_what_they_do_not_let_pass) { EXPECT_EQ(wrong_in("guards"), ""); }
TEST_P(receiving, finds_what_came_while_a_guard_waited) { EXPECT_EQ(wrong_in("guards_that_call"), ""); }
TEST_P(receiving, has_a_time_limit) { EXPECT_EQ(wrong_in("limits_of_receive_any"), ""); }
TEST_P(receiving, takes_what_came_while_the_process_waited_for_quiescence) { EXPECT_EQ(wrong_in("large_values"), ""); }
TEST_P(receiving, ends_with_the_process) { EXPECT_EQ(wrong_in("ends_of_receive_any"), ""); }

TEST(receiving_on, takes_out_what_cannot_be_read) {
  EXPECT_EQ(testing::outcome_of({"--scenario=unreadable", "--orrery-nodes=2", "--orrery-pes=1"}), "good");
  EXPECT_EQ(testing::outcome_of({"--scenario=unreadable", "--orrery-pes=2", "--orrery-serialize"}), "good");
}

const orrery::testing::scenarios_of_file of_this({{"orders", orders},
                                                  {"guards", guards},
                                                  {"guards_that_call", guards_that_call},
                                                  {"unreadable", unreadable},
                                                  {"limits_of_receive_any", limits},
                                                  {"large_values", large_values},
                                                  {"ends_of_receive_any", ends}});

}  // namespace receive_any_tests
}  // namespace orrery
