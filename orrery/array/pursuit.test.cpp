// SPDX-License-Identifier: Apache-2.0
// Elements that move in each method: how far messages follow them (home_queue.hpp).
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <map>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace pursuit_tests {

using testing::in_world;

struct Nomad;
ORRERY_PROCESS(Nomad, step, ordered, hear, ask, contribute_now, total, heard, bad, rest);
struct Nomad : element<Nomad> {
  static constexpr bool keep_order(std::string_view method) { return method == "ordered"; }
  void move_on() {
    if (!rests) migrate_to((this_pe() + 1 + static_cast<std::uint32_t>(this_index()) % 3) % world_pes());
  }
  void step(int n) {
    sum_of += n;
    move_on();
  }
  void ordered(std::uint32_t from, int n) {
    if (n != last[from] + 1) ++wrong;
    last[from] = n;
    move_on();
  }
  void hear(int n) {
    broadcasts.push_back(n);
    move_on();
  }
  int ask(int n) {
    move_on();
    return n;
  }
  void contribute_now(const result_target& t) {
    contribute(1, sum, t);
    move_on();
  }
  void rest(bool now) { rests = now; }
  int total() const { return sum_of; }
  std::vector<int> heard() const { return broadcasts; }
  int bad() const { return wrong; }
  template <class A>
  void serialize(A& a) {
    a & sum_of & broadcasts & last & wrong & rests;
  }
  int sum_of = 0;
  std::vector<int> broadcasts;
  std::map<std::uint32_t, int> last;
  int wrong = 0;
  bool rests = false;
};

struct work {
  int elements = 0;
  int messages = 0;  // from each PE to each element
  bool in_order = false;
  template <class A>
  void serialize(A& a) {
    a & elements & messages & in_order;
  }
};

void send_all(array<Nomad> a, work w) {
  for (int n = 1; n <= w.messages; ++n) {
    for (int i = 0; i < w.elements; ++i) {
      if (w.in_order) {
        post(a[i])->ordered(this_pe(), n);
      } else {
        post(a[i])->step(n);
      }
    }
    if (n % 16 == 0) yield();
  }
}

// Everything is exact while elements move in each method, and broadcasts and reductions run.
void chase(work w, bool packed = false) {
  constexpr int rounds = 3;
  const auto a = create_array<Nomad>(range<int>{w.elements}, {.name = "nomads", .always_serialize = packed});
  std::vector<future<void>> senders;
  for (std::uint32_t p = 0; p < world_pes(); ++p) senders.push_back(start_call<&send_all>(pe(p), a, w));
  for (int k = 0; k < rounds; ++k) {
    auto [target, all] = expect_result<int>();
    post(a)->hear(k);
    post(a)->contribute_now(target);
    EXPECT_EQ(a[k % w.elements]->ask(k), k);
    EXPECT_EQ(all.get(), w.elements);
  }
  for (auto& s : senders) s.get();
  quiescence(a);
  post(a)->rest(true);
  quiescence(a);
  const int pes = static_cast<int>(world_pes());
  for (int i = 0; i < w.elements; ++i) {
    if (w.in_order) {
      EXPECT_EQ(a[i]->bad(), 0) << i;
    } else {
      EXPECT_EQ(a[i]->total(), pes * w.messages * (w.messages + 1) / 2) << i;
    }
    EXPECT_EQ(a[i]->heard(), (std::vector<int>{0, 1, 2})) << i;
  }
  // They rest, and order is as ever: nothing waits at a home any more.
  for (int i = 0; i < w.elements; ++i)
    for (int n = 1; n <= 3; ++n) post(a[i])->hear(n);
  for (int i = 0; i < w.elements; ++i) EXPECT_EQ(a[i]->heard(), (std::vector<int>{0, 1, 2, 1, 2, 3})) << i;
  destroy(a);
}

// Elements that move in each broadcast, and send each other messages before.
struct Pilgrim;
ORRERY_PROCESS(Pilgrim, send, hear, heard);
struct Pilgrim : element<Pilgrim> {
  static constexpr int all = 6;
  static constexpr int rounds = 30;
  void send() {
    for (int k = 0; k < 2; ++k)
      for (int d = 1; d <= 2; ++d) post(this_array()[(this_index() + d) % all])->hear();
    migrate_to((this_pe() + 1 + static_cast<std::uint32_t>(this_index())) % world_pes());
  }
  void hear() { ++count; }
  int heard() const { return count; }
  template <class A>
  void serialize(A& a) {
    a & count;
  }
  int count = 0;
};

void wander() {
  const auto a = create_array<Pilgrim>(range<int>{Pilgrim::all});
  for (int k = 0; k < Pilgrim::rounds; ++k) post(a)->send();
  quiescence(a);
  for (int i = 0; i < Pilgrim::all; ++i) EXPECT_EQ(a[i]->heard(), 4 * Pilgrim::rounds) << i;
  destroy(a);
}

std::uint64_t hops_of(const testing::statistics& all) {
  return std::accumulate(all.begin(), all.end(), std::uint64_t{0}, [](auto n, const auto& c) { return n + c.hops; });
}

struct Taker;
ORRERY_PROCESS(Taker, take, give, go, get, place);
struct Taker : element<Taker> {
  void take(int n) { got += n; }
  void give(const result_target& t) { contribute(1, sum, t); }
  void go(std::uint32_t to) { migrate_to(to); }
  int get() const { return got; }
  std::uint32_t place() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & got;
  }
  int got = 0;
};
constexpr int takers = 16;
array<Taker> make_takers() { return create_array<Taker>(range<int>{takers}, {.name = "takers"}); }
void send_much(array<Taker> a) {
  for (int k = 0; k < 20 * takers; ++k) (void)a[k % takers]->get();
}

