// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/own_index.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace array_tests {

using testing::in_world;
using testing::what_is_thrown;

struct longer_op {
  std::string operator()(std::string a, const std::string& b) const { return a.size() < b.size() ? b : a; }
};
struct Counter;
ORRERY_PROCESS(Counter, add, get, where, log, entries, name, step, move, done, number, list, longest);
struct Counter : element<Counter> {
  Counter() = default;
  explicit Counter(int start) : value(start) {}
  void add(int x) { value += x; }
  int get() const { return value; }
  std::uint32_t where() const { return this_pe(); }
  void log(int x) { seen.push_back(x); }
  std::vector<int> entries() const { return seen; }
  std::string name(const std::string& prefix) const { return prefix + std::to_string(this_index()); }
  void step(const result_target& t) { contribute(value, sum, t); }
  void number(const result_target& t) { contribute(this_index(), maximum, t); }
  void list(const result_target& t) { contribute(std::vector{this_index()}, concat, t); }
  void longest(const result_target& t) {
    contribute(std::string(static_cast<std::size_t>(this_index()), 'x'), longer_op{}, t);
  }
  void move(std::uint32_t pe) { migrate_to(pe); }
  void done(int result) { seen.push_back(result); }
  template <class A>
  void serialize(A& a) {
    a & value & seen;
  }
  int value = 0;
  std::vector<int> seen;
};

struct Traveller;
ORRERY_PROCESS(Traveller, leave, add, sums, where);
struct Traveller : element<Traveller> {
  // Its own messages are in its mailbox when it goes.
  void leave(std::uint32_t to, int messages) {
    std::vector<int> values(40, 3);
    for (int i = 0; i < messages; ++i) post(this_array()[this_index()])->add(values);
    values.assign(40, 0);
    migrate_to(to);
  }
  void add(std::span<const int> values) { all.push_back(std::accumulate(values.begin(), values.end(), 0L)); }
  std::vector<long> sums() const { return all; }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & all;
  }
  std::vector<long> all;
};

struct Word {
  static constexpr early when_early(std::string_view method) {
    return method == "link"             ? early::create_at_home
           : method == "link_from_here" ? early::create_at_sender
                                        : early::refuse;
  }
  void link(int) { ++n; }
  void link_from_here(int) { ++n; }
  int links() const { return n; }
  std::uint32_t where() const { return this_pe(); }
  int n = 0;
};
ORRERY_PROCESS(Word, link, link_from_here, links, where);

struct Mayfly;
ORRERY_PROCESS(Mayfly, live, last, lived);
struct Mayfly : element<Mayfly> {
  void live() { ++days; }
  void last(std::uint32_t pe) {
    post_destroy(this_array()[this_index()]);
    migrate_to(pe);
  }
  int lived() const { return days; }
  template <class A>
  void serialize(A& a) {
    a & days;
  }
  int days = 0;
};

TEST(array, an_element_can_destroy_itself) {
  for (const bool packed : {false, true})
    in_world(2, [&] {
      auto a = create_array<Mayfly>(range<int>{6}, {.name = "flies", .always_serialize = packed});
      for (int i = 0; i < 6; ++i) {
        post(a[i])->live();
        post(a[i])->last(static_cast<std::uint32_t>(i % 2));
      }
      quiescence(a);
      for (int i = 0; i < 6; ++i)
        EXPECT_NE(what_is_thrown<process_gone>([&] { (void)a[i]->lived(); }).find("flies[" + std::to_string(i) + "]"),
                  std::string::npos);
      a.insert(3);
      EXPECT_EQ(a[3]->lived(), 0);
    });
}

TEST(array, an_array_ends_whose_elements_are_ending) {
  for (const std::uint32_t remembered : {0U, 1U << 16})
    in_world(2, [&] {
      auto a = create_array<Mayfly>(range<int>{6}, {.name = "flies", .deleted = remembered});
      for (int i = 0; i < 6; ++i) post_destroy(a[i]);
      destroy(a);
    });
}

