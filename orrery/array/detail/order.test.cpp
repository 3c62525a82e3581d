// SPDX-License-Identifier: Apache-2.0
// Order that migrations do not disturb: everybody sends numbered messages to everybody while all
// move, end and begin again.
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace order_tests {

using testing::in_world;
using testing::what_is_thrown;

// The messages sent, by sender, and those that came in another order. Shared by the threads of the
// test.
struct order_book {
  std::mutex mutex;
  // sender, index -> number of the last
  std::map<std::pair<std::uint64_t, int>, std::uint64_t> sent;
  std::vector<std::string> wrong;
  std::atomic<std::uint64_t> names{0};
};
order_book* book = nullptr;

constexpr int fixed = 8;  // elements that are there all the time
constexpr int mortal = 6;  // of each driver, which come and go

// A number for the next message of a sender to an index.
std::uint64_t next_number(std::uint64_t who, int to) {
  const std::lock_guard lock(book->mutex);
  return ++book->sent[{who, to}];
}

struct Talker;
ORRERY_PROCESS(Talker, strict, answer, relay, hop, late, seen, streams);
struct Talker : element<Talker> {
  static constexpr bool keep_order(std::string_view method) {
    return method == "strict" || method == "answer" || method == "(destructor)";
  }
  void strict(std::uint64_t who, std::uint64_t number) {
    const auto it = last.find(who);
    // One that comes after another with its index gets what was sent after that one had ended.
    const std::uint64_t before = it != last.end() ? it->second : this_index() < fixed ? 0 : number - 1;
    if (number != before + 1) {
      const std::lock_guard lock(book->mutex);
      book->wrong.push_back("element " + std::to_string(this_index()) + " got " + std::to_string(number) + " of " +
                            std::to_string(who) + " after " + std::to_string(before));
    }
    last[who] = number;
  }
  std::uint64_t answer(std::uint64_t who, std::uint64_t number) {
    strict(who, number);
    return number;
  }
  void relay(const std::vector<int>& to) {
    if (name == 0) name = ++book->names;
    for (const int i : to) post(this_array()[i])->strict(name, next_number(name, i));
  }
  void hop(std::uint32_t to) { migrate_to(to); }
  void late(int) {}
  std::map<std::uint64_t, std::uint64_t> seen() const { return last; }
  template <class A>
  void serialize(A& a) {
    a & name & last;
  }
  std::uint64_t name = 0;  // as a sender
  std::map<std::uint64_t, std::uint64_t> last;
};

void drive(array<Talker> a, std::uint64_t seed, std::uint32_t driver, std::uint32_t pes) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<int>(random() % n); };
  const std::uint64_t me = ++book->names;
  const auto anybody = [&] { return below(3) != 0 ? below(fixed) : fixed + below(mortal * pes); };
  std::map<int, bool> alive;
  for (int step = 0; step < 150; ++step) {
    const int what = below(100);
    if (what < 30) {
      const int to = anybody();
      post(a[to])->strict(me, next_number(me, to));
    } else if (what < 35) {
      const int to = below(fixed);
      const std::uint64_t n = next_number(me, to);
      EXPECT_EQ(a[to]->answer(me, n), n);
    } else if (what < 60) {
      std::vector<int> to;
      for (int k = 0; k < 10; ++k) to.push_back(anybody());
      post(a[below(fixed)])->relay(to);
    } else if (what < 85) {
      const auto to = static_cast<std::uint32_t>(below(pes));
      if (below(2) == 0) {
        post(a[below(fixed)])->hop(to);
      } else {
        post_migrate(a[below(fixed)], to);
      }
    } else if (what < 95) {
      const int i = fixed + static_cast<int>(driver) * mortal + below(mortal);
      if (alive[i]) {
        post(a[i])->relay({below(fixed), below(fixed)});
        post(a[i])->hop(static_cast<std::uint32_t>(below(pes)));
        post_destroy(a[i]);
        alive[i] = false;
      } else {
        for (bool made = false; !made;) try {
            a.insert_at(pe(static_cast<std::uint32_t>(below(pes))), i);
            made = true;
          } catch (const usage_error&) {  // its deletion is still under way
            yield();
          }
        alive[i] = true;
      }
    } else {
      yield();
    }
  }
}

std::size_t streams_here(array<Talker> a) {
  std::size_t n = 0;
  for (auto* c : detail::part_of<Talker, int>(detail::here_pe(), a.id()).cells())
    if (c->order != nullptr) n += c->order->in.all().size();
  return n;
}

struct setting {
  std::uint32_t pes;
  bool packed;
  std::uint32_t branching;
  std::uint32_t homes = 1;
};

void compare(const array<Talker>& a) {
  const std::lock_guard lock(book->mutex);
  for (int i = 0; i < fixed; ++i) {
    const auto seen = a[i]->seen();
    for (const auto& [key, number] : book->sent) {
      if (key.second != i) continue;
      const auto it = seen.find(key.first);
      EXPECT_EQ(it != seen.end() ? it->second : 0, number) << "messages of " << key.first << " to " << i;
    }
  }
  for (const auto& w : book->wrong) ADD_FAILURE() << w;
}

