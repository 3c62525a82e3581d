// SPDX-License-Identifier: Apache-2.0
// What goes wrong in elements, and what of it others get to know: nobody waits for ever, and
// nothing is made up.
#include <orrery/array/balance.hpp>
#include <orrery/array/checkpoint.hpp>
#include <orrery/array/own_index.hpp>
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

namespace orrery {
namespace failures_tests {

using testing::attempt;
using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

// An operation that takes nothing below 0.
struct picky_op {
  int operator()(int a, int b) const {
    if (a < 0 || b < 0) throw std::domain_error("below 0");
    return a + b;
  }
};
constexpr picky_op picky{};

struct Giver;
ORRERY_PROCESS(Giver, give, give_picky, give_to, give_many, give_pair, join_in, hop);
struct Giver : element<Giver> {
  void give(result_target t) { contribute(1, sum, t); }
  void give_picky(int who, result_target t) { contribute(this_index() == who ? -1 : 1, picky, t); }
  void give_to(section<Giver> s, result_target t) { contribute(s, 1, sum, t); }
  // So many values, or each element another number of them.
  void give_many(std::size_t n, result_target t) {
    std::vector<double> all(n != 0 ? n : 1 + static_cast<std::size_t>(this_index()));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i == 0 ? this_index() : static_cast<double>(i);
    contribute(all, elementwise(sum), t);
  }
  void give_pair(result_target t) { contribute(std::array{this_index(), -this_index()}, elementwise(maximum), t); }
  void join_in(section<Giver> s, int round, result_target t) { contribute(s, std::vector<int>{round}, concat, t); }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  template <class A>
  void serialize(A&) {}
};

struct Word;
ORRERY_PROCESS(Word, count);
struct Word : element<Word, std::string> {
  static constexpr early when_early(std::string_view) { return early::refuse; }
  void count() {}
};

// Bodies for worlds of threads and, as values are serialized there, of several machines.
void failing_operation() {
  const auto a = create_array<Giver>(range<std::int32_t>{12});
  for (const int who : {0, 5, 11}) {
    auto [target, result] = expect_result<int>();
    post(a)->give_picky(who, target);
    EXPECT_EQ(what_is_thrown<std::domain_error>([&] { (void)result.get(); }), "below 0") << who;
    auto [next, good] = expect_result<int>();
    post(a)->give_picky(-1, next);
    EXPECT_EQ(good.get(), 12);
  }
}

TEST(array_failures, an_operation_that_throws_ends_its_reduction_and_no_other) {
  for (const std::uint32_t pes : {1U, 4U}) in_world(pes, failing_operation);
  in_simulation("machines=4", failing_operation);
}

// The error of others does not depend on where they are.
struct own_error : std::runtime_error {
  using runtime_error::runtime_error;
};
struct failing_op {
  int operator()(int, int) const { throw own_error("not together"); }
};
struct Thrower;
ORRERY_PROCESS(Thrower, plain, kept, give);
struct Thrower : element<Thrower> {
  static constexpr bool keep_order(std::string_view method) { return method == "kept"; }
  Thrower() = default;
  explicit Thrower(int) { throw own_error("not made"); }
  int plain() { throw own_error("a method"); }
  int kept() { throw own_error("a method"); }
  void give(result_target t) { contribute(1, failing_op{}, t); }
};
TEST(array_failures, exceptions_of_own_classes_come_as_remote_errors_from_every_pe) {
  const auto body = [] {
    const auto a = create_array<Thrower>(range<std::int32_t>{16});
    const auto expect = [](const char* text, auto f) {
      EXPECT_NE(what_is_thrown<remote_error>(f).find(text), std::string::npos);
    };
    for (std::int32_t i = 0; i < 16; ++i) {
      expect("a method", [&] { a[i]->plain(); });
      expect("a method", [&] { a[i]->kept(); });
      expect("a method", [&] { start(a[i])->plain().get(); });
      expect("a method", [&] { start(a[i])->kept().get(); });
      expect("not made", [&] { a.insert(100 + i, 1); });
      expect("not made", [&] { a.start_insert(100 + i, 1).get(); });
      for (std::uint32_t p = 0; p < world_pes(); ++p) expect("not made", [&] { a.insert_at(pe(p), 100 + i, 1); });
      EXPECT_NO_THROW(a.post_insert(100 + i, 1));  // reported there
      EXPECT_NO_THROW(a.post_insert(i));
    }
    quiescence(a);
    auto [target, result] = expect_result<int>();
    post(a)->give(target);
    expect("not together", [&] { (void)result.get(); });
  };
  ::testing::internal::CaptureStderr();
  for (const std::uint32_t pes : {1U, 3U}) in_world(pes, body);
  in_simulation("machines=3", body);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("array[115] was not created, as its constructor threw"), std::string::npos) << said;
  EXPECT_NE(said.find("array[15]: there is an element at this index already"), std::string::npos) << said;
}

// A value that cannot be written on its way, or not be read.
struct Loose {
  int value = 1;
  bool breaks = false;  // where it is read, if it has been written
  bool written = true;
  Loose operator+(const Loose& other) const {
    return {value + other.value, breaks || other.breaks, written && other.written};
  }
  template <class A>
  void serialize(A& a) {
    if (!written) throw std::runtime_error("not to be written");
    a & value & breaks;
    if (A::is_loading::value && breaks) throw std::runtime_error("not to be read");
  }
};
struct Loser;
ORRERY_PROCESS(Loser, give, give_in, take);
struct Loser : element<Loser> {
  void give(bool breaks, bool written, result_target t) { contribute(loose(breaks, written), sum, t); }
  void give_in(section<Loser> s, bool breaks, bool written, result_target t) {
    contribute(s, loose(breaks, written), sum, t);
  }
  void take(Loose l) { taken += l.value; }
  Loose loose(bool breaks, bool written) const {
    return {1, breaks && this_index() == 3, written || this_index() != 3};
  }
  inline static int taken = 0;
  template <class A>
  void serialize(A&) {}
};
TEST(array_failures, a_reduction_ends_with_what_the_serialize_of_its_values_throws) {
  ::testing::internal::CaptureStderr();
  for (const char* world : {"machines=1", "machines=1,pes=3", "machines=3", "machines=9"})
    in_simulation(world, [] {
      const auto a = create_array<Loser>(range<std::int32_t>{8});
      const auto s = create_section(a, range<std::int32_t>{8});
      const auto reduce = [&](bool in_section, bool breaks, bool written) {
        auto [target, result] = expect_result<Loose>();
        if (in_section) {
          post(s)->give_in(s, breaks, written, target);
        } else {
          post(a)->give(breaks, written, target);
        }
        return result.get().value;
      };
      for (const bool in_section : {false, true}) {
        EXPECT_NE(
            what_is_thrown<std::runtime_error>([&] { (void)reduce(in_section, false, false); }).find("not to be wri"),
            std::string::npos);
        EXPECT_NE(
            what_is_thrown<std::runtime_error>([&] { (void)reduce(in_section, true, true); }).find("not to be re"),
            std::string::npos);
        EXPECT_EQ(reduce(in_section, false, true), 8);
      }
      Loser::taken = 0;
      post(a)->give(false, false, result_to<&Loser::take>(a[5]));
      post(a)->give(false, true, result_to<&Loser::take>(a[5]));
      quiescence(a);
      EXPECT_EQ(Loser::taken, 8);
    });
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("not to be written"), std::string::npos);
}