struct Sleeper;
ORRERY_PROCESS(Sleeper, nap, take, taken);
struct Sleeper : element<Sleeper> {
  void nap() { sleep_for(std::chrono::milliseconds(100)); }
  void take(int) { ++n; }
  int taken() const { return n; }
  int n = 0;
};

void ask(array<Sleeper> a, int i) { (void)a[i]->taken(); }

// `passed`: the home has passed on a message of another PE before it sends one itself.
void expect_to_be_held_back(int home, bool passed) {
  std::uint64_t most = 0;
  in_world({.pes = 3, .pe = {.mailbox_bytes = 64 << 10, .ring_bytes = 32 << 10}}, [&] {
    auto a = create_array<Sleeper>(array_options<int>{.home = placement_map<int>::cyclic(3)});
    a.insert_at(pe(1), home);
    if (passed) call<&ask>(pe(2), a, home);
    post(a[home])->nap();
    int sent = 0;
    for (int i = 0; i < 50'000; ++i) {
      if (try_post(a[home])->take(1)) ++sent;
      if (i % 100 == 0) yield();
    }
    EXPECT_EQ(a[home]->taken(), sent);
    most = stats(1).mailbox_high;
  });
  EXPECT_LE(most, (64 << 10) + 8 * (32 << 10)) << "home at " << home;
}

TEST(array, an_element_that_is_busy_holds_back_who_sends_to_it_its_home_included) {
  for (const int home : {0, 1})
    for (const bool passed : {false, true}) expect_to_be_held_back(home, passed);
}

TEST(array, an_index_is_free_when_its_element_was_destroyed) {
  testing::in_simulation("machines=4,jitter=20us,seed=1", [] {
    auto a = create_array<Mayfly>();
    for (int i = 0; i < 200; ++i) {
      for (std::uint32_t life = 0; life < 3; ++life) {
        a.insert_at(pe((static_cast<std::uint32_t>(i) + life) % 4), i);
        a[i]->live();
        if (life == 1) start_migrate(a[i], static_cast<std::uint32_t>(i) % 4).get();
        destroy(a[i]);
      }
    }
    EXPECT_EQ(a.local_size(), 0U);
  });
}

TEST(array, what_was_sent_before_a_post_destroy_is_executed) {
  in_world(2, [] {
    auto a = create_array<Mayfly>(range<int>{4});
    for (int i = 0; i < 4; ++i) {
      post(a[i])->live();
      auto lived = start(a[i])->lived();
      post_destroy(a[i]);
      EXPECT_EQ(lived.get(), 1);
    }
    quiescence(a);
    EXPECT_EQ(a.local_size(), 0U);
  });
}

TEST(array, keeps_a_bounded_number_of_messages_for_an_element_that_was_not_created) {
  in_world(2, [] {
    auto a = create_array<Counter>(
        array_options<int>{.name = "grid", .home = placement_map<int>::cyclic(4), .early_bytes = 32 << 10});
    for (const int i : {0, 1, 2}) {  // their homes are this PE, the other one, and this one again
      constexpr int calls = 3000;
      std::vector<future<int>> f;
      for (int k = 0; k < calls; ++k) f.push_back(start(a[i])->get());
      quiescence();
      a.insert(i, 7);
      int answered = 0;
      int refused = 0;
      for (auto& x : f) {
        try {
          answered += x.get() == 7;
        } catch (const mailbox_full& e) {
          EXPECT_NE(std::string(e.what()).find("grid[" + std::to_string(i) + "]"), std::string::npos) << e.what();
          ++refused;
        }
      }
      EXPECT_GT(answered, 100) << i;
      EXPECT_GT(refused, 100) << i;
      EXPECT_EQ(answered + refused, calls) << i;
    }
  });
}

TEST(array, calls_reach_the_element_of_an_index) {
  in_world(2, [] {
    auto a = create_array<Counter>(range<int>{10}, {}, {}, 5);
    for (int i = 0; i < 10; ++i) a[i]->add(i);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(a[i]->get(), 5 + i);
    EXPECT_EQ(a[7]->name("n"), "n7");
    EXPECT_EQ(start(a[3])->get().get(), 8);
    destroy(a);
  });
}

