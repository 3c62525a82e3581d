// SPDX-License-Identifier: Apache-2.0
// The adviser (--orrery-advise): programs that access their data by default are run with all
// behaviours that fit, in the simulator, and what is advised has to be nearly as fast as the best
// of them.
#include <orrery/shared/adviser.hpp>

#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_advice.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::testing {

namespace adviser_tests {

using vector = shared_vector<long>;

// --- programs: virtual nanoseconds ---------------------------------------------------------------

/// The sums of what is at most `reach` from the member's own elements: none needs the whole vector.
void smooth(team_member& t, vector from, vector to, choices h) {
  constexpr std::uint64_t reach = 3;
  const auto own = to.local_indices();
  const std::uint64_t first = own.front() < reach ? 0 : own.front() - reach;
  const std::uint64_t end = std::min(own.front() + own.size() + reach, from.size());
  read_part_as(h[0], t, from, from.part(first, end - first), [&](auto bf) {
    write_as(h[1], t, to, [&](auto bt) {
      with(bf, bt, [&](auto& in, auto& out) {
        for (const auto i : own) {
          long sum = 0;
          for (std::uint64_t k = i < reach ? 0 : i - reach; k < std::min(i + reach + 1, from.size()); ++k) sum += in[k];
          out[i] = sum;
        }
      });
    });
  });
  t.barrier();
}
std::int64_t smoothing(std::uint64_t n, const choices& h) {
  const vector from(n, distribution::block(), 2L);
  const vector to(n);
  const auto begin = now();
  spmd<&smooth>(team(), from, to, h);
  const auto time = (now() - begin).count();
  EXPECT_EQ(to[5].get(), 14);
  return time;
}

/// Each member adds up, in place, pairs of the elements of its neighbour.
void add_pairs(team_member& t, vector v, choices h) {
  const std::uint64_t each = v.size() / t.size();
  const std::uint64_t first = (t.rank() + 1) % t.size() * each;
  update_as(h[0], v, v.part(first, each), [&](auto b) {
    with(b, [&](auto& V) {
      for (std::uint64_t i = first + 1; i < first + each; ++i) {
        const long before = V[i - 1];
        const long here = V[i];
        V[i] = before + here;
      }
    });
  });
  t.barrier();
}
std::int64_t pairs(std::uint64_t each, const choices& h) {
  const vector v(each * world_pes(), distribution::block(), 1L);
  const auto begin = now();
  spmd<&add_pairs>(team(), v, h);
  const auto time = (now() - begin).count();
  EXPECT_EQ(v[each - 1].get(), static_cast<long>(each));
  return time;
}

/// Branch and bound of a kind: the nodes of each member's pieces of work read the best value so
/// far; the first of each piece has a better one, which it writes.
template <class Best>
void search_pieces(team_member& t, Best& best) {
  for (auto piece = static_cast<long>(t.rank()); piece < 24; piece += static_cast<long>(t.size()))
    for (long node = 0; node < 40; ++node) {
      compute(std::chrono::microseconds(1));
      const long found = 1000 - piece * 10 + node;
      if (found < static_cast<long>(best[0])) best[0].fetch_min(found);
      yield();
    }
}
void search_as_member(team_member& t, vector best, choices h) {
  if (h[0] == how::mostly) {
    with(read_mostly(best), [&](auto& b) { search_pieces(t, b); });
  } else {
    with(plainly(best), [&](auto& b) { search_pieces(t, b); });
  }
  t.barrier();
}
std::int64_t branch_and_bound(const choices& h) {
  const vector best(1, distribution::block(), 5000L);
  const auto begin = now();
  spmd<&search_as_member>(team(), best, h);
  const auto time = (now() - begin).count();
  EXPECT_EQ(best[0].get(), 1000 - 23 * 10);
  return time;
}

// --- what is advised -----------------------------------------------------------------------------

TEST(adviser, its_choice_is_nearly_the_best_where_a_part_of_a_vector_is_read) {
  const std::vector<place_to_choose> places{{only_reads, {how::plain, how::cached, how::part}},
                                            {only_writes, {how::plain, how::owned, how::released}}};
  for (const std::uint64_t n : {60U, 6000U})
    for (const auto& w : advice_worlds) {
      const auto chosen = expect_best_choice(w, [=](const choices& h) { return smoothing(n, h); }, places, {{0, 1}});
      if (n == 6000) {
        EXPECT_EQ(chosen.front(), how::part) << w;
      }
    }
}

TEST(adviser, its_choice_is_nearly_the_best_where_elements_of_others_are_changed) {
  const std::vector<place_to_choose> places{{reads_and_writes, {how::plain, how::updated, how::part_updated}}};
  for (const std::uint64_t each : {2U, 20U, 2000U})
    for (const auto& w : advice_worlds) {
      const auto chosen = expect_best_choice(w, [=](const choices& h) { return pairs(each, h); }, places, {{0}});
      if (each == 2000) {
        EXPECT_EQ(chosen.front(), how::part_updated) << w;
      }
    }
}

TEST(adviser, its_choice_is_nearly_the_best_for_branch_and_bound) {
  const std::vector<place_to_choose> places{
      {[](const advised& a) { return a.advice.remote_reads != 0; }, {how::plain, how::mostly}}};
  for (const auto& w : advice_worlds) expect_best_choice(w, &branch_and_bound, places, {{0}});
}

void add_up(team_member& t, vector sums) {
  for (int i = 0; i < 20; ++i) sums[static_cast<std::uint64_t>(i) % sums.size()] += 1;
  t.barrier();
  if (t.rank() == 0)
    for (std::uint64_t i = 0; i < sums.size(); ++i) (void)sums[i].get();
}

TEST(adviser, it_counts_accesses_and_names_their_places) {
  const auto advice = advice_for(
      "machines=3,net=10g",
      [](const choices&) {
        const vector sums(6);
        spmd<&add_up>(team(), sums);
        return std::int64_t{0};
      },
      0);
  ASSERT_EQ(advice.size(), 2U);
  const auto& changes = advice[0].advice.remote_writes != 0 ? advice[0].advice : advice[1].advice;
  const auto& reads = advice[0].advice.remote_writes != 0 ? advice[1].advice : advice[0].advice;
  EXPECT_EQ(changes.local_writes, 20U);  // a third
  EXPECT_EQ(changes.remote_writes, 40U);
  EXPECT_EQ(changes.behaviour, "");  // atomic changes: no behaviour has them but read_mostly
  EXPECT_EQ(reads.remote_reads, 4U);
  EXPECT_EQ(reads.distinct_remote_reads, 4U);
  EXPECT_EQ(reads.local_reads, 2U);
  EXPECT_EQ(reads.runs, 1U);
  EXPECT_EQ(reads.behaviour, "read_cache(v)");
  EXPECT_TRUE(reads.places.starts_with("adviser.test.cpp:")) << reads.places;
  EXPECT_NE(to_text(reads).find("4 remote reads: read_cache(v) takes "), std::string::npos) << to_text(reads);
  EXPECT_TRUE(to_text(reads).ends_with(" (2 local reads, in runs of 6 elements)")) << to_text(reads);
  EXPECT_NE(to_text(changes).find("no behaviour less (20 local writes, in runs of "), std::string::npos)
      << to_text(changes);
}

TEST(adviser, it_says_nothing_where_it_was_not_asked) {
  in_world(2, [] {
    const vector v(4);
    v[3] = 1;
    EXPECT_TRUE(advise_sharing().empty());
  });
}

}  // namespace adviser_tests
}  // namespace orrery::testing