void other_types() {
  const auto a = create_array<Giver>(range<std::int32_t>{8});
  const auto refused = [&]<class V>(V) {
    auto [target, result] = expect_result<V>();
    post(a)->give(target);
    const std::string what = what_is_thrown<usage_error>([&] { (void)result.get(); });
    EXPECT_NE(what.find("contributed int"), std::string::npos) << what;
  };
  refused(1.0F);
  refused(1U);
  refused(std::int64_t{1});
  refused(std::string());
  auto [target, result] = expect_result<int>();
  post(a)->give(target);
  EXPECT_EQ(result.get(), 8);
}

TEST(array_failures, a_result_is_not_taken_for_one_of_another_type) {
  in_world(3, other_types);
  in_simulation("machines=3", other_types);
}

TEST(array_failures, who_waits_for_a_section_that_is_destroyed_is_told) {
  in_world(3, [] {
    const auto a = create_array<Giver>(range<std::int32_t>{9});
    const auto s = create_section(a, range<std::int32_t>{9});
    auto [target, result] = expect_result<int>();
    post(a[0])->give_to(s, target);  // the others never do
    quiescence();
    destroy(s);
    EXPECT_NE(what_is_thrown<process_gone>([&] { (void)result.get(); }).find("section"), std::string::npos);
    // On a PE with an agent nobody is a member any more.
    post(a[1])->give_to(s, target);
    quiescence();
  });
}