TEST(array, elements_are_inserted_one_by_one) {
  in_world(2, [] {
    auto a = create_array<Counter>();
    for (int i = 0; i < 20; ++i) a.insert(i, i * i);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(a[i]->get(), i * i);
    a.insert_at(pe(1), 100, 1);
    a.insert_at(pe(0), 101, 2);
    EXPECT_EQ(a[100]->where(), 1U);
    EXPECT_EQ(a[101]->where(), 0U);
  });
}

TEST(array, a_second_element_at_an_index_is_refused) {
  in_world(2, [] {
    auto a = create_array<Counter>({.name = "grid"});
    for (int i = 0; i < 4; ++i) {
      a.insert(i, 1);
      EXPECT_EQ(what_is_thrown<usage_error>([&] { a.insert(i, 2); }).find("grid[" + std::to_string(i) + "]: there is"),
                0U);
    }
  });
}

TEST(array, messages_to_a_deleted_element_are_errors) {
  in_world(2, [] {
    auto a = create_array<Counter>({.name = "grid"});
    for (int i = 0; i < 4; ++i) {
      a.insert(i, 1);
      EXPECT_EQ(a[i]->get(), 1);
      destroy(a[i]);
      EXPECT_NE(what_is_thrown<process_gone>([&] { a[i]->get(); }).find("grid[" + std::to_string(i) + "]"),
                std::string::npos);
      a.insert(i, 3);
      EXPECT_EQ(a[i]->get(), 3);
    }
  });
}

TEST(array, early_messages_wait_for_their_element) {
  in_world(2, [] {
    auto a = create_array<Counter>();
    std::vector<future<int>> f;
    for (int i = 0; i < 8; ++i) {
      post(a[i])->add(1);
      f.push_back(start(a[i])->get());
    }
    for (int i = 0; i < 8; ++i) a.insert(i, 10);
    for (auto& x : f) EXPECT_EQ(x.get(), 11);
  });
}

TEST(array, an_element_is_reached_wherever_it_migrates) {
  for (const bool packed : {false, true})
    in_world(3, [&] {
      auto a = create_array<Counter>(range<int>{6}, {.always_serialize = packed}, {}, 0);
      for (int round = 0; round < 30; ++round)
        for (int i = 0; i < 6; ++i) {
          const auto to = static_cast<std::uint32_t>((round + i) % 3);
          start_migrate(a[i], to).get();
          a[i]->add(1);
          EXPECT_EQ(a[i]->where(), to);
        }
      for (int i = 0; i < 6; ++i) EXPECT_EQ(a[i]->get(), 30);
    });
}

// Broadcasts that wait in its mailbox may be more than a record of a ring holds.
struct Porter;
ORRERY_PROCESS(Porter, go, take, taken, where);
struct Porter : element<Porter> {
  void go(std::uint32_t to) { migrate_to(to); }
  void take(const std::vector<double>& v) { got += v.size(); }
  std::size_t taken() const { return got; }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & got;
  }
  std::size_t got = 0;
};
TEST(array, an_element_takes_along_broadcasts_of_any_size) {
  for (const bool packed : {false, true})
    in_world(2, [&] {
      const std::uint32_t from = this_pe();
      const auto a = create_array<Porter>(
          range<std::int32_t>{3},
          {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 0U; }),
           .always_serialize = packed});
      ASSERT_EQ(from, 0U);
      post(a[1])->go(1);
      post(a)->take(std::vector<double>(4000));
      for (int k = 0; k < 10; ++k) post(a)->take(std::vector<double>(128));
      quiescence(a);
      for (std::int32_t i = 0; i < 3; ++i) {
        EXPECT_EQ(a[i]->taken(), 4000U + 10U * 128U) << i;
        EXPECT_EQ(a[i]->where(), i == 1 ? 1U : 0U);
      }
    });
}

TEST(array, spans_that_wait_for_an_element_go_where_it_goes) {
  in_world(2, [] {
    const auto a = create_array<Traveller>(range<int>{1});
    start(a[0])->leave(1 - a[0]->where(), 20).get();
    EXPECT_EQ(a[0]->sums(), (std::vector<long>(20, 40 * 3)));
    destroy(a);
  });
}

