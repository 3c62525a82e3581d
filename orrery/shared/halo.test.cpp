// SPDX-License-Identifier: Apache-2.0
// Halo caches, of matrices with room for a halo and without.
#include <orrery/shared/shared.hpp>

#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_text.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace halo_tests {

using testing::holds;
using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where they are messages.
class halos : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(halos);

std::uint64_t mistakes_in_halo(team_member& t, shared_matrix<int> m, std::uint64_t width, bool periodic) {
  const auto rows = static_cast<std::int64_t>(m.row_count());
  const auto columns = static_cast<std::int64_t>(m.column_count());
  const auto w = static_cast<std::int64_t>(width);
  std::uint64_t wrong = 0;
  with(halo_cache(m, t, width, periodic ? edges::periodic : edges::open), [&](auto& a) {
    for (const auto i : a.rows())
      for (const auto j : a.columns())
        for (std::int64_t r = i - w; r <= i + w; ++r)
          for (std::int64_t c = j - w; c <= j + w; ++c) {
            if (!periodic && (r < 0 || c < 0 || r >= rows || c >= columns)) continue;
            wrong += a[r, c] == (r + rows) % rows * 100 + (c + columns) % columns ? 0 : 1;
          }
  });
  return wrong;
}
TEST_P(halos, have_what_is_around_with_corners) {
  in_each([] {
    for (const distribution& d :
         {distribution::block(), distribution::columns(), distribution::tiles(1, 2), distribution::bounds({0, 1, 5}),
          distribution::tiles(2, 1), distribution::block().with_halo(3), distribution::block().with_halo(1),
          distribution::bounds({0, 1, 5}).with_halo(3), distribution::tiles(1, 2).with_halo(3),
          distribution::columns().with_halo(4), distribution::on(pe(0)).with_halo(3)}) {
      const shared_matrix<int> m(5, 4, d);
      for (std::uint64_t i = 0; i < 5; ++i)
        for (std::uint64_t j = 0; j < 4; ++j) m[i, j] = static_cast<int>(i * 100 + j);
      for (const std::uint64_t width : {1, 3})
        for (const bool periodic : {false, true})
          for (const std::uint64_t wrong : spmd<&mistakes_in_halo>(team(everywhere(), 5), m, width, periodic))
            EXPECT_EQ(wrong, 0U) << "width " << width << (periodic ? ", periodic" : "");
      destroy(m);
    }
    const shared_matrix<int> cyclic(5, 4, distribution::cyclic());
    holds(what_is_thrown<usage_error>([&] { spmd<&mistakes_in_halo>(team(), cyclic, 1U, false); }),
          "do not follow each other");
  });
}

std::pair<std::int64_t, bool> pitch_and_place(team_member& t, shared_matrix<int> m) {
  const int* own = nullptr;
  with(owner_computes(m, t), [&](auto& a) {
    if (!a.rows().empty()) own = &a[*a.rows().begin(), *a.columns().begin()];
  });
  t.barrier();  // nobody is owner any more, who might write what others view
  return with(halo_cache(m, t, 1), [&](auto& a) {
    if (a.rows().empty()) return std::pair{std::int64_t{0}, true};
    const auto row = *a.rows().begin();
    return std::pair{a.pitch(), &a[row, *a.columns().begin()] == own};
  });
}
TEST_P(halos, with_room_for_them_show_the_elements_where_they_are) {
  in_each([] {
    const shared_matrix<int> with_room(6, 4, distribution::block().with_halo(2));
    for (const auto& [pitch, in_place] : spmd<&pitch_and_place>(team(), with_room)) {
      EXPECT_EQ(pitch, 4 + 2 * 2);
      EXPECT_TRUE(in_place);
    }
    const shared_matrix<int> without(6, 4);
    for (const auto& [pitch, in_place] : spmd<&pitch_and_place>(team(), without)) {
      EXPECT_EQ(pitch, 4);
      EXPECT_FALSE(in_place);
    }
  });
}