// Each reduction has the contributions of its own round only.
void rounds_of(std::uint32_t seed) {
  constexpr int members = 6;
  constexpr int rounds = 20;
  const auto a = create_array<Giver>(range<std::int32_t>{members});
  const auto s = create_section(a, range<std::int32_t>{members});
  std::uint32_t drawn = seed * 2654435761U + 1;
  const auto draw = [&](std::uint32_t below) { return (drawn = drawn * 1664525U + 1013904223U) / 65536U % below; };
  std::vector<future<std::vector<int>>> results;
  for (int k = 0; k < rounds; ++k) {
    for (int m = 0; m < 3; ++m) post(a[static_cast<std::int32_t>(draw(members))])->hop(draw(world_pes()));
    auto [target, result] = expect_result<std::vector<int>>();
    post(s)->join_in(s, k, target);
    results.push_back(std::move(result));
  }
  for (int k = 0; k < rounds; ++k)
    EXPECT_EQ(results[static_cast<std::size_t>(k)].get(), std::vector<int>(members, k)) << seed;
}

TEST(array_failures, reductions_of_a_section_are_not_mixed_when_members_migrate) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed)
    in_simulation("machines=4,jitter=20us,seed=" + std::to_string(seed), [&] { rounds_of(seed); });
  for (std::uint32_t seed = 1; seed <= 10; ++seed) in_world(4, [&] { rounds_of(seed); });
}

// Made on demand, and cannot be.
std::atomic<int> tries{0};
struct AtHome;
ORRERY_PROCESS(AtHome, get);
struct AtHome : element<AtHome> {
  AtHome() {
    ++tries;
    throw std::runtime_error("it cannot be made");
  }
  int get() { return 1; }
  static constexpr early when_early(std::string_view) { return early::create_at_home; }
};
struct AtSender;
ORRERY_PROCESS(AtSender, get);
struct AtSender : element<AtSender> {
  AtSender() {
    ++tries;
    throw std::runtime_error("it cannot be made");
  }
  int get() { return 1; }
  static constexpr early when_early(std::string_view) { return early::create_at_sender; }
};
template <class T>
void cannot_be_made() {
  ::testing::internal::CaptureStderr();
  const auto a = create_array<T>({.name = "words"});
  for (const int i : {0, 1, 2, 3}) {
    tries = 0;
    EXPECT_NE(what_is_thrown<process_gone>([&] { (void)a[i]->get(); }).find("words[" + std::to_string(i) + "]"),
              std::string::npos);
    EXPECT_EQ(tries, 1);
    post(a[i])->get();
    quiescence();
    EXPECT_LE(tries, 2);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("words[2] was not created, as its constructor threw: it cannot be made"), std::string::npos)
      << said;
}

TEST(array_failures, an_element_made_on_demand_that_cannot_be_is_tried_once_for_a_message) {
  in_world(3, cannot_be_made<AtHome>);
  in_world(3, cannot_be_made<AtSender>);
  in_simulation("machines=3", cannot_be_made<AtSender>);
}

// Cannot be read where it comes to.
struct Unreadable;
ORRERY_PROCESS(Unreadable, hop, get);
struct Unreadable : element<Unreadable> {
  void hop(std::uint32_t pe) { migrate_to(pe); }
  int get() const { return 1; }
  template <class A>
  void serialize(A&) {
    if (A::is_loading::value && this_index() % 2 == 1) throw std::runtime_error("unreadable");
  }
};
TEST(array_failures, an_element_that_cannot_be_read_where_it_comes_to_is_none) {
  in_simulation("machines=3", [] {
    const auto a = create_array<Unreadable>(range<std::int32_t>{6}, {.name = "states"});
    for (std::int32_t i = 0; i < 6; ++i) post(a[i])->hop(static_cast<std::uint32_t>(i + 1) % 3);
    quiescence();
    for (std::int32_t i = 0; i < 6; ++i) {
      if (i % 2 == 0) {
        EXPECT_EQ(a[i]->get(), 1);
      } else {
        const std::string what = what_is_thrown<process_gone>([&] { (void)a[i]->get(); });
        EXPECT_NE(what.find("states[" + std::to_string(i) + "]"), std::string::npos) << what;
        a.insert(i);  // the index is free
      }
    }
    quiescence(a);
  });
}

