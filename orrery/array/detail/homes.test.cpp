// SPDX-License-Identifier: Apache-2.0
// Several homes of an index, and the order of messages while elements begin.
#include <orrery/array/array.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace homes_tests {

using testing::in_world;
using testing::what_is_thrown;

TEST(homes, are_as_far_from_each_other_as_can_be) {
  for (std::uint32_t pes = 1; pes <= 17; ++pes)
    for (std::uint32_t count = 1; count <= pes; ++count) {
      const detail::homes h(pes, count);
      for (std::uint32_t first = 0; first < pes; ++first) {
        const auto others = h.others(first);
        std::set<std::uint32_t> all(others.begin(), others.end());
        all.insert(first);
        ASSERT_EQ(all.size(), count);
        for (std::uint32_t pe = 0; pe < pes; ++pe) {
          ASSERT_EQ(h.contains(first, pe), all.contains(pe));
          const auto [below, above] = h.around(first, pe);
          const auto distance = [&](std::uint32_t from, std::uint32_t to) { return (to + pes - from) % pes; };
          std::uint32_t nearest_below = first;
          for (const auto p : all)
            if (distance(p, pe) < distance(nearest_below, pe)) nearest_below = p;
          ASSERT_EQ(below, nearest_below);
          ASSERT_TRUE(all.contains(above));
          ASSERT_LE(distance(pe, above), (pes + count - 1) / count);
        }
      }
    }
}

TEST(homes, are_one_on_each_node_if_there_are_as_many) {
  const detail::homes h(24, 6);  // six nodes of four
  for (std::uint32_t first = 0; first < 24; ++first) {
    std::set<std::uint32_t> nodes{first / 4};
    for (const std::uint32_t pe : h.others(first)) nodes.insert(pe / 4);
    EXPECT_EQ(nodes.size(), 6U);
  }
}

TEST(homes, are_at_most_all_pes_and_at_least_one) {
  EXPECT_EQ(detail::homes(4, 0).count(), 1U);
  EXPECT_EQ(detail::homes(4, 100).count(), 4U);
}

// --- order while elements begin ------------------------------------------------------------------

struct Reader;
ORRERY_PROCESS(Reader, read, seen, hop);
struct Reader : element<Reader> {
  void read(std::uint32_t who, std::uint32_t number) {
    auto& n = last[who];
    if (number != n + 1) wrong.push_back({who, n, number});
    n = number;
  }
  struct report {
    std::map<std::uint32_t, std::uint32_t> last;
    std::vector<std::array<std::uint32_t, 3>> wrong;
    template <class A>
    void serialize(A& a) {
      a & last & wrong;
    }
  };
  report seen() const { return {last, wrong}; }
  void hop(std::uint32_t to) { migrate_to(to); }
  template <class A>
  void serialize(A& a) {
    a & last & wrong;
  }
  std::map<std::uint32_t, std::uint32_t> last;
  std::vector<std::array<std::uint32_t, 3>> wrong;
};

constexpr int books = 12;

// Sends numbered messages to indices, and creates the elements of some, somewhere, early or late.
std::vector<std::uint32_t> write_all(array<Reader> a, std::uint64_t seed, std::uint32_t me, std::uint32_t pes) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<std::uint32_t> sent(books, 0);
  std::vector<int> mine;
  for (int i = 0; i < books; ++i)
    if (static_cast<std::uint32_t>(i) % pes == me) mine.push_back(i);
  std::ranges::shuffle(mine, random);
  for (int step = 0; step < 200 || !mine.empty(); ++step) {
    const std::uint32_t what = below(100);
    if (what < 80) {
      const auto i = static_cast<int>(below(books));
      post(a[i])->read(me, ++sent[static_cast<std::size_t>(i)]);
    } else if (what < 85 && !mine.empty()) {
      const auto where = pe(below(pes));
      if (below(2) == 0) {
        a.insert_at(where, mine.back());
      } else {
        a.post_insert_at(where, mine.back());
      }
      mine.pop_back();
    } else {
      yield();
    }
  }
  return sent;
}

class creation_keeps_order : public ::testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>> {
};

