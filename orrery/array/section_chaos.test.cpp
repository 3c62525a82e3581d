// SPDX-License-Identifier: Apache-2.0
// Sections under everything at once: members move, end and are replaced by others, while several
// drivers broadcast and make members contribute. The work of every member is written down; the
// results have to agree. A failure is seen again with the seed that is printed.
#include <orrery/array/section.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <map>
#include <mutex>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace section_chaos_tests {

using testing::in_world;

using values = std::vector<std::int32_t>;

// The work of members and the results, by section and number of the reduction. Shared by the
// threads of the test.
struct judge_book {
  std::mutex mutex;
  std::map<std::pair<int, std::uint32_t>, std::multiset<std::int32_t>> given;
  std::map<std::pair<int, std::uint32_t>, std::multiset<std::int32_t>> results;
  std::vector<std::string> wrong;
};
judge_book* book = nullptr;

// {section, reduction, index...}
struct Clerk {
  void result(std::vector<values> all) const {
    const std::lock_guard lock(book->mutex);
    if (all.empty()) return book->wrong.push_back("an empty result");
    const std::pair key{all.front()[0], static_cast<std::uint32_t>(all.front()[1])};
    if (book->results.contains(key)) book->wrong.push_back("a reduction ended twice");
    for (const values& v : all) {
      if (v[0] != key.first || static_cast<std::uint32_t>(v[1]) != key.second)
        book->wrong.push_back("contributions to different reductions in one result");
      book->results[key].insert(v[2]);
    }
  }
};
ORRERY_PROCESS(Clerk, result);

struct Cell;
ORRERY_PROCESS(Cell, hear, give, hop, heard);
struct Cell : element<Cell> {
  void hear(int which, std::uint32_t driver, std::uint32_t number) {
    auto& last = last_of[{which, driver}];
    ++count_of[which];
    if (!moving && number != last + 1) {
      const std::lock_guard lock(book->mutex);
      book->wrong.push_back("a broadcast overtook another, or was lost");
    }
    last = number;
  }
  void give(int which, section<Cell> s, result_target t) {
    const auto n = ++given[which];
    {
      const std::lock_guard lock(book->mutex);
      book->given[{which, n}].insert(this_index());
    }
    contribute(s, std::vector<values>{{which, static_cast<std::int32_t>(n), this_index()}}, concat, t);
  }
  void hop(std::uint32_t pe) {
    moving = true;
    migrate_to(pe);
  }
  std::map<int, std::uint32_t> heard() const { return count_of; }
  template <class A>
  void serialize(A& a) {
    a & last_of & count_of & given & moving;
  }
  std::map<std::pair<int, std::uint32_t>, std::uint32_t> last_of;
  std::map<int, std::uint32_t> count_of;
  std::map<int, std::uint32_t> given;
  bool moving = false;
};

constexpr int elements = 24;
constexpr int sections = 3;

struct orders {
  std::uint64_t seed = 0;
  std::uint32_t driver = 0;
  std::uint32_t pes = 0;
  std::vector<section<Cell>> all;
  std::vector<std::uint32_t> said;  // broadcasts of this driver, by section
  result_target target;
  template <class A>
  void serialize(A& a) {
    a & seed & driver & pes & all & said & target;
  }
};
struct outcome {
  std::vector<std::uint32_t> said;
  std::set<std::int32_t> ended;
  template <class A>
  void serialize(A& a) {
    a & said & ended;
  }
};