// Element 3 cannot be written, or read.
struct Unsaved;
ORRERY_PROCESS(Unsaved, get, where);
struct Unsaved : element<Unsaved> {
  int get() const { return value; }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & value;
    if (A::is_loading::value ? unreadable.load() : unwritable.load())
      if (this_index() == 3) throw std::runtime_error("not now");
  }
  int value = 1;
  inline static std::atomic<bool> unreadable = false, unwritable = false;
};
TEST(array_failures, of_a_state_that_cannot_be_saved_read_or_moved_is_said_whose_it_is) {
  const std::string folder = ::testing::TempDir() + "orrery_unsaved_" + std::to_string(::getpid());
  ::testing::internal::CaptureStderr();
  in_simulation("machines=2", [&] {
    const auto a = create_array<Unsaved>(range<std::int32_t>{6}, {.name = "states"});
    Unsaved::unwritable = true;
    EXPECT_NE(what_is_thrown<std::runtime_error>([&] { checkpoint(folder, a); }).find("not now"), std::string::npos);
    std::array<std::uint32_t, 6> from{};
    for (std::int32_t i = 0; i < 6; ++i) from[static_cast<std::size_t>(i)] = a[i]->where();
    EXPECT_EQ(balance(a, *balance_rotate()).moved, 5U);
    for (std::int32_t i = 0; i < 6; ++i) EXPECT_EQ(a[i]->where() == from[static_cast<std::size_t>(i)], i == 3) << i;
    Unsaved::unwritable = false;
    checkpoint(folder, a);
    Unsaved::unreadable = true;
    EXPECT_NE(what_is_thrown<std::runtime_error>([&] { (void)restore<array<Unsaved>>(folder); }).find("not now"),
              std::string::npos);
    Unsaved::unreadable = false;
    const auto [b] = restore<array<Unsaved>>(folder);
    EXPECT_EQ(b[3]->get(), 1);
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("checkpoint: the state of states[3] cannot be written"), std::string::npos) << said;
  EXPECT_NE(said.find("balancing: states[3] stays where it is"), std::string::npos) << said;
  EXPECT_NE(said.find(folder + ": the state of states[3] cannot be read"), std::string::npos) << said;
  std::filesystem::remove_all(folder);
}

// Does in its destructor what an element cannot do that has ended.
struct Clinging;
ORRERY_PROCESS(Clinging, give, hop);
struct Clinging : element<Clinging> {
  ~Clinging() {
    if (asked) {
      migrate_to(0);
      contribute(100, sum, target);
      contribute(in, 100, sum, target);
    }
  }
  void give(section<Clinging> s, result_target t) {
    asked = true;
    in = s;
    target = t;
    contribute(1, sum, t);
  }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  template <class A>
  void serialize(A& a) {
    a & in & target & asked;
  }
  section<Clinging> in;
  result_target target;
  bool asked = false;
};
void clings() {
  const auto a = create_array<Clinging>(range<std::int32_t>{6});
  const auto s = create_section(a, range<std::int32_t>{6});
  auto [target, result] = expect_result<int>();
  post(a)->give(s, target);
  EXPECT_EQ(result.get(), 6);
  post(a)->hop(world_pes() - 1);  // destructors run where they leave
  quiescence(a);
  destroy(a[2]);
  quiescence(a);
  auto [next, five] = expect_result<int>();
  post(a)->give(s, next);
  EXPECT_EQ(five.get(), 5);
}

TEST(array_failures, a_destructor_that_migrates_or_contributes_is_reported_and_does_no_harm) {
  in_world(3, clings);
  in_simulation("machines=3", clings);
}

// The fifth of each PE cannot be made.
std::atomic<int> made{0};
struct Fragile;
ORRERY_PROCESS(Fragile, get);
struct Fragile : element<Fragile> {
  explicit Fragile(int bad) {
    if (this_index() % 50 == bad) throw std::invalid_argument("fragile");
    ++made;
  }
  ~Fragile() { --made; }
  int get() const { return 1; }
};
TEST(array_failures, an_array_of_which_not_all_can_be_made_is_not_left_half) {
  in_world(3, [] {
    for (const int bad : {0, 1, 33, 49}) {
      EXPECT_EQ(what_is_thrown<std::invalid_argument>(
                    [&] { (void)create_array<Fragile>(range<std::int32_t>{200}, {}, {}, bad); }),
                "fragile");
      EXPECT_EQ(made, 0);
    }
    const auto a = create_array<Fragile>(range<std::int32_t>{200}, {}, {}, -1);
    EXPECT_EQ(made, 200);
    destroy(a);
    EXPECT_EQ(made, 0);
  });
}

struct Spacious;
ORRERY_PROCESS(Spacious, get);
struct Spacious : element<Spacious, index<4>> {
  int get() const { return 1; }
};
TEST(array_failures, a_range_of_more_than_can_be_is_refused_and_one_of_nothing_is_empty) {
  in_world(2, [] {
    EXPECT_THROW((void)create_array<Spacious>(range<index<4>>{{65536, 65536, 65536, 65536}}), usage_error);
    EXPECT_THROW((void)create_array<Spacious>(range<index<4>>{{65536, 65536, 65536, 1}}), usage_error);
    EXPECT_EQ((range<index<4>>{{65536, 65536, 0, 65536}}.size()), 0U);
    (void)create_array<Spacious>(range<index<4>>{{65536, 65536, 0, 65536}});
  });
}

// The report on stderr of a world that ends because all in it wait.
template <class Body>
std::string said_at_the_end(Body body) {
  ::testing::internal::CaptureStderr();
  in_simulation("machines=2", [&] { EXPECT_THROW(body(), stopped); });
  return ::testing::internal::GetCapturedStderr();
}

TEST(array_failures, a_dead_world_says_who_has_not_contributed_and_what_was_not_created) {
  std::string said = said_at_the_end([] {
    const auto a = create_array<Giver>(range<std::int32_t>{6}, {.name = "givers"});
    auto [target, result] = expect_result<int>();
    for (const int i : {0, 1, 3, 4, 5}) post(a[i])->give(target);
    (void)result.get();
  });
  EXPECT_NE(said.find("elements here have contributed, but not givers[2]"), std::string::npos) << said;
  said = said_at_the_end([] {
    const auto a = create_array<Giver>(range<std::int32_t>{6}, {.name = "givers"});
    const auto s = create_section(a, range<std::int32_t>{6});
    auto [target, result] = expect_result<int>();
    post(a[0])->give_to(s, target);
    (void)result.get();
  });
  EXPECT_NE(said.find("reduction 1 of a section of givers: 1 contributions"), std::string::npos) << said;
  said = said_at_the_end([] {
    const auto a = create_array<Giver>(range<std::int32_t>{6}, {.name = "givers"});
    a[71]->hop(0);
  });
  EXPECT_NE(said.find("Giver::hop at givers[71]"), std::string::npos) << said;
  EXPECT_NE(said.find("1 message waits for givers[71], which was not created yet"), std::string::npos) << said;
}

struct Hopper;
ORRERY_PROCESS(Hopper, hop, where);
struct Hopper : element<Hopper> {
  void hop(std::vector<std::uint32_t> to) {
    for (const std::uint32_t pe : to) migrate_to(pe);
  }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A&) {}
};
TEST(array_failures, an_element_that_is_sent_to_several_pes_ends_at_the_last) {
  in_world(4, [] {
    const auto a = create_array<Hopper>(range<std::int32_t>{2});
    for (const std::vector<std::uint32_t>& way : {std::vector<std::uint32_t>{1, 2}, {3, 1, 2, 0}, {2, 2, 3}, {0, 1}}) {
      post(a[0])->hop(way);
      EXPECT_EQ(a[0]->where(), way.back());
      post_migrate(a[1], 3);
      for (const std::uint32_t pe : way) post_migrate(a[1], pe);
      EXPECT_EQ(a[1]->where(), way.back());
    }
  });
}