TEST(array, a_reduction_gives_the_sum_of_all_contributions) {
  in_world(3, [] {
    auto a = create_array<Counter>(range<int>{100}, {}, {}, 2);
    for (int round = 1; round < 20; ++round) {
      auto [target, result] = expect_result<int>();
      post(a)->step(target);
      EXPECT_EQ(result.get(), 200 * round);
      post(a)->add(2);
    }
  });
}

TEST(array, a_reduction_ends_where_all_elements_of_a_pe_have_contributed_elsewhere) {
  for (const bool packed : {false, true})
    in_world(2, [&] {
      auto a = create_array<Counter>(range<int>{2}, {.always_serialize = packed}, {}, 3);
      start_migrate(a[0], 0).get();
      start_migrate(a[1], 1).get();
      auto [first_target, first] = expect_result<int>();
      post(a)->step(first_target);
      EXPECT_EQ(first.get(), 6);
      auto [target, result] = expect_result<int>();
      a[0]->step(target);
      // PE 1 is never without elements, and never told that the reduction has begun
      start_migrate(a[0], 1).get();
      start_migrate(a[1], 0).get();
      a[1]->step(target);
      quiescence();
      EXPECT_TRUE(result.ready());
    });
}

TEST(array, what_is_reduced_needs_no_sum) {
  in_world(2, [] {
    auto a = create_array<Counter>(range<int>{5});
    auto [list_target, list] = expect_result<std::vector<int>>();
    post(a)->list(list_target);
    std::vector<int> all = list.get();
    std::ranges::sort(all);
    EXPECT_EQ(all, (std::vector{0, 1, 2, 3, 4}));
    auto [longest_target, longest] = expect_result<std::string>();
    post(a)->longest(longest_target);
    EXPECT_EQ(longest.get(), "xxxx");
  });
}

TEST(array, a_message_creates_its_element_where_the_class_says_so) {
  in_world(2, [] {
    auto words = create_array<Word, std::string>();
    for (int round = 0; round < 3; ++round)
      for (const char* w : {"in", "the", "beginning", "was", "the", "word"}) post(words[w])->link(round);
    quiescence();
    EXPECT_EQ(words["the"]->links(), 6);
    EXPECT_EQ(words["word"]->links(), 3);
    EXPECT_THROW((void)words["end"]->links(), process_gone);
    post(words["end"])->link_from_here(1);
    EXPECT_EQ(words["end"]->where(), this_pe());
  });
}

TEST(array, indices_are_of_any_serializable_type) {
  in_world(2, [] {
    auto tree = create_array<Word, bit_path>();
    const bit_path leaf = bit_path("1011").child(2, 2);
    tree.insert(leaf);
    tree.insert(leaf.parent(2));
    post(tree[leaf])->link(1);
    EXPECT_EQ(tree[bit_path("101110")]->links(), 1);
    EXPECT_EQ(tree[bit_path("1011")]->links(), 0);
    auto cube = create_array<Word, index<6>>();
    cube.insert({1, 2, 3, -4, 5, 6});
    post(cube[1, 2, 3, -4, 5, 6])->link(1);
    EXPECT_EQ((cube[1, 2, 3, -4, 5, 6]->links()), 1);
  });
}

TEST(array, a_map_of_the_user_says_where_elements_are) {
  in_world(3, [] {
    auto a = create_array<Counter>(
        range<int>{30},
        {.home = placement_map<int>([](const int& i, std::uint32_t) { return static_cast<std::uint32_t>(i / 10); })});
    for (int i = 0; i < 30; ++i) EXPECT_EQ(a[i]->where(), static_cast<std::uint32_t>(i / 10));
    auto b = create_array<Counter>(range<int>{31}, {}, placement_map<int>::cyclic(31));
    for (int i = 0; i < 31; ++i) EXPECT_EQ(b[i]->where(), static_cast<std::uint32_t>(i % 3));
    auto c = create_array<Counter>(range<int>{31}, {.home = placement_map<int>::blocks(31)});
    for (int i = 1; i < 31; ++i) EXPECT_LE(c[i - 1]->where(), c[i]->where());
    EXPECT_EQ(c[30]->where(), 2U);
  });
}

