// SPDX-License-Identifier: Apache-2.0
// The checker of accesses (--orrery-check-sharing) on threads and simulated machines; between OS
// processes: tests/shared.
#include <orrery/shared/sharing_check.hpp>

#include <orrery/process/detail/simulation.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/scheduler/sanitizers.hpp>
#include <orrery/shared/internal/test_sharing.hpp>
#include <orrery/shared/shared.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery::testing {
namespace sharing_check_tests {

scheduler::node_settings checked(std::uint32_t pes = 0) {
  scheduler::node_settings s;
  s.pes = pes;
  s.pe.follow_order = true;
  return s;
}

void expect_none(const std::vector<std::string>& lines) {
  for (const std::string& l : lines) ADD_FAILURE() << l;
}

#if !defined(ORRERY_TSAN)  // which finds the mistakes itself
TEST(sharing_check, planted_mistakes_are_found_on_threads) {
  for (const std::uint32_t pes : {2U, 3U}) in_world(checked(pes), [] { expect_none(planted_mistakes_missed()); });
}
#endif

TEST(sharing_check, ordered_accesses_raise_no_alarm_on_threads) {
  for (const std::uint32_t pes : {1U, 2U, 4U}) in_world(checked(pes), [] { expect_none(false_alarms()); });
}

void write_first(team_member&, shared_vector<long> v) { v[0] = 1; }
TEST(sharing_check, an_old_object_is_checked_after_many_that_were_destroyed) {
  in_world(checked(2), [] {
    const shared_vector<long> v(1, distribution::on(here()));
    for (int i = 0; i < 300; ++i) {
      const shared_vector<long> other(1, distribution::on(here()));
      other[0] = 1;
      if (i % 100 == 0) (void)sharing_mistakes();  // they are judged
      destroy(other);
    }
    expect_none(sharing_mistakes());
    spmd<&write_first>(team(), v);
    EXPECT_EQ(sharing_mistakes().size(), 1U);
  });
}

/// The second member writes a row that the first one's halo has copied, or one that it shows.
void write_a_row(team_member& t, shared_matrix<long> m, std::uint64_t row) {
  if (t.rank() == 0) {
    with(halo_cache(m, t, 1), [&](auto&) {
      t.barrier();
      t.barrier();
    });
  } else {
    t.barrier();
    m[row, 0] = 1;
    t.barrier();
  }
}
TEST(sharing_check, a_halo_views_only_what_it_shows_in_place) {
  in_world(checked(2), [] {
    const shared_matrix<long> m(4, 3, distribution::block().with_halo(1));
    spmd<&write_a_row>(team(), m, std::uint64_t{2});
    expect_none(sharing_mistakes());
    spmd<&write_a_row>(team(), m, std::uint64_t{1});
    EXPECT_EQ(sharing_mistakes().size(), 1U);
  });
}

TEST(sharing_check, parts_of_absurd_size_are_refused_at_once) {
  in_world(checked(1), [] {
    const shared_vector<long> a(8, distribution::block());
    const shared_vector<long> b(8, distribution::block());
    const std::size_t absurd = std::size_t{0} - 2;
    EXPECT_THROW(copy(a.part(0, absurd), b.part(0, absurd)), std::out_of_range);
  });
}

class simulated_sharing_check : public ::testing::TestWithParam<std::uint64_t> {
 protected:
  static void in_machines(test_body body) {
    const std::uint64_t seed = test_seed() + GetParam();
    in_simulation(
        parse_simulation(fmt::format("machines={},pes={},jitter=5us,seed={}", 2 + seed % 3, 1 + seed % 2, seed)),
        checked(), body);
  }
};
INSTANTIATE_TEST_SUITE_P(seeds, simulated_sharing_check, ::testing::Range<std::uint64_t>(0, 8));

TEST_P(simulated_sharing_check, planted_mistakes_are_found_on_machines) {
  in_machines([] { expect_none(planted_mistakes_missed()); });
}
TEST_P(simulated_sharing_check, ordered_accesses_raise_no_alarm_on_machines) {
  in_machines([] { expect_none(false_alarms()); });
}

void look(shared_vector<long> v, int times) {
  for (int i = 0; i < times; ++i) (void)v[0].get();
}
void take(shared_vector<long> v, int times) {
  for (int i = 0; i < times; ++i) (void)v[0].exchange(1);
}
/// Another PE accesses an element of a third one, or of its own: the counts of the one that judges.
template <auto F>
scheduler::counters counts_of_judge(int times, std::uint32_t owner, const char* more = "") {
  return in_simulation(parse_simulation(fmt::format("machines=3,net=10g{}", more)), checked(), [&] {
    const shared_vector<long> v(1, distribution::on(pe(owner)));
    call<F>(pe(1), v, times);
    expect_none(sharing_mistakes());
  })[0];
}
TEST(sharing_check, looks_that_find_nothing_new_are_told_of_once) {
  EXPECT_LE(counts_of_judge<&look>(2000, 2).received, counts_of_judge<&look>(20, 2).received + 2);
  const char* const other_times = ",carriers=on";  // the judge has answered before the next look
  EXPECT_LE(counts_of_judge<&look>(2000, 2, other_times).received,
            counts_of_judge<&look>(20, 2, other_times).received + 2);
}
TEST(sharing_check, a_batch_has_few_of_many_changes_that_are_alike) {
  EXPECT_LE(counts_of_judge<&take>(2000, 1).received_bytes, counts_of_judge<&take>(20, 1).received_bytes + 2000);
}

TEST(sharing_check, nothing_is_recorded_where_it_was_not_asked_for) {
  in_world(2, [] {
    const shared_vector<long> v(2);
    v[0] = 1;
    with(release(v), [](auto& w) { w[1] = 1; });
    EXPECT_TRUE(sharing_mistakes().empty());
    EXPECT_FALSE(detail::checks_sharing());
  });
}

}  // namespace sharing_check_tests
}  // namespace orrery::testing