/// m <- the sum of the nine around, `steps` times.
void sum_around(team_member& t, shared_matrix<long> now, shared_matrix<long> next, int steps) {
  for (int s = 0; s < steps; ++s) {
    with(halo_cache(now, t, 1, edges::periodic), owner_computes(next, t), [](auto& a, auto& b) {
      for (const auto i : a.rows())
        for (const auto j : a.columns()) {
          long sum = 0;
          for (std::int64_t r = i - 1; r <= i + 1; ++r)
            for (std::int64_t c = j - 1; c <= j + 1; ++c) sum += a[r, c];
          b[i, j] = sum % 1009;
        }
    });
    t.barrier();
    std::swap(now, next);
  }
}
std::vector<long> after_sums(const distribution& how, std::size_t members) {
  constexpr int steps = 6;
  const shared_matrix<long> a(7, 5, how);
  const shared_matrix<long> b(7, 5, how, 3);
  for (std::uint64_t i = 0; i < 7; ++i)
    for (std::uint64_t j = 0; j < 5; ++j) a[i, j] = static_cast<long>(i * 7 + j * j);
  spmd<&sum_around>(team(everywhere(), members), a, b, steps);
  std::vector<long> all(35);
  copy(a.rows(0, 7), std::span(all));
  destroy(a);
  destroy(b);
  return all;
}
TEST_P(halos, give_the_same_results_with_room_and_without) {
  in_each([] {
    const std::vector<long> copied = after_sums(distribution::block(), 3);
    for (const std::size_t members : {3, 7})
      for (const distribution& d : {distribution::block(), distribution::columns(), distribution::tiles(3, 1),
                                    distribution::bounds({2, 2, 7}), distribution::on(pe(2)).over({2})})
        for (const std::uint64_t width : {1, 4}) EXPECT_EQ(after_sums(d.with_halo(width), members), copied) << width;
  });
}

double row_and_column(std::uint64_t i, std::uint64_t j) { return static_cast<double>(i * 10 + j); }

TEST_P(halos, with_room_leave_all_other_accesses_as_they_were) {
  in_each([] {
    const shared_matrix<double> m(5, 6, distribution::tiles(1, 3).with_halo(2), 4.5);
    EXPECT_EQ((m[4, 5]), 4.5);
    m.fill(2);
    for (std::uint64_t i = 0; i < 5; ++i)
      for (std::uint64_t j = 0; j < 6; ++j) EXPECT_EQ((m[i, j]), 2);
    generate<&row_and_column>(m);
    with(read_cache(m), [](auto& c) { EXPECT_EQ((c[3, 4]), 34); });
    with(read_view(m.part(1, 3, 1, 4)), [](auto& c) { EXPECT_EQ((c[2, 3]), 23); });
    with(release(m), [](auto& w) { w[2, 2] = 7; });
    m[2, 3] += 1;
    const auto other = redistribute(m, distribution::block());
    EXPECT_EQ((other[2, 2]), 7);
    EXPECT_EQ((other[2, 3]), 24);
    EXPECT_EQ((other[4, 5]), 45);
  });
}

TEST_P(halos, with_room_are_refused_where_rows_must_follow_each_other) {
  in_each([] {
    const shared_matrix<int> m(4, 4, distribution::block().with_halo(1));
    holds(what_is_thrown<usage_error>([&] { (void)m.local(); }), "take row(i)");
    holds(what_is_thrown<usage_error>([&] { with(owner_computes(m), [](auto& a) { (void)a.span(); }); }),
          "room for a halo");
    const shared_matrix<int> one(4, 4, distribution::on(here()).with_halo(1));
    holds(what_is_thrown<usage_error>([&] { with(read_view(one), [](auto& a) { (void)a.span(); }); }),
          "take row(i), or a read_cache");
  });
}

