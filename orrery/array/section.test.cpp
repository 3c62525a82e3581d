// SPDX-License-Identifier: Apache-2.0
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

namespace orrery {
namespace section_tests {

using testing::in_simulation;
using testing::in_world;

struct Member;
ORRERY_PROCESS(Member, hear, heard, give, give_all, hop, ping);
struct Member : element<Member> {
  void hear(int n, const std::string&) { got.push_back(n); }
  std::vector<int> heard() const { return got; }
  void give(section<Member> s, result_target t) { contribute(s, std::vector<std::int32_t>{this_index()}, concat, t); }
  void give_all(result_target t) { contribute(1, sum, t); }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  void ping() const {}
  template <class A>
  void serialize(A& a) {
    a & got;
  }
  std::vector<int> got;
};

std::vector<std::int32_t> every_third(std::int32_t n) {
  std::vector<std::int32_t> v;
  for (std::int32_t i = 0; i < n; i += 3) v.push_back(i);
  return v;
}
std::vector<std::int32_t> who_gives(const section<Member>& s) {
  auto [target, result] = expect_result<std::vector<std::int32_t>>();
  post(s)->give(s, target);
  auto all = result.get();
  std::ranges::sort(all);
  return all;
}

TEST(section, a_broadcast_reaches_its_members_and_nobody_else) {
  in_world(4, [] {
    const auto a = create_array<Member>(range<std::int32_t>{30});
    const auto s = create_section(a, every_third(30));
    for (int n = 0; n < 20; ++n) post(s)->hear(n, "text");
    quiescence();
    for (std::int32_t i = 0; i < 30; ++i) {
      const auto got = a[i]->heard();
      EXPECT_EQ(got.size(), i % 3 == 0 ? 20U : 0U) << i;
      EXPECT_TRUE(std::ranges::is_sorted(got)) << i;
    }
  });
}

TEST(section, a_reduction_adds_up_its_members_only) {
  in_world(3, [] {
    const auto a = create_array<Member>(range<std::int32_t>{100});
    const auto s = create_section(a, every_third(100), 2);
    for (int k = 0; k < 5; ++k) EXPECT_EQ(who_gives(s), every_third(100));
  });
}

// A value that counts how often it is written down.
struct Counted {
  std::int64_t value = 0;
  static inline std::atomic<int> written = 0;
  template <class A>
  void serialize(A& a) {
    if constexpr (std::is_same_v<A, writer>) ++written;
    a & value;
  }
  Counted& operator+=(const Counted& other) {
    value += other.value;
    return *this;
  }
};
struct Giver;
ORRERY_PROCESS(Giver, give);
struct Giver : element<Giver> {
  void give(section<Giver> s, result_target t) { contribute(s, Counted{this_index()}, sum, t); }
};

TEST(section, what_members_contribute_at_their_home_is_not_serialized) {
  in_world(1, [] {
    const auto a = create_array<Giver>(range<std::int32_t>{10});
    const auto s = create_section(a, std::vector<std::int32_t>{1, 2, 3, 4});
    auto [target, result] = expect_result<Counted>();
    Counted::written = 0;
    post(s)->give(s, target);
    EXPECT_EQ(result.get().value, 10);
    EXPECT_LE(Counted::written, 1);  // the result
  });
}

TEST(section, members_may_be_anywhere) {
  in_world(4, [] {
    const auto a = create_array<Member>(range<std::int32_t>{40});
    const auto s = create_section(a, every_third(40));
    for (std::uint32_t k = 0; k < 8; ++k) {
      for (std::int32_t i = 0; i < 40; ++i) post(a[i])->hop((static_cast<std::uint32_t>(i) + k) % 4);
      EXPECT_EQ(who_gives(s), every_third(40));
      post(s)->hear(static_cast<int>(k), "");
    }
    quiescence();
    for (const std::int32_t i : every_third(40)) EXPECT_EQ(a[i]->heard().size(), 8U);
  });
}

TEST(section, members_that_are_packed_on_their_way_stay_members) {
  in_world(2, [] {
    array_options<std::int32_t> o;
    o.always_serialize = true;
    const auto a = create_array<Member>(range<std::int32_t>{10}, o);
    const auto s = create_section(a, every_third(10));
    EXPECT_EQ(who_gives(s), every_third(10));
    for (std::int32_t i = 0; i < 10; ++i) start_migrate(a[i], 1).get();
    EXPECT_EQ(who_gives(s), every_third(10));
  });
}

TEST(section, a_member_that_has_ended_is_not_waited_for) {
  in_world(3, [] {
    const auto a = create_array<Member>(range<std::int32_t>{12});
    const auto s = create_section(a, every_third(12));
    EXPECT_EQ(who_gives(s), every_third(12));
    destroy(a[3]);
    a.insert(3);  // is another one
    EXPECT_EQ(who_gives(s), (std::vector<std::int32_t>{0, 6, 9}));
    post(s)->hear(1, "");
    quiescence();
    EXPECT_TRUE(a[3]->heard().empty());
  });
}

struct Sleeper;
ORRERY_PROCESS(Sleeper, nap, give);
struct Sleeper : element<Sleeper> {
  void nap() const { sleep_for(std::chrono::milliseconds(5)); }
  void give(section<Sleeper> s, result_target t) { contribute(s, 1, sum, t); }
};
TEST(section, a_member_that_ends_before_it_has_joined_is_not_waited_for) {
  for (const char* const world : {"pes=3", "machines=3"})
    in_simulation(world, [] {
      const auto a = create_array<Sleeper>(range<std::int32_t>{12});
      for (const std::int32_t i : {2, 5}) {
        post(a[i])->nap();
        post_destroy(a[i]);
      }
      const auto s = create_section(a, std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
      for (int k = 0; k < 3; ++k) {
        auto [target, result] = expect_result<int>();
        post(s)->give(s, target);
        EXPECT_EQ(result.get(), 4);
      }
      quiescence(a);
    });
}

TEST(section, a_contribution_counts_though_its_member_ends_before_the_others) {
  in_world(3, [] {
    const auto a = create_array<Member>(range<std::int32_t>{9});
    const auto s = create_section(a, every_third(9));
    auto [target, result] = expect_result<std::vector<std::int32_t>>();
    a[3]->give(s, target);
    destroy(a[3]);
    a[0]->give(s, target);
    EXPECT_FALSE(result.ready());
    a[6]->give(s, target);
    EXPECT_EQ(result.get().size(), 3U);
    EXPECT_EQ(who_gives(s), (std::vector<std::int32_t>{0, 6}));
  });
}

TEST(section, without_members_on_some_pes_reductions_go_on) {
  in_world(4, [] {
    const auto a = create_array<Member>(range<std::int32_t>{64});
    const auto s = create_section(a, range<std::int32_t>{64}, 1);  // a chain of agents
    for (std::int32_t i = 1; i < 64; ++i) {
      destroy(a[i]);
      if (i % 8 != 0) continue;
      EXPECT_EQ(who_gives(s).size(), static_cast<std::size_t>(64 - i));
    }
    EXPECT_EQ(who_gives(s), (std::vector<std::int32_t>{0}));
  });
}

TEST(section, several_sections_and_the_array_reduce_at_the_same_time) {
  in_world(2, [] {
    const auto a = create_array<Member>(range<std::int32_t>{20});
    const auto evens = create_section(a, std::vector<std::int32_t>{0, 2, 4, 6, 8});
    const auto low = create_section(a, std::vector<std::int32_t>{0, 1, 2, 3});
    auto [t1, r1] = expect_result<std::vector<std::int32_t>>();
    auto [t2, r2] = expect_result<std::vector<std::int32_t>>();
    auto [t3, r3] = expect_result<int>();
    post(low)->give(low, t2);
    post(a)->give_all(t3);
    post(evens)->give(evens, t1);
    EXPECT_EQ(r1.get().size(), 5U);
    EXPECT_EQ(r2.get().size(), 4U);
    EXPECT_EQ(r3.get(), 20);
  });
}

TEST(section, of_an_element_that_does_not_exist_names_it) {
  in_world(2, [] {
    array_options<std::int32_t> o;
    o.name = "field";
    const auto a = create_array<Member>(range<std::int32_t>{4}, o);
    try {
      (void)create_section(a, std::vector<std::int32_t>{1, 77});
      FAIL() << "a section of nobody";
    } catch (const usage_error& e) {
      EXPECT_NE(std::string(e.what()).find("field[77]"), std::string::npos) << e.what();
    }
    EXPECT_EQ(who_gives(create_section(a, std::vector<std::int32_t>{1})).size(), 1U);
  });
}

TEST(section, who_is_no_member_cannot_contribute) {
  in_world(2, [] {
    const auto a = create_array<Member>(range<std::int32_t>{4});
    const auto s = create_section(a, std::vector<std::int32_t>{1});
    auto [target, result] = expect_result<std::vector<std::int32_t>>();
    EXPECT_THROW(a[2]->give(s, target), usage_error);
    a[1]->give(s, target);
    EXPECT_EQ(result.get().size(), 1U);
  });
}

TEST(section, destroyed_leaves_its_members) {
  in_world(3, [] {
    const auto a = create_array<Member>(range<std::int32_t>{12});
    for (int k = 0; k < 3; ++k) {
      const auto s = create_section(a, every_third(12));
      EXPECT_EQ(who_gives(s), every_third(12));
      destroy(s);
      auto [target, result] = expect_result<std::vector<std::int32_t>>();
      EXPECT_THROW(a[0]->give(s, target), usage_error);
      a[0]->ping();
    }
  });
}

std::size_t known_on_pe(array<Member> a) {
  return detail::part_of<Member, std::int32_t>(detail::here_pe(), a.id()).table_size();
}
// Sections, members and indices come and go: what is known of those that were before has an end.
TEST(section, nothing_is_kept_of_members_and_sections_that_were) {
  const auto body = [](int rounds) {
    const auto a = create_array<Member>({.name = "members", .cached = 16, .deleted = 16});
    std::int32_t next = 0;
    const auto tables = [&] {
      std::size_t n = 0;
      for (std::uint32_t p = 0; p < world_pes(); ++p) n += call<&known_on_pe>(pe(p), a);
      return n;
    };
    std::size_t most = 0;
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::int32_t> some;
      for (int i = 0; i < 20; ++i) {
        a.insert(next);
        some.push_back(next++);
      }
      const auto s = create_section(a, some);
      post(s)->hear(round, "text");
      if (round % 2 == 0) {  // the members end first, or the section
        for (const std::int32_t i : some) destroy(a[i]);
        post(s)->hear(round, "text");
        quiescence(a);
        destroy(s);
      } else {
        quiescence(a);
        destroy(s);
        for (const std::int32_t i : some) destroy(a[i]);
      }
      quiescence();
      most = std::max(most, tables());
    }
    EXPECT_LE(most, std::size_t{70} * world_pes());
  };
  in_world(1, [&] { body(60); });
  in_world(3, [&] { body(60); });
  in_simulation("machines=3,jitter=5us", [&] { body(60); });
}

// A value that some cannot copy, and some cannot read.
struct Brittle {
  static inline std::atomic<int> copies_left = -1;
  int value = 0;
  Brittle() = default;
  explicit Brittle(int v) : value(v) {}
  Brittle(const Brittle& o) : value(o.value) {
    if (copies_left >= 0 && copies_left-- == 0) throw std::runtime_error("no copy");
  }
  Brittle(Brittle&&) = default;
  Brittle& operator=(const Brittle&) = default;
  Brittle& operator=(Brittle&&) = default;
  ~Brittle() = default;
  template <class A>
  void serialize(A& a) {
    a & value;
    if constexpr (A::is_loading::value)
      if (value == 13) throw std::runtime_error("13 is not read");
  }
};
// One that goes within a node only.
struct Indoors {
  bool in = false;
  template <class A>
  void serialize(A& a) {
    a & in;
    if (A::is_saving::value && in) throw std::runtime_error("not to be written");
  }
};
struct Taker;
ORRERY_PROCESS(Taker, take, take_indoors, next, count);
struct Taker : element<Taker> {
  int taken = 0;
  void take(const Brittle&) { ++taken; }
  void take_indoors(Indoors) { ++taken; }
  void next() { ++taken; }
  int count() const { return taken; }
  template <class A>
  void serialize(A& a) {
    a & taken;
  }
};
TEST(section, members_that_cannot_get_a_broadcast_get_the_next_ones) {
  ::testing::internal::CaptureStderr();  // says what failed
  in_world(1, [] {
    const auto a = create_array<Taker>(range<std::int32_t>{6});
    const auto s = create_section(a, range<std::int32_t>{6});
    post(s)->next();
    quiescence(a);
    Brittle::copies_left = 3;
    post(s)->take(Brittle(5));
    quiescence(a);
    Brittle::copies_left = -1;
    for (int k = 0; k < 3; ++k) post(s)->next();
    quiescence(a);
    int all = 0;
    for (int i = 0; i < 6; ++i) {
      EXPECT_GE(a[i]->count(), 4);
      all += a[i]->count();
    }
    EXPECT_EQ(all, 6 * 5 - 1);
  });
  in_simulation("machines=2", [] {
    const auto a = create_array<Taker>(
        range<std::int32_t>{6},
        {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 0U; })});
    const auto s = create_section(a, range<std::int32_t>{6});
    for (const int i : {2, 3}) start_migrate(a[i], 1).get();
    for (const int v : {1, 13, 2, 3}) post(s)->take(Brittle(v));
    quiescence(a);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(a[i]->count(), i == 2 || i == 3 ? 3 : 4) << i;
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("no copy"), std::string::npos);
}

// A broadcast that waits in the mailbox of a member that moves, and cannot go with it.
TEST(section, members_that_leave_a_broadcast_behind_get_the_next_ones) {
  ::testing::internal::CaptureStderr();
  for (int seed = 1; seed <= 40; ++seed)
    in_simulation("machines=2,pes=2,jitter=3us,seed=" + std::to_string(seed), [&] {
      const auto a = create_array<Taker>(
          range<std::int32_t>{6},
          {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 0U; })});
      const auto s = create_section(a, range<std::int32_t>{6});
      for (int i = 0; i < 6; ++i) start_migrate(a[i], 1).get();
      std::vector<future<void>> moving;
      for (const bool indoors : {false, true, false}) {
        post(s)->take_indoors({indoors});
        for (int i = 0; indoors && i < 6; ++i)
          moving.push_back(start_migrate(a[i], 2 + static_cast<std::uint32_t>(i + seed) % 2));
        sleep_for(std::chrono::microseconds(seed % 8));
      }
      for (auto& m : moving) m.get();
      post(s)->next();
      quiescence(a);
      for (int i = 0; i < 6; ++i) EXPECT_GE(a[i]->count(), 3);
    });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("not to be written"), std::string::npos);
}

