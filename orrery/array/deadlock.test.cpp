// SPDX-License-Identifier: Apache-2.0
// Elements that call each other in a circle, wherever they are.
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace deadlock_tests {

using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

struct Outsider;
struct Link;
ORRERY_PROCESS(Link, value, hop, call_round, start_round, kept_round, by_way_of, next_slowly, walk, bear,
               start_to_bear);
ORRERY_PROCESS(Outsider, to);
struct Outsider {
  int to(orrery::array<Link, std::string> ring, std::string who);
};

struct Link : element<Link, std::string> {
  static constexpr bool keep_order(std::string_view method) { return method == "kept_round"; }

  Link() = default;
  explicit Link(std::string parent) { (void)this_array()[parent]->value(); }

  int value() { return 1; }
  void bear(std::uint32_t pe, std::string child) { this_array().insert_at(orrery::pe(pe), child, this_index()); }
  void start_to_bear(std::uint32_t pe, std::string child) {
    this_array().start_insert_at(orrery::pe(pe), child, this_index()).get();
  }
  void hop(std::uint32_t pe) { migrate_to(pe); }
  // Through as many elements as `ring` names.
  int call_round(std::vector<std::string> ring, std::uint32_t at, int steps) {
    const std::string& next = ring[(at + 1) % ring.size()];
    return steps == 0 ? 1 : this_array()[next]->call_round(ring, at + 1, steps - 1) + 1;
  }
  int start_round(std::vector<std::string> ring, std::uint32_t at, int steps) {
    const std::string& next = ring[(at + 1) % ring.size()];
    return steps == 0 ? 1 : start(this_array()[next])->start_round(ring, at + 1, steps - 1).get() + 1;
  }
  int kept_round(std::vector<std::string> ring, std::uint32_t at, int steps) {
    const std::string& next = ring[(at + 1) % ring.size()];
    return steps == 0 ? 1 : this_array()[next]->kept_round(ring, at + 1, steps - 1) + 1;
  }
  int by_way_of(remote<Outsider> other, std::string back) { return other->to(this_array(), back); }
  int next_slowly(std::string next) {
    yield();
    yield();
    return this_array()[next]->value();
  }
  // Calls the elements with these numbers one after the other, each of which goes on from there.
  int walk(std::vector<std::uint32_t> way, std::uint32_t elements) {
    int met = 1;
    if (way.empty()) return met;
    const std::uint32_t first = way.back();
    way.pop_back();
    const auto next = this_array()["e" + std::to_string(first)];
    return met + (first % 2 == 0 ? next->walk(way, elements) : start(next)->walk(way, elements).get());
  }
  template <class A>
  void serialize(A&) {}
};
int Outsider::to(orrery::array<Link, std::string> ring, std::string who) { return ring[who]->value(); }

std::vector<std::string> names(int n) {
  std::vector<std::string> all;
  for (int i = 0; i < n; ++i) all.push_back("e" + std::to_string(i));
  return all;
}
orrery::array<Link, std::string> make_ring(const std::vector<std::string>& all) {
  auto ring = create_array<Link, std::string>();
  for (const std::string& name : all) ring.insert(name);
  return ring;
}

// In worlds of threads and, as calls go by another way there, of several machines.
template <class Body>
void in_all_worlds(Body body) {
  for (const std::uint32_t pes : {1U, 2U, 4U}) in_world(pes, body);
  in_simulation("machines=3,pes=2,seed=7", body);
}

TEST(array_deadlock, of_elements_that_call_each_other_in_a_circle_is_an_error_that_names_it) {
  in_all_worlds([] {
    for (const int size : {2, 3, 10}) {
      const auto all = names(size);
      const auto ring = make_ring(all);
      const auto check = [&](const std::string& said, const std::string& method) {
        EXPECT_NE(said.find("Link::" + method + " -> "), std::string::npos) << said;
      };
      check(what_is_thrown<deadlock_error>([&] { (void)ring["e0"]->call_round(all, 0, size); }), "call_round");
      check(what_is_thrown<deadlock_error>([&] { (void)ring["e0"]->start_round(all, 0, size); }), "start_round");
      check(what_is_thrown<deadlock_error>([&] { (void)ring["e0"]->kept_round(all, 0, size); }), "kept_round");
      EXPECT_EQ(ring["e0"]->call_round(all, 0, size - 1), size);
      EXPECT_EQ(ring["e0"]->start_round(all, 0, size - 1), size);
      EXPECT_EQ(ring["e0"]->kept_round(all, 0, size - 1), size);
      std::vector<future<int>> calls;
      for (std::size_t i = 0; i < all.size(); ++i)
        calls.push_back(start(ring[all[i]])->next_slowly(all[(i + 1) % all.size()]));
      quiescence(ring);  // what was refused is over
    }
  });
}

TEST(array_deadlock, is_found_where_elements_have_gone) {
  in_all_worlds([] {
    const auto all = names(5);
    const auto ring = make_ring(all);
    for (std::uint32_t round = 0; round < 8; ++round) {
      for (std::uint32_t i = 0; i < 5; ++i) post(ring[all[i]])->hop((i * 7 + round * 3) % world_pes());
      EXPECT_THROW((void)ring["e0"]->call_round(all, 0, 5), deadlock_error);
      EXPECT_EQ(ring["e0"]->call_round(all, 0, 4), 5);
    }
  });
}

TEST(array_deadlock, is_found_through_processes_that_are_no_elements) {
  in_all_worlds([] {
    const auto ring = make_ring(names(4));
    for (std::uint32_t p = 0; p < world_pes(); ++p) {
      const auto other = spawn<Outsider>(pe(p));
      const std::string said = what_is_thrown<deadlock_error>([&] { (void)ring["e1"]->by_way_of(other, "e1"); });
      EXPECT_NE(said.find("Outsider::to"), std::string::npos) << said;
      EXPECT_EQ(ring["e1"]->by_way_of(other, "e2"), 1);
    }
  });
}

TEST(array_deadlock, of_an_element_whose_constructor_calls_who_inserts_it_is_an_error) {
  in_all_worlds([] {
    const auto ring = make_ring(names(6));
    int n = 0;
    for (std::uint32_t p = 0; p < world_pes(); ++p)
      for (const std::string parent : {"e0", "e1", "e2", "e3", "e4", "e5"}) {
        const std::string child = "child" + std::to_string(n++);
        const std::string said = what_is_thrown<deadlock_error>([&] { ring[parent]->bear(p, child); });
        EXPECT_NE(said.find("Link::(constructor) -> "), std::string::npos) << said;
        EXPECT_NE(said.find("Link::bear"), std::string::npos) << said;
        EXPECT_THROW(ring[parent]->start_to_bear(p, child), deadlock_error);
        ring.insert_at(pe(p), child, parent);
        EXPECT_EQ(ring[child]->value(), 1);
      }
    quiescence(ring);
  });
}

TEST(array_deadlock, of_elements_that_call_each_other_at_once_is_an_error_for_one_of_them) {
  in_all_worlds([] {
    for (int round = 0; round < 10; ++round) {
      const auto all = names(2 + round % 3);
      const auto ring = make_ring(all);
      std::vector<future<int>> calls;
      for (std::size_t i = 0; i < all.size(); ++i)
        calls.push_back(start(ring[all[i]])->next_slowly(all[(i + 1) % all.size()]));
      int failed = 0;
      for (auto& f : calls) {
        try {
          EXPECT_EQ(f.get(), 1);
        } catch (const deadlock_error&) {
          ++failed;
        }
      }
      EXPECT_EQ(failed, 1);
      destroy(ring);
    }
  });
}

// The caller of an element's destructor, of what is behind it in the mailbox, and of the end of the
// array.
struct Ender;
struct Mortal;
ORRERY_PROCESS(Ender, end_element, wait_behind, end_array, value);
ORRERY_PROCESS(Mortal, know, doze);
struct Mortal : element<Mortal> {
  static inline std::atomic<int> refused = 0;
  remote<Ender> ender;
  void know(remote<Ender> e) { ender = e; }
  void doze() { sleep_for(std::chrono::microseconds(100)); }
  ~Mortal();
};
struct Ender {
  int value() { return 1; }
  void end_element(orrery::array<Mortal> a, int i) { destroy(a[i]); }
  void wait_behind(orrery::array<Mortal> a, int i) {
    post(a[i])->doze();
    post_destroy(a[i]);
    a[i]->doze();
  }
  void end_array(orrery::array<Mortal> a) { destroy(a); }
};
Mortal::~Mortal() {
  if (!ender) return;
  try {
    (void)ender->value();
  } catch (const deadlock_error&) {
    ++refused;
  }
}

TEST(array_deadlock, of_a_destructor_that_calls_who_waits_for_it_is_an_error) {
  in_all_worlds([] {
    for (std::uint32_t p = 0; p < world_pes(); ++p)
      for (int i = 0; i < 4; ++i) {
        const auto ender = spawn<Ender>(pe(p));
        const auto make = [&] {
          const auto a = create_array<Mortal>(range<std::int32_t>{4});
          a[i]->know(ender);
          Mortal::refused = 0;
          return a;
        };
        ender->end_element(make(), i);
        EXPECT_EQ(Mortal::refused, 1);
        ender->end_array(make());
        EXPECT_EQ(Mortal::refused, 1);
        // at once: the destructor is none of its business
        EXPECT_THROW(ender->wait_behind(make(), i), process_gone);
      }
  });
}

// Element 0 leaves when a call to it that is part of a circle has been taken out from between two
// notes.
struct Noted;
ORRERY_PROCESS(Noted, note, ask, count, begin, work);
struct Noted : element<Noted> {
  static constexpr bool keep_order(std::string_view method) { return method == "note" || method == "ask"; }
  int notes = 0;
  void note() { ++notes; }
  int ask() { return notes; }
  int count() { return notes; }
  void begin() {
    migrate_to(1 % world_pes());
    this_array()[1]->work();
  }
  void work() {
    post(this_array()[0])->note();
    EXPECT_THROW((void)this_array()[0]->ask(), deadlock_error);
    post(this_array()[0])->note();
  }
  template <class A>
  void serialize(A& a) {
    a & notes;
  }
};
TEST(array_deadlock, leaves_no_hole_where_order_is_kept) {
  in_all_worlds([] {
    const auto a = create_array<Noted>(range<std::int32_t>{2}, {.home = placement_map<std::int32_t>::blocks(2)}, {});
    a[0]->begin();
    quiescence(a);
    EXPECT_EQ(a[0]->count(), 2);
  });
}

// Random walks through few elements, many at once, which migrate in between. Those that go upwards
// only wait for each other, but never in a circle.
void random_walks(std::uint64_t seed, bool circles) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return static_cast<std::uint32_t>(random() % below); };
  const std::uint32_t elements = 3 + draw(8);
  const auto all = names(static_cast<int>(elements));
  const auto ring = make_ring(all);
  int failed = 0;
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t i = 0; i < elements; ++i)
      if (draw(2) == 0) post(ring[all[i]])->hop(draw(world_pes()));
    std::vector<future<int>> walks;
    std::vector<int> lengths;
    for (int w = 0; w < 6; ++w) {
      std::vector<std::uint32_t> way;  // from the last to the first
      if (circles) {
        for (std::uint32_t n = 1 + draw(4); n != 0; --n) way.push_back(draw(elements));
      } else {
        for (std::uint32_t i = elements; i-- != 0;)
          if (draw(3) == 0) way.push_back(i);
      }
      if (way.empty()) continue;
      lengths.push_back(static_cast<int>(way.size()));
      const std::uint32_t first = way.back();
      way.pop_back();
      walks.push_back(start(ring[all[first]])->walk(way, elements));
    }
    for (std::size_t w = 0; w < walks.size(); ++w) {
      try {
        EXPECT_EQ(walks[w].get(), lengths[w]);
      } catch (const deadlock_error&) {
        ++failed;
      }
    }
  }
  if (!circles) {
    EXPECT_EQ(failed, 0);
  }
  destroy(ring);
}

TEST(array_deadlock, is_found_exactly_where_there_is_one_in_random_schedules) {
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 20 : 300);
  const std::uint64_t first = testing::test_seed();
  for (std::uint64_t seed = first; seed < first + runs; ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    std::string world = seed % 2 == 0 ? "machines=3,pes=2" : "machines=1,pes=5";
    world += ",jitter=3us,seed=" + std::to_string(seed);
    for (const bool circles : {false, true}) in_simulation(world, [&] { random_walks(seed, circles); });
    if (::testing::Test::HasFailure()) return;
  }
  in_world(4, [&] { random_walks(first, true); });
}

}  // namespace deadlock_tests
}  // namespace orrery