// The driver ends and replaces elements whose index is its own number modulo the number of PEs.
outcome drive(array<Cell> a, orders o, std::set<std::int32_t> ended) {
  std::mt19937_64 random(o.seed);
  const auto below = [&](std::uint64_t n) { return static_cast<std::int32_t>(random() % n); };
  for (int step = 0; step < 100; ++step) {
    const int what = below(100);
    const auto s = static_cast<std::size_t>(below(sections));
    if (what < 30) {
      post(o.all[s])->hear(static_cast<int>(s), o.driver, ++o.said[s]);
    } else if (what < 50) {
      post(o.all[s])->give(static_cast<int>(s), o.all[s], o.target);
    } else if (what < 80) {
      const std::int32_t i = below(elements);
      if (i != 0 && static_cast<std::uint32_t>(i) % o.pes == o.driver)
        post(a[i])->hop(static_cast<std::uint32_t>(below(o.pes)));
    } else if (what < 83) {
      const std::int32_t i = below(elements);
      if (i != 0 && static_cast<std::uint32_t>(i) % o.pes == o.driver && !ended.contains(i)) {
        ended.insert(i);
        destroy(a[i]);
        for (bool made = false; !made;) try {
            a.insert_at(pe(static_cast<std::uint32_t>(below(o.pes))), i);  // it is no member
            made = true;
          } catch (const usage_error&) {  // the home has not heard of the end yet
            yield();
          }
      }
    } else {
      yield();
    }
  }
  return {o.said, ended};
}

void chaos(std::uint32_t pes, bool packed, std::uint32_t branching, std::uint64_t seed) {
  judge_book pages;
  book = &pages;
  in_world(pes, [&] {
    std::mt19937_64 random(seed);
    const auto a = create_array<Cell>(range<std::int32_t>{elements}, {.name = "cells", .always_serialize = packed});
    const auto clerk = spawn<Clerk>(here());
    std::vector<section<Cell>> all;
    std::vector<std::set<std::int32_t>> members(sections);
    for (auto& m : members) {
      m.insert(0);  // never ends or moves
      for (std::int32_t i = 1; i < elements; ++i)
        if (random() % 2 == 0) m.insert(i);
      all.push_back(create_section(a, std::vector<std::int32_t>(m.begin(), m.end()), branching));
    }
    std::vector<outcome> done(pes, {std::vector<std::uint32_t>(sections), {}});
    for (int round = 0; round < 3; ++round) {
      std::vector<future<outcome>> running;
      for (std::uint32_t k = 0; k < pes; ++k)
        running.push_back(start_call<&drive>(
            pe(k), a, orders{random(), k, pes, all, done[k].said, result_to<&Clerk::result>(clerk)}, done[k].ended));
      for (std::uint32_t k = 0; k < pes; ++k) done[k] = running[k].get();
      quiescence(a);
      std::set<std::int32_t> ended;
      for (const auto& d : done) ended.insert(d.ended.begin(), d.ended.end());
      for (std::int32_t i = 0; i < elements; ++i) {
        const auto heard = a[i]->heard();
        for (int s = 0; s < sections; ++s) {
          std::uint32_t said = 0;
          for (const auto& d : done) said += d.said[static_cast<std::size_t>(s)];
          const bool member = members[static_cast<std::size_t>(s)].contains(i) && !ended.contains(i);
          EXPECT_EQ(heard.contains(s) ? heard.at(s) : 0, member ? said : 0) << "element " << i << " of section " << s;
        }
      }
      quiescence();  // the clerk has heard of all results
      const std::lock_guard lock(pages.mutex);
      EXPECT_EQ(pages.results, pages.given);
      for (const auto& w : pages.wrong) ADD_FAILURE() << w;
      if (::testing::Test::HasFailure()) return;
    }
    for (const auto& s : all) destroy(s);
    destroy(a);
  });
}

TEST(section_chaos, agrees_with_what_the_members_did) {
  std::uint64_t seed = testing::test_seed();
  const std::uint64_t runs = testing::number_from("ORRERY_TEST_RUNS", testing::slowed_down ? 2 : 400);
  for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i, ++seed) {
    SCOPED_TRACE("ORRERY_TEST_SEED=" + std::to_string(seed));
    chaos(1 + static_cast<std::uint32_t>(seed % 4), seed % 3 == 0, 1 + static_cast<std::uint32_t>(seed % 5), seed);
  }
}

}  // namespace section_chaos_tests
}  // namespace orrery