TEST_P(creation_keeps_order, however_elements_begin) {
  const std::uint32_t pes = std::get<0>(GetParam());
  const std::uint32_t homes = std::get<1>(GetParam());
  const std::uint32_t cached = std::get<2>(GetParam());
  std::uint64_t seed = testing::test_seed();
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 2 : 40);
  for (std::uint64_t run = 0; run < runs && !HasFailure(); ++run, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    in_world(pes, [&] {
      std::mt19937_64 random(seed);
      // A deleted index is forgotten at once: then messages to it are early again.
      auto a = create_array<Reader>({.name = "readers", .homes = homes, .cached = cached, .deleted = 0});
      for (int life = 0; life < 3; ++life) {
        std::vector<future<std::vector<std::uint32_t>>> all;
        for (std::uint32_t p = 0; p < pes; ++p) all.push_back(start_call<&write_all>(pe(p), a, random(), p, pes));
        std::vector<std::vector<std::uint32_t>> sent;
        for (auto& f : all) sent.push_back(f.get());
        quiescence();
        for (int i = 0; i < books; ++i) {
          const auto got = a[i]->seen();
          for (std::uint32_t p = 0; p < pes; ++p) {
            const auto it = got.last.find(p);
            EXPECT_EQ(it != got.last.end() ? it->second : 0, sent[p][static_cast<std::size_t>(i)]) << "PE " << p;
          }
          for (const auto& [who, before, number] : got.wrong)
            ADD_FAILURE() << "element " << i << " got " << number << " of PE " << who << " after " << before;
        }
        for (int i = 0; i < books; ++i) post(a[i])->hop(static_cast<std::uint32_t>(random() % pes));
        quiescence();
        for (int i = 0; i < books; ++i) destroy(a[i]);
        quiescence();
      }
      destroy(a);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(array, creation_keeps_order,
                         ::testing::Combine(::testing::Values(2U, 4U), ::testing::Values(1U, 2U, 4U),
                                            ::testing::Values(1U, 1000U)));

// --- what homes know -----------------------------------------------------------------------------

struct Stone;
ORRERY_PROCESS(Stone, touch, where, hop);
struct Stone : element<Stone> {
  void touch() { ++touched; }
  std::uint32_t where() const { return this_pe(); }
  void hop(std::uint32_t to) { migrate_to(to); }
  template <class A>
  void serialize(A& a) {
    a & touched;
  }
  int touched = 0;
};

// First messages of this PE to all elements.
void touch_all(array<Stone> a, int n) {
  for (int i = 0; i < n; ++i) post(a[i])->touch();
}

struct hop_count {
  std::uint64_t routed = 0;
  std::uint64_t hops = 0;
};
hop_count hops_of(const testing::statistics& all) {
  hop_count n;
  for (const auto& c : all) {
    n.routed += c.routed;
    n.hops += c.hops;
  }
  return n;
}

// Elements that have moved, or were created anywhere; each PE sends to all for the first time.
testing::statistics touch_everything(std::uint32_t pes, std::uint32_t homes, bool bulk) {
  return in_world(pes, [&] {
    constexpr int n = 60;
    std::mt19937_64 random(1);
    array<Stone> a;
    if (bulk) {
      a = create_array<Stone>(range<int>{n}, {.homes = homes}, placement_map<int>::cyclic(n));
    } else {
      a = create_array<Stone>({.homes = homes});
      for (int i = 0; i < n; ++i) a.insert_at(pe(static_cast<std::uint32_t>(random() % pes)), i);
    }
    for (int i = 0; i < n / 2; ++i) start_migrate(a[i], static_cast<std::uint32_t>(random() % pes)).get();
    quiescence();
    // The messages of main itself are not of interest.
    for (std::uint32_t p = 1; p < pes; ++p) call<&touch_all>(pe(p), a, n);
    quiescence();
    destroy(a);
  });
}

TEST(homes, know_where_elements_are) {
  for (const bool bulk : {true, false}) {
    const auto one = hops_of(touch_everything(4, 1, bulk));
    const auto all = hops_of(touch_everything(4, 4, bulk));
    // many first messages take a detour
    EXPECT_GT(one.hops, one.routed + 60) << "of " << one.routed;
    // none, but for those of main while elements moved
    EXPECT_LE(all.hops, all.routed + 30) << "of " << all.routed;
  }
}

std::size_t told(array<Stone> a) { return a.footprint().told; }

TEST(homes, forget_elements_that_have_ended) {
  in_world(4, [] {
    auto a = create_array<Stone>(range<int>{100}, {.homes = 3});
    for (int i = 0; i < 100; ++i) post_migrate(a[i], static_cast<std::uint32_t>(i) % 4);
    a.insert_at(pe(3), 100);
    quiescence();
    const auto known = [&] {
      std::size_t n = 0;
      for (std::uint32_t p = 0; p < 4; ++p) n += call<&told>(pe(p), a);
      return n;
    };
    EXPECT_EQ(known(), 202U);
    for (int i = 0; i < 100; ++i) destroy(a[i]);
    quiescence();
    EXPECT_EQ(known(), 2U);
    destroy(a);
  });
}

TEST(homes, of_an_index_admit_one_element) {
  in_world(4, [] {
    auto a = create_array<Stone>({.name = "stones", .homes = 4});
    for (std::uint32_t p = 0; p < 4; ++p) {
      a.insert_at(pe(p), 7);
      for (std::uint32_t q = 0; q < 4; ++q) {
        EXPECT_NE(what_is_thrown<usage_error>([&] { a.insert_at(pe(q), 7); }).find("stones[7]"), std::string::npos);
      }
      EXPECT_EQ(a[7]->where(), p);
      destroy(a[7]);
      EXPECT_NE(what_is_thrown<process_gone>([&] { a[7]->touch(); }).find("stones[7]"), std::string::npos);
    }
    destroy(a);
  });
}

}  // namespace homes_tests
}  // namespace orrery
