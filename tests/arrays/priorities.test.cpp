// SPDX-License-Identifier: Apache-2.0
// Messages of three levels to elements, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/priority.hpp>

#include <stdexcept>

namespace orrery {
namespace priorities_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

struct Log;
ORRERY_PROCESS(Log, add, read, where, slow, fail, around);
struct Log : element<Log> {
  void add(const std::string& s) { text += s; }
  std::string read() const { return text; }
  std::uint32_t where() const { return this_pe(); }
  int slow(int yields) {
    for (int i = 0; i < yields; ++i) yield();
    return yields;
  }
  void fail() { throw std::out_of_range("urgently"); }
  int around(int next, priority p) { return call(this_array()[next], p)->around(next, p); }
  template <class A>
  void serialize(A& a) {
    a & text;
  }
  std::string text;
};
using logs = array<Log>;

void send_all(element_ptr<Log> to) {
  for (int i = 0; i < 3; ++i) {
    post(to, background)->add(fmt::format("b{}", i));
    post(to)->add(fmt::format("n{}", i));
    post(to, urgent)->add(fmt::format("u{}", i));
    post(to, priority::normal)->add(fmt::format("m{}", i));
  }
}

/// Each level has kept its order.
void check_levels(const std::string& all, std::string_view what) {
  for (const char* level : {"u", "n", "m", "b"}) {
    const auto at = [&](int i) { return all.find(fmt::format("{}{}", level, i)); };
    check(all.size() == 24 && at(0) < at(1) && at(1) < at(2), fmt::format("{}: {}", what, all));
  }
}

void mailboxes() {
  const auto a = create_array<Log>(range<int>{5}, {.name = "logs"});
  for (int i = 0; i < 5; ++i) {
    auto busy = start(a[i])->slow(50);
    call<&send_all>(pe(a[i]->where()), a[i]);
    busy.get();
    quiescence(a);
    const std::string all = a[i]->read();
    // The call that asks where it is may have come after the slow one.
    check_levels(all, "a mailbox");
    check(all.ends_with("b0b1b2"), "the background comes last: " + all);
  }
  destroy(a);
}

/// On the PE of the element: it is in a method while all of them are sent.
std::string within(element_ptr<Log> to) {
  auto busy = start(to)->slow(20);
  yield();
  send_all(to);
  busy.get();
  quiescence();
  return to->read();
}
void waiting() {
  const auto a = create_array<Log>(range<int>{5});
  for (int i = 0; i < 5; ++i) {
    const std::string all = call<&within>(pe(a[i]->where()), a[i]);
    check(all == "u0u1u2n0m0n1m1n2m2b0b1b2", "in a mailbox: " + all);
  }
}

void afar() {
  for (std::uint32_t from = 0; from < world_pes(); ++from) {
    const auto a = create_array<Log>(range<int>{5});
    for (int i = 0; i < 5; ++i) call<&send_all>(pe(from), a[i]);
    quiescence(a);
    for (int i = 0; i < 5; ++i) check_levels(a[i]->read(), "from another PE");
    destroy(a);
  }
}

/// All is there, and the urgent ones came first.
void check_urgent_first(const std::string& all, std::string_view what) {
  bool complete = all.size() == 24;
  for (const char level : {'u', 'n', 'm', 'b'})
    for (const char i : {'0', '1', '2'}) complete = complete && all.find(std::string{level, i}) != std::string::npos;
  check(complete && all.starts_with("u0u1u2"), fmt::format("{}: {}", what, all));
}

/// An element that moves takes them along, and those that wait for an idle PE follow. One that
/// follows may be overtaken by one that waits where the element comes back to.
void moving() {
  const std::uint32_t last = world_pes() - 1;
  for (int round = 0; round < 4; ++round) {
    const auto a = create_array<Log>();
    a.insert_at(pe(0), 3);
    auto busy = start(a[3])->slow(20);
    yield();
    send_all(a[3]);
    post_migrate(a[3], last);
    busy.get();
    for (int i = 0; i < round; ++i) post_migrate(a[3], static_cast<std::uint32_t>(i) % world_pes());
    quiescence(a);
    check_urgent_first(a[3]->read(), "an element that moves");
    destroy(a);
  }
}

void come_early() {
  const auto a = create_array<Log>();
  for (int i = 0; i < 6; ++i) {
    send_all(a[i]);
    auto answer = start(a[i], urgent)->read();
    a.insert_at(pe(static_cast<std::uint32_t>(i) % world_pes()), i);
    (void)answer.get();
    quiescence(a);
    check_levels(a[i]->read(), "sent before there was an element");
  }
}

void calls() {
  const auto a = create_array<Log>(range<int>{5});
  for (int i = 0; i < 5; ++i) {
    check(call(a[i], urgent)->slow(2) == 2 && call(a[i], background)->slow(3) == 3 &&
              call(a[i], priority::normal)->slow(1) == 1,
          "calls");
    auto first = start(a[i], background)->read();
    auto second = start(a[i], urgent)->slow(4);
    check(second.get() == 4 && first.get().empty(), "futures");
    thrown<std::out_of_range>("an urgent call", [&] { call(a[i], urgent)->fail(); });
    thrown<std::out_of_range>("one in the background", [&] { call(a[i], background)->fail(); });
    check(try_post(a[i], urgent)->add("") && try_post(a[i], background)->add(""), "there is room");
  }
  for (const priority p : {urgent, background})
    check_contains(thrown<deadlock_error>("a circle", [&] { a[1]->around(1, p); }), "Log::around");
  quiescence(a);
  destroy(a[2]);
  thrown<process_gone>("destroyed", [&] { call(a[2], urgent)->add(""); });
  thrown<process_gone>("destroyed", [&] { call(a[2], background)->add(""); });
}

void many() {
  const auto a = create_array<Log>(range<int>{3});
  for (int i = 0; i < 3000; ++i) post(a[i % 3], i % 2 == 0 ? urgent : background)->add("x");
  const std::string large(100'000, 'y');
  for (int i = 0; i < 3; ++i)
    for (const priority p : {urgent, background}) post(a[i], p)->add(large);
  quiescence(a);
  for (int i = 0; i < 3; ++i) check(a[i]->read().size() == 201'000, "all have come");
}

void ends() {
  const auto a = create_array<Log>(range<int>{5});
  for (int i = 0; i < 5; ++i) {
    post(a[i])->slow(1000);
    for (const priority level : {urgent, background}) post(a[i], level)->add("at the end");
  }
}

using priorities = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(priorities);
TEST_P(priorities, hold_in_the_mailboxes_of_elements) { EXPECT_EQ(wrong_in("mailboxes"), ""); }
TEST_P(priorities, put_what_waits_in_order) { EXPECT_EQ(wrong_in("waiting"), ""); }
TEST_P(priorities, keep_the_order_of_each_level) { EXPECT_EQ(wrong_in("afar"), ""); }
TEST_P(priorities, follow_elements_that_move) { EXPECT_EQ(wrong_in("moving"), ""); }
TEST_P(priorities, hold_for_messages_that_come_too_early) { EXPECT_EQ(wrong_in("early"), ""); }
TEST_P(priorities, hold_for_calls_and_futures) { EXPECT_EQ(wrong_in("calls"), ""); }
TEST_P(priorities, lose_no_message) { EXPECT_EQ(wrong_in("many"), ""); }
TEST_P(priorities, end_with_the_program) { EXPECT_EQ(wrong_in("ends"), ""); }

const orrery::testing::scenarios_of_file of_this({{"mailboxes", mailboxes},
                                                  {"waiting", waiting},
                                                  {"afar", afar},
                                                  {"moving", moving},
                                                  {"early", come_early},
                                                  {"calls", calls},
                                                  {"many", many},
                                                  {"ends", ends}});

}  // namespace priorities_tests
}  // namespace orrery