TEST(array_failures, a_null_array_is_told_from_one_that_was_destroyed) {
  in_world(2, [] {
    const array<Giver> none;
    EXPECT_NE(what_is_thrown<usage_error>([&] { post(none)->hop(0); }).find("null array"), std::string::npos);
    EXPECT_THROW(post(none[1])->hop(0), usage_error);
    EXPECT_THROW(none[1]->hop(0), usage_error);
    EXPECT_THROW(none.insert(1), usage_error);
    EXPECT_THROW((void)create_section(none, range<std::int32_t>{2}), usage_error);
    EXPECT_THROW(destroy(none), usage_error);
    const auto a = create_array<Giver>(range<std::int32_t>{3}, {.name = "givers"});
    destroy(a);
    EXPECT_NE(what_is_thrown<process_gone>([&] { a[1]->hop(0); }).find("givers"), std::string::npos);
  });
}

TEST(array_failures, errors_are_short_however_long_an_index_is) {
  in_world(2, [] {
    const auto words = create_array<Word, std::string>({.name = "words"});
    const std::string what = what_is_thrown<process_gone>([&] { words[std::string(100'000, 'x')]->count(); });
    EXPECT_NE(what.find("words[\"xxx"), std::string::npos) << what;
    EXPECT_NE(what.find("(100000 bytes)"), std::string::npos) << what;
    EXPECT_LT(what.size(), 500U);
  });
}

void elementwise_bodies() {
  const auto a = create_array<Giver>(range<std::int32_t>{5});
  auto [sums, all] = expect_result<std::vector<double>>();
  post(a)->give_many(3, sums);
  EXPECT_EQ(all.get(), (std::vector<double>{0 + 1 + 2 + 3 + 4, 5, 10}));
  auto [most, highest] = expect_result<std::array<int, 2>>();
  post(a)->give_pair(most);
  EXPECT_EQ(highest.get(), (std::array{4, 0}));
  auto [uneven, none] = expect_result<std::vector<double>>();
  post(a)->give_many(0, uneven);
  EXPECT_NE(what_is_thrown<usage_error>([&] { (void)none.get(); }).find("elementwise"), std::string::npos);
}
TEST(array_failures, values_of_different_lengths_are_not_combined_elementwise) {
  in_world(3, elementwise_bodies);
  in_simulation("machines=3", elementwise_bodies);
}

// Cannot be written where it is to go on to another node.
struct Unwritable {
  int value = 0;
  template <class A>
  void serialize(A& a) {
    a & value;
    if constexpr (A::is_saving::value)
      if (value < 0) throw std::runtime_error("not to be written");
  }
};
struct Far;
ORRERY_PROCESS(Far, take, take_in_order, taken);
struct Far : element<Far> {
  static constexpr bool keep_order(std::string_view method) { return method == "take_in_order"; }
  int count = 0;
  void take(const Unwritable&) { ++count; }
  void take_in_order(const Unwritable&) { ++count; }
  int taken() const { return count; }
  template <class A>
  void serialize(A& a) {
    a & count;
  }
};
// The home, on this node, forwards it: nothing has to be written before.
TEST(array_failures, what_comes_after_a_message_that_could_not_be_forwarded_arrives) {
  ::testing::internal::CaptureStderr();
  in_simulation("machines=2,pes=2", [] {
    for (int kind = 0; kind < 4; ++kind) {
      const auto a = create_array<Far>(
          range<std::int32_t>{1},
          {.name = "far", .home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 1U; })});
      start_migrate(a[0], 2).get();
      switch (kind) {
        case 0:
          post(a[0])->take({-1});
          break;
        case 1:
          EXPECT_THROW(a[0]->take({-1}), std::runtime_error);
          break;
        case 2:
          post(a[0])->take_in_order({-1});
          break;
        default:
          EXPECT_THROW(a[0]->take_in_order({-1}), std::runtime_error);
          break;
      }
      a[0]->take({1});
      a[0]->take_in_order({1});
      EXPECT_EQ(a[0]->taken(), 2);
      quiescence(a);
      destroy(a);
    }
  });
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("not to be written"), std::string::npos) << report;
}

// An argument that PEs cannot read: none of them (-1), or PE 1 (-2).
struct Checked {
  int value = 0;
  template <class A>
  void serialize(A& a) {
    a & value;
    if (A::is_loading::value && (value == -1 || (value == -2 && this_pe() == 1)))
      throw std::invalid_argument("below 0");
  }
};
struct Listener;
ORRERY_PROCESS(Listener, take, add, count, where);
struct Listener : element<Listener> {
  void take(const Checked&) { ++taken; }
  void add(int n) { taken += n; }
  int count() const { return taken; }
  std::uint32_t where() const { return this_pe(); }
  int taken = 0;
};
std::size_t past_on_pe(array<Listener> a) {
  return detail::part_of<Listener, std::int32_t>(detail::here_pe(), a.id()).past_size();
}
TEST(array_failures, broadcasts_that_cannot_be_read_do_not_hold_back_the_next_ones) {
  const auto body = [] {
    const auto a = create_array<Listener>(range<std::int32_t>{12});
    constexpr int rounds = 100;
    for (int k = 0; k < rounds; ++k)
      for (const int value : {-1, -2, 1}) post(a)->take({value});
    quiescence(a);
    for (std::int32_t i = 0; i < 12; ++i) EXPECT_EQ(a[i]->count(), a[i]->where() == 1 ? rounds : 2 * rounds) << i;
    for (int k = 0; k < 20; ++k) {  // which say that those before are not needed any more
      post(a)->take({1});
      quiescence(a);
    }
    for (std::uint32_t p = 0; p < world_pes(); ++p)
      EXPECT_LT(call<&past_on_pe>(pe(p), a), std::size_t{rounds}) << "PE " << p;
  };
  ::testing::internal::CaptureStderr();
  for (const std::uint32_t pes : {1U, 3U}) in_world(pes, body);
  in_simulation("machines=3", body);
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("below 0"), std::string::npos) << report.substr(0, 1000);
}