// Where an agent, not only a member, cannot read a broadcast, it is reported and does not keep the
// array from being still.
TEST(section, a_broadcast_that_an_agent_cannot_read_is_over) {
  ::testing::internal::CaptureStderr();
  in_simulation("machines=3", [] {
    const auto a = create_array<Taker>(range<std::int32_t>{30});
    const auto s = create_section(a, range<std::int32_t>{30}, 1);
    for (const int v : {1, 13, 2}) post(s)->take(Brittle(v));
    quiescence(a);
    int all = 0;
    for (int i = 0; i < 30; ++i) all += a[i]->count();
    EXPECT_GE(all, 2 * 30);
    EXPECT_LT(all, 3 * 30);
  });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("13 is not read"), std::string::npos);
}

void post_many(section<Taker> s, int n) {
  for (int k = 0; k < n; ++k) {
    post(s)->next();
    if (k % 8 == 0) yield();
  }
}
void outlives_its_section() {
  const auto a = create_array<Taker>(range<std::int32_t>{6});
  for (int round = 0; round < 10; ++round) {
    const auto s = create_section(a, range<std::int32_t>{6});
    std::vector<future<void>> posting;
    for (std::uint32_t p = 0; p < world_pes(); ++p) posting.push_back(start_call<&post_many>(pe(p), s, 40));
    for (int k = 0; k < round; ++k) yield();
    destroy(s);
    post(s)->next();
    for (auto& p : posting) p.get();
    quiescence(a);
    for (int i = 0; i < 6; ++i) EXPECT_EQ(a[i]->count(), a[0]->count());
  }
}
TEST(section, what_is_sent_to_one_that_was_destroyed_is_reported_and_over) {
  ::testing::internal::CaptureStderr();
  in_world(1, outlives_its_section);
  in_world(3, outlives_its_section);
  for (int seed = 1; seed <= 20; ++seed)
    in_simulation("machines=3,jitter=5us,seed=" + std::to_string(seed), outlives_its_section);
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("Taker::next failed"), std::string::npos) << report.substr(0, 1000);
}

}  // namespace section_tests
}  // namespace orrery