// In worlds of many PEs they tell each other who makes what.
TEST(array, a_range_is_made_where_its_map_says_in_worlds_of_few_and_of_many_pes) {
  for (const std::uint32_t pes : {2U, 15U, 16U, 40U})
    testing::in_simulation("machines=" + std::to_string(pes), [&] {
      constexpr int n = 333;
      const auto user =
          placement_map<int>([](const int& i, std::uint32_t) { return static_cast<std::uint32_t>(i * i); });
      const auto check = [&](const array<Counter>& a, const placement_map<int>& map) {
        for (int i = 0; i < n; ++i) ASSERT_EQ(a[i]->where(), map(i, pes)) << i;
        EXPECT_THROW(a.insert(n / 2), usage_error);  // the home knows it, too
        auto [target, result] = expect_result<int>();
        post(a)->step(target);
        EXPECT_EQ(result.get(), n);
        destroy(a);
      };
      const placement_map<int> hashed;
      check(create_array<Counter>(range<int>{n}, {}, {}, 1), hashed);
      check(create_array<Counter>(range<int>{n}, {.home = user, .homes = 2}, {}, 1), user);
      check(create_array<Counter>(range<int>{n}, {.home = user}, hashed, 1), hashed);
      check(create_array<Counter>(range<int>{n}, {}, user, 1), user);
    });
}

TEST(array, the_result_of_a_reduction_can_be_a_message_to_elements) {
  in_world(2, [] {
    auto a = create_array<Counter>(range<int>{9}, {}, {}, 1);
    post(a)->step(result_to<&Counter::done>(a[4]));
    post(a)->step(result_to<&Counter::done>(a));
    quiescence();
    for (int i = 0; i < 9; ++i) EXPECT_EQ(a[i]->entries(), i == 4 ? (std::vector{9, 9}) : std::vector{9});
  });
}

TEST(array, places_that_are_not_used_any_more_are_forgotten) {
  in_world(2, [] {
    constexpr int n = 4000;
    auto a = create_array<Counter>(range<int>{n}, {.home = placement_map<int>::blocks(n), .cached = 64}, {}, 0);
    for (int round = 0; round < 2; ++round)
      for (int i = 0; i < n; ++i) {
        post(a[i])->add(1);
        if (i % 32 == 0) (void)a[i]->get();  // lets answers come
      }
    for (int i = 0; i < n; ++i) EXPECT_EQ(a[i]->get(), 2);
    auto& part = detail::part_of<Counter, int>(detail::here_pe(), a.id());
    EXPECT_LT(part.cached(), 1000U);
  });
}

// The sender still knows where the last element of the index was.
TEST(arrays, a_message_behind_a_creation_finds_an_index_that_was_used_before) {
  for (std::uint32_t homes = 1; homes <= 2; ++homes)
    for (int seed = 1; seed <= 60; ++seed)
      testing::in_simulation("machines=3,jitter=5us,seed=" + std::to_string(seed), [homes] {
        const auto a = create_array<Counter>(range<int>{0}, {.home = placement_map<int>::cyclic(3), .homes = homes});
        for (int life = 0; life < 4; ++life) {
          for (int i = 0; i < 6; ++i) a.post_insert(i);
          for (int i = 0; i < 6; ++i) post(a[i])->add(1);
          for (int i = 0; i < 6; ++i) EXPECT_EQ(a[i]->get(), 1);
          for (int i = 0; i < 6; ++i) start_migrate(a[i], static_cast<std::uint32_t>(i + life) % 3).get();
          for (int i = 0; i < 6; ++i) post(a[i])->add(1);
          if (life % 2 == 0)
            for (int i = 0; i < 6; ++i) EXPECT_EQ(a[i]->get(), 2);
          quiescence();
          for (int i = 0; i < 6; ++i) destroy(a[i]);
          quiescence();
        }
      });
}

}  // namespace array_tests
}  // namespace orrery