TEST_P(halos, with_room_that_cannot_be_had_are_refused) {
  in_each([] {
    const auto made = [](const distribution& d) {
      return what_is_thrown<usage_error>([&] { const shared_matrix<int> m(4, 4, d); });
    };
    holds(made(distribution::cyclic().with_halo(1)), "deal out blocks");
    holds(made(distribution::block().with_halo(5)), "wider than the 4 x 4");
    holds(what_is_thrown<usage_error>([] { const shared_vector<int> v(4, distribution::block().with_halo(1)); }),
          "only a matrix");
    holds(what_is_thrown<usage_error>(
              [] { const shared_matrix<std::string> v(4, 4, distribution::block().with_halo(1)); }),
          "trivially copyable");
  });
}

void open_halo(team_member& t, shared_matrix<int> m, std::uint64_t width, bool periodic) {
  with(halo_cache(m, t, width, periodic ? edges::periodic : edges::open), [](auto&) {});
}
TEST_P(halos, are_as_wide_as_the_matrix_at_most) {
  in_each([] {
    const shared_matrix<int> m(4, 6);
    for (const bool periodic : {false, true}) {
      spmd<&open_halo>(team(), m, std::uint64_t{4}, periodic);
      holds(what_is_thrown<usage_error>([&] { spmd<&open_halo>(team(), m, std::uint64_t{5}, periodic); }),
            "a halo of width 5 is wider than its 4 x 6 elements");
    }
  });
}

void write_what_is_shown(team_member& t, shared_matrix<int> m) {
  with(halo_cache(m, t), [&](auto&) { with(owner_computes(m, t), [](auto&) {}); });
}
// Others read meanwhile what the halo is beside: the thread sanitizer says whether it is written.
std::int64_t look_beside_halos(team_member& t, shared_matrix<std::int64_t> m) {
  std::int64_t sum = 0;
  for (int round = 0; round < 50; ++round) {
    with(halo_cache(m, t, 2, edges::periodic), [&](auto& a) {
      if (!a.rows().empty()) sum += a[*a.rows().begin(), -2] + a[*a.rows().begin(), 3];
    });
    for (std::uint64_t i = 0; i < m.row_count(); ++i)
      for (std::uint64_t j = 0; j < m.column_count(); ++j) sum += m[i, j];
  }
  return sum;
}
TEST_P(halos, as_wide_as_the_matrix_write_nothing_of_what_they_are_beside) {
  in_each([] {
    const shared_matrix<std::int64_t> m(6, 2, distribution::block().with_halo(2), 1);
    for (const std::int64_t sum : spmd<&look_beside_halos>(team(), m)) EXPECT_EQ(sum, 50 * (2 + 12));
  });
}

TEST_P(halos, with_room_let_nobody_write_what_they_show) {
  in_each([] {
    const shared_matrix<int> room(6, 4, distribution::on(pe(0)).with_halo(1));
    holds(what_is_thrown<usage_error>([&] { spmd<&write_what_is_shown>(team(pe(0), 1), room); }), "halo.test.cpp");
    const shared_matrix<int> copied(6, 4, distribution::on(pe(0)));
    EXPECT_NO_THROW(spmd<&write_what_is_shown>(team(pe(0), 1), copied));
  });
}

void write_beside_a_halo(team_member& t, shared_matrix<int> m) {
  if (t.rank() == 0) {
    with(halo_cache(m, t, 1), [&](auto&) {
      t.barrier();
      t.barrier();
    });
  } else {
    t.barrier();
    holds(what_is_thrown<usage_error>([&] { with(release(m.rows(3, 1)), [](auto&) {}); }), "may write it");
    with(release(m.rows(4, 2)), [](auto& w) { w[4, 0] = 1; });
    t.barrier();
  }
}
TEST_P(halos, with_room_guard_the_rows_of_other_members_that_they_show) {
  in_each([] {
    const shared_matrix<int> m(6, 4, distribution::on(pe(0)).with_halo(1));
    spmd<&write_beside_a_halo>(team(pe(0), 2), m);
    EXPECT_EQ((m[4, 0]), 1);
  });
}

}  // namespace halo_tests
}  // namespace orrery