// An argument that cannot be written or read any more when an element takes it along.
struct Fading {
  static inline std::atomic<bool> unwritable = false;
  static inline std::atomic<bool> unreadable = false;
  int value = 0;
  template <class A>
  void serialize(A& a) {
    a & value;
    if (A::is_loading::value ? unreadable.load() : unwritable.load()) throw std::runtime_error("it has faded");
  }
};
struct Mover;
ORRERY_PROCESS(Mover, go, take, count, where);
struct Mover : element<Mover> {
  void go(std::uint32_t to, bool written) {
    (written ? Fading::unreadable : Fading::unwritable) = true;
    migrate_to(to);
  }
  void take(const Fading&) { ++taken; }
  int count() const { return taken; }
  std::uint32_t where() const { return this_pe(); }
  template <class A>
  void serialize(A& a) {
    a & taken;
  }
  int taken = 0;
};
TEST(array_failures, an_element_moves_without_broadcasts_that_cannot_go_along) {
  ::testing::internal::CaptureStderr();
  for (const bool packed : {false, true})
    for (const bool written : {false, true})
      in_world(2, [&] {
        const auto a = create_array<Mover>(
            range<std::int32_t>{2},
            {.home = placement_map<std::int32_t>([](const std::int32_t&, std::uint32_t) { return 0U; }),
             .always_serialize = packed});
        ASSERT_EQ(this_pe(), 0U);
        post(a[0])->go(1, written);
        post(a)->take({1});
        quiescence(a);
        Fading::unwritable = Fading::unreadable = false;
        post(a)->take({2});
        quiescence(a);
        EXPECT_EQ(a[0]->where(), 1U);
        EXPECT_EQ(a[0]->count(), 1);
        EXPECT_EQ(a[1]->count(), 2);
        destroy(a);
      });
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("it has faded"), std::string::npos) << report;
}

TEST(array_failures, a_result_for_an_array_that_was_destroyed_is_reported) {
  ::testing::internal::CaptureStderr();
  in_world(2, [] {
    const auto gone = create_array<Listener>(range<std::int32_t>{2}, {.name = "listeners"});
    const result_target all = result_to<&Listener::add>(gone);
    const result_target one = result_to<&Listener::add>(gone[1]);
    destroy(gone);
    const auto a = create_array<Giver>(range<std::int32_t>{6});
    for (const result_target& t : {all, one}) post(a)->give(t);
    quiescence(a);
  });
  const std::string report = ::testing::internal::GetCapturedStderr();
  const std::size_t first = report.find("listeners: the array was destroyed");
  ASSERT_NE(first, std::string::npos) << report;
  EXPECT_NE(report.find("listeners: the array was destroyed", first + 1), std::string::npos) << report;
}

}  // namespace failures_tests
}  // namespace orrery