void chaos(setting s, std::uint64_t seed) {
  order_book pages;
  book = &pages;
  ::testing::internal::CaptureStderr();  // messages to elements that have ended are reported there
  in_world(s.pes, [&] {
    std::mt19937_64 random(seed);
    auto a = create_array<Talker>(range<int>{fixed},
                                  {.name = "talkers", .homes = s.homes, .always_serialize = s.packed, .cached = 6});
    for (int round = 0; round < 4 && !::testing::Test::HasFailure(); ++round) {
      std::vector<future<void>> running;
      for (std::uint32_t k = 0; k < s.pes; ++k) running.push_back(start_call<&drive>(pe(k), a, random(), k, s.pes));
      for (auto& f : running) f.get();
      quiescence(a);
      compare(a);
      // Those that have ended are not remembered.
      for (int i = 0; i < mortal * static_cast<int>(s.pes); ++i) post_destroy(a[fixed + i]);
      quiescence(a);
      std::size_t streams = 0;
      for (std::uint32_t k = 0; k < s.pes; ++k) streams += call<&streams_here>(pe(k), a);
      EXPECT_LE(streams, fixed * (fixed + s.pes));
    }
    destroy(a);
  });
  (void)::testing::internal::GetCapturedStderr();
}

class ordered_on : public ::testing::TestWithParam<std::tuple<setting, int>> {};

TEST_P(ordered_on, threads_messages_come_in_order_though_all_move) {
  std::uint64_t seed = testing::test_seed();
  const setting& s = std::get<0>(GetParam());
  // More PEs than cores take turns: each run takes ten times as long.
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 2 : s.pes > 2 ? 20 : 100);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    chaos(s, seed);
  }
}

INSTANTIATE_TEST_SUITE_P(array_chaos, ordered_on,
                         ::testing::Combine(::testing::Values(setting{1, false, 4}, setting{2, false, 4},
                                                              setting{2, true, 2}, setting{3, false, 1},
                                                              setting{4, true, 2, 3}),
                                            ::testing::Range(0, testing::slowed_down ? 1 : 3)));

// One in twenty of these waited for ever: a message that asked, sent after one that had waited,
// went straight to the element, which saw no reason to answer. (And an answer to a message from
// before a PE had forgotten the place was taken for the one that it had asked for since.)
TEST(array_order, who_asks_another_home_is_answered) {
  for (int i = 0; i < (testing::slowed_down ? 5 : 60) && !HasFailure(); ++i) chaos({4, true, 2, 3}, 1079441095);
}

TEST(array_order, a_sender_that_moves_is_not_overtaken_by_itself) {
  order_book pages;
  book = &pages;
  in_world(3, [] {
    auto a = create_array<Talker>(range<int>{4}, {.home = placement_map<int>::cyclic(4)});
    for (int round = 0; round < 200; ++round) {
      post(a[0])->relay({1, 1, 2, 3});
      post(a[0])->hop(static_cast<std::uint32_t>(round) % 3);
      post(a[1])->hop(static_cast<std::uint32_t>(round / 2) % 3);
    }
    quiescence(a);
    EXPECT_EQ(a[1]->seen().begin()->second, 400U);
    EXPECT_EQ(a[2]->seen().begin()->second, 200U);
  });
  EXPECT_TRUE(pages.wrong.empty()) << pages.wrong.front();
}

TEST(array_order, early_messages_that_are_too_many_do_not_stop_those_after_them) {
  order_book pages;
  book = &pages;
  ::testing::internal::CaptureStderr();
  in_world(2, [] {
    auto a = create_array<Talker>(
        array_options<int>{.name = "talkers", .home = placement_map<int>::cyclic(64), .early_bytes = 16 << 10});
    for (const int i : {40, 41}) {
      int refused = 0;
      std::vector<future<std::uint64_t>> calls;
      for (std::uint64_t n = 1; n <= 1000; ++n) calls.push_back(start(a[i])->answer(7, n));
      quiescence();
      a.insert_at(pe(static_cast<std::uint32_t>(i + 1) % 2), i);
      calls.push_back(start(a[i])->answer(7, 1001));
      for (auto& c : calls) try {
          (void)c.get();
        } catch (const mailbox_full&) {
          ++refused;
        }
      EXPECT_GT(refused, 0);
      EXPECT_LT(refused, 1000);
      EXPECT_EQ(a[i]->seen().at(7), 1001U);
    }
  });
  (void)::testing::internal::GetCapturedStderr();
}

TEST(array_order, the_index_of_an_element_that_has_ended_can_be_used_again) {
  order_book pages;
  book = &pages;
  in_world(2, [] {
    auto a = create_array<Talker>(array_options<int>{.name = "talkers", .deleted = 2});
    for (int round = 0; round < 20; ++round)
      for (int i = 10; i < 20; ++i) {
        a.insert_at(pe(static_cast<std::uint32_t>(round + i) % 2), i);
        const std::uint64_t n = next_number(1, i);
        EXPECT_EQ(a[i]->answer(1, n), n);
        post_destroy(a[i]);  // in order, too: it does not end before
        EXPECT_THROW((void)a[i]->answer(1, next_number(1, i)), process_gone);
        quiescence(a);
      }
  });
  EXPECT_TRUE(pages.wrong.empty()) << pages.wrong.front();
}

struct Phoenix;
ORRERY_PROCESS(Phoenix, rise);
struct Phoenix : element<Phoenix> {
  static constexpr bool keep_order(std::string_view) { return true; }
  static constexpr early when_early(std::string_view) { return early::create_at_home; }
  int rise() { return ++risen; }
  int risen = 0;
};

TEST(array_order, an_index_whose_end_is_not_remembered_can_be_used_again) {
  for (const std::uint32_t pes : {1U, 3U})
    in_world(pes, [] {
      auto a = create_array<Phoenix>(array_options<int>{.name = "phoenixes", .deleted = 0});
      for (int i = 0; i < 6; ++i)
        for (int life = 0; life < 3; ++life) {
          EXPECT_EQ(a[i]->rise(), 1);
          post_destroy(a[i]);
        }
    });
}

}  // namespace order_tests
}  // namespace orrery