// The result of a reduction comes from its root, here PE 1, which has sent much and so has high
// numbers. If it came in the name of PE 0, that would take the news of where the element is for an
// answer to a message of its own that it has not sent yet, and hear no other until then.
TEST(pursuit, results_of_reductions_come_in_the_name_of_the_pe_that_sends_them) {
  in_world(4, [] {
    const auto a = call<&make_takers>(pe(1));
    call<&send_much>(pe(1), a);
    for (int i = 0; i < takers; ++i) {
      const std::uint32_t at = a[i]->place();
      a[i]->go(at == 2 ? 3 : 2);
      quiescence();
    }
    for (int i = 0; i < takers; ++i) {
      post(a)->give(result_to<&Taker::take>(a[i]));
      quiescence();
      EXPECT_EQ(a[i]->get(), takers);
    }
    destroy(a);
  });
}

// By hand with ORRERY_TEST_ELEMENTS=500: 75,000 messages and 1,500 more, four times.
TEST(pursuit, is_bounded_where_elements_move_in_each_method) {
  in_world(2, [] {});
  const auto elements = static_cast<int>(testing::number_from("ORRERY_TEST_ELEMENTS", 20));
  const int messages = elements == 20 ? 20 : 25;
  for (int seed = 1; seed <= 2; ++seed)
    for (const bool in_order : {false, true}) {
      const auto all = testing::in_simulation("machines=3,pes=2,jitter=10us,seed=" + std::to_string(seed),
                                              [&] { chase({elements, messages, in_order}); });
      const double each = static_cast<double>(hops_of(all)) / (6 * elements * messages);
      RecordProperty("hops_" + std::to_string(seed) + (in_order ? "_in_order" : ""), std::to_string(each));
      EXPECT_LT(each, 16) << "hops for each message, seed " << seed << (in_order ? ", in order" : "");
    }
}
TEST(pursuit, ends_on_threads_and_packed) {
  for (const std::uint32_t pes : {1U, 2U, 3U})
    for (const bool in_order : {false, true}) in_world(pes, [&] { chase({20, 30, in_order}, pes == 3); });
}
// A message whose turn it was waited for a probe that waited at the home for its own turn.
TEST(pursuit, ends_where_senders_move_too) {
  in_world(13, [] { wander(); });
  for (const std::uint32_t machines : {7U, 13U, 17U})
    for (int seed = 1; seed <= 5; ++seed)
      testing::in_simulation("machines=" + std::to_string(machines) + ",pes=1,jitter=9us,seed=" + std::to_string(seed),
                             [] { wander(); });
}
TEST(pursuit, of_elements_that_end_is_answered) {
  in_world(2, [] {});
  for (int seed = 1; seed <= 5; ++seed)
    testing::in_simulation("machines=3,pes=2,jitter=10us,seed=" + std::to_string(seed), [] {
      const auto a = create_array<Nomad>(range<int>{10}, {.name = "nomads"});
      std::vector<future<int>> asked;
      for (int n = 0; n < 40; ++n)
        for (int i = 0; i < 10; ++i) {
          asked.push_back(start(a[i])->ask(n));
          if (n == 30) post_destroy(a[i]);
        }
      int answered = 0;
      int gone = 0;
      for (auto& f : asked) try {
          (void)f.get();
          ++answered;
        } catch (const process_gone&) {
          ++gone;
        }
      EXPECT_EQ(answered + gone, 400);
      EXPECT_GT(gone, 0);
      quiescence(a);
      for (int i = 0; i < 10; ++i) a.insert(i);
      for (int i = 0; i < 10; ++i) EXPECT_EQ(a[i]->ask(i), i);
      destroy(a);
    });
}

}  // namespace pursuit_tests
}  // namespace orrery
