// SPDX-License-Identifier: Apache-2.0
// The adviser on the programs of examples/shared without their scopes: it advises the scopes that
// they have, or some that take as long.
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/internal/test_advice.hpp>
#include <orrery/shared/shared.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "../../examples/shared/diffusion/diffuse.hpp"
#include "../../examples/shared/mm2/multiply.hpp"
#include "../../examples/shared/psrs/phases.hpp"
#include "../../examples/shared/tsp/team_search.hpp"

namespace orrery::testing {
namespace {

// --- two products: the loop of the example in all scopes that fit --------------------------------

void multiply_as(team_member& t, const shared_matrix<int>& a, const shared_matrix<int>& b, const shared_matrix<int>& c,
                 const choices& h) {
  read_as(h[0], t, a, [&](auto ba) {
    read_as(h[1], t, b, [&](auto bb) {
      write_as(h[2], t, c, [&](auto bc) {
        with(ba, bb, bc,
             [&](auto& A, auto& B, auto& C) { mm2::multiply_elements(c.local_rows(), c.row_count(), A, B, C); });
      });
    });
  });
  t.barrier();
}
void two_phases_as(team_member& t, shared_matrix<int> p, shared_matrix<int> q, shared_matrix<int> r, choices h) {
  multiply_as(t, q, r, p, h);
  multiply_as(t, q, p, r, h);
}
/// Of the example itself if there are no choices.
std::int64_t two_products(const choices& h) {
  const std::uint64_t n = 12;
  const shared_matrix<int> p(n, n);
  const shared_matrix<int> q(n, n, distribution::block(), 2);
  const shared_matrix<int> r(n, n, distribution::block(), 3);
  const auto begin = now();
  if (h.empty()) {
    spmd<&mm2::two_phases>(team(), p, q, r, mm2::settings{});
  } else if (std::ranges::count(h, how::plain) == 3) {
    mm2::settings plain;
    plain.plain = true;
    spmd<&mm2::two_phases>(team(), p, q, r, plain);
  } else {
    spmd<&two_phases_as>(team(), p, q, r, h);
  }
  const auto time = (now() - begin).count();
  EXPECT_EQ((r[7, 1].get()), 2 * (2 * 3 * 12) * 12);
  return time;
}

TEST(advice_on_examples, mm2_has_the_scopes_that_are_advised) {
  const std::vector<place_to_choose> places{
      {[](const advised& a) { return a.object == 1; }, {how::plain, how::owned}},
      {[](const advised& a) { return a.object != 1 && only_reads(a); }, {how::plain, how::cached, how::part}},
      {only_writes, {how::plain, how::owned, how::released}}};
  for (const auto& w : advice_worlds) {
    const choices chosen = expect_best_choice(w, &two_products, places, {{0, 1, 2}});
    EXPECT_EQ(chosen, (choices{how::owned, how::cached, how::owned})) << w;
    EXPECT_LE(static_cast<double>(time_of(w, &two_products, chosen)),
              1.05 * static_cast<double>(time_of(w, &two_products, {})))
        << w;
  }
}

TEST(advice_on_examples, has_the_times_of_the_simulator) {
  const std::string_view sim = "machines=4,net=10g";
  const auto advice = advice_for(sim, &two_products, 3);
  double by_default = 0;
  double by_advice = 0;
  for (const auto& a : advice) {
    by_default += a.advice.seconds_by_default;
    by_advice += a.advice.seconds;
  }
  const std::int64_t rest = time_of(sim, &two_products, {how::owned, how::cached, how::owned});
  const auto measured =
      static_cast<double>(time_of(sim, &two_products, {how::plain, how::plain, how::plain}) - rest) / 1e9;
  EXPECT_NEAR((by_default - by_advice) / measured, 1, 0.1);
}

TEST(advice_on_examples, tells_rereads) {
  const auto advice = advice_for("machines=4,net=10g", &two_products, 3);
  const auto b = std::ranges::find_if(advice, [](const advised& a) { return a.advice.remote_reads != 0; });
  ASSERT_NE(b, advice.end());
  EXPECT_NE(to_text(b->advice).find("1296 remote reads, each element 3 times: read_cache(m) takes "), std::string::npos)
      << to_text(b->advice);
}

TEST(advice_on_examples, tells_contiguity) {
  const auto advice = advice_for("machines=4,net=10g", &two_products, 3);
  for (const auto& [object, a] : advice) {
    // B is read down its columns, A and C row after row.
    EXPECT_EQ(to_text(a).ends_with("in runs of 1 element)"), a.remote_reads != 0) << to_text(a);
    EXPECT_GE(a.elements_in_a_run(), a.remote_reads != 0 ? 1 : 12);
  }
  const auto own = std::ranges::find_if(advice, [](const advised& a) { return only_writes(a); });
  ASSERT_NE(own, advice.end());
  EXPECT_NE(to_text(own->advice).find(" (144 local writes, in runs of "), std::string::npos) << to_text(own->advice);
}

// --- diffusion: the loop of the example in all scopes that fit -------------------------------------

/// A cache of rows, whose indices begin again at the edges.
struct cached_torus {
  shared_matrix<double> of;
  std::uint64_t first;
  std::uint64_t count;
  class handle : public cached_matrix<double> {
   public:
    explicit handle(const cached_torus& b)
        : cached_matrix<double>(read_cache(b.of.rows(b.first, b.count))), n_(b.of.row_count()) {}
    const double& operator[](any_index i, any_index j) const {
      return cached_matrix<double>::operator[](inside(i, n_).at, inside(j, column_count()).at);
    }

   private:
    std::uint64_t n_;
  };
};

using cells = shared_matrix<double>;

void step_as(team_member& t, const cells& now, const cells& next, const choices& h) {
  const auto step = [&](auto from) {
    write_as(h[1], t, next, [&](auto to) {
      with(from, to, [&](auto& a, auto& b) {
        for (const auto row : next.local_rows())
          for (const auto column : next.local_columns()) {
            const auto i = static_cast<std::int64_t>(row);
            const auto j = static_cast<std::int64_t>(column);
            b[row, column] = diffusion::next_value(a[i, j], a[i - 1, j], a[i + 1, j], a[i, j - 1], a[i, j + 1]);
          }
      });
    });
  };
  if (h[0] == how::halo) return step(halo_cache(now, t, 1, edges::periodic));
  if (h[0] == how::plain) return step(plainly(now));
  const std::uint64_t first = now.local_rows().front();
  const std::uint64_t count = now.local_rows().size();
  const bool at_edge = first == 0 || first + count == now.row_count();
  if (h[0] == how::cached || at_edge) return step(cached_torus{now, 0, now.row_count()});
  step(cached_torus{now, first - 1, count + 2});
}
void diffuse_as(team_member& t, cells now, cells next, int steps, choices h) {
  for (int n = 0; n < steps; ++n) {
    step_as(t, now, next, h);
    t.barrier();
    std::swap(now, next);
  }
}

/// Of the example itself if there are no choices, and if all are plain.
std::int64_t diffusing(const distribution& d, const choices& h) {
  constexpr std::uint64_t n = 12;
  constexpr int steps = 2;
  const cells a(n, n, d);
  const cells b(n, n, d);
  std::vector<double> now(n * n);
  for (std::uint64_t i = 0; i < n * n; ++i) a[i / n, i % n] = now[i] = static_cast<double>(i * 7919 % 101);
  const auto begin = orrery::now();
  if (h.empty()) {
    spmd<&diffusion::diffuse>(team(), a, b, steps, 0.0);
  } else if (std::ranges::count(h, how::plain) == std::ssize(h)) {
    spmd<&diffusion::diffuse_plainly>(team(), a, b, steps);
  } else {
    spmd<&diffuse_as>(team(), a, b, steps, h);
  }
  const auto time = (orrery::now() - begin).count();
  for (int s = 0; s < steps; ++s) {
    const std::vector<double> old = now;
    const auto at = [&](std::uint64_t i, std::uint64_t j) { return old[i % n * n + j % n]; };
    for (std::uint64_t i = 0; i < n; ++i)
      for (std::uint64_t j = 0; j < n; ++j)
        now[i * n + j] =
            diffusion::next_value(at(i, j), at(i + n - 1, j), at(i + 1, j), at(i, j + n - 1), at(i, j + 1));
  }
  std::vector<double> got;
  for (std::uint64_t i = 0; i < n * n; ++i) got.push_back(a[i / n, i % n].get());
  EXPECT_EQ(got, now);
  return time;
}

TEST(advice_on_examples, diffusion_has_the_scopes_that_are_advised) {
  const std::vector<place_to_choose> places{{only_reads, {how::plain, how::halo, how::cached, how::part}},
                                            {only_writes, {how::plain, how::owned, how::released}}};
  const auto of = [](const distribution& d) -> program { return [d](const choices& h) { return diffusing(d, h); }; };
  for (const auto& w : advice_worlds) {
    const program p = of(distribution::block());
    const choices chosen = expect_best_choice(w, p, places, {{0, 1}});
    EXPECT_LE(static_cast<double>(time_of(w, p, {})), 1.05 * static_cast<double>(time_of(w, p, chosen))) << w;
  }
  // Of so few cells a cache of all is as good as the halo of the example, whose corners are extra messages.
  expect_best_choice("machines=6,net=10g", of(distribution::tiles(2, 3)), places, {{0, 1}});
}

// --- sorting: the phases of the example in all scopes that fit -------------------------------------

using key = std::uint32_t;
using keys_vector = shared_vector<key>;
using psrs_data = psrs::workspace<key>;

/// Where the slots of its places are in `choices`.
enum slot : std::size_t {
  own,
  samples_w,
  taken_w,
  samples_r,
  taken_r,
  pivots_w,
  pivots_r,
  partitions_w,
  partitions_r,
  gathered,
  result
};

template <class F>
void own_keys_as(how h, team_member& t, const keys_vector& keys, F f) {
  if (h == how::owned) return with(owner_computes(keys, t), [&](auto& mine) { f(mine.span()); });
  f(psrs::own_range(keys));
}
/// The master's own data.
template <class O, class F>
void masters_as(how h, const O& o, F f) {
  if (h == how::owned) return f(owner_computes(o));
  f(plainly(o));
}
void sort_and_sample(team_member& t, const keys_vector& keys, const psrs_data& w, const choices& h) {
  own_keys_as(h[own], t, keys, [&](auto mine) {
    std::ranges::sort(mine, std::less<key>());
    write_as(h[samples_w], t, w.samples, [&](auto bs) {
      write_as(h[taken_w], t, w.taken, [&](auto bt) {
        with(bs, bt, [&](auto& samples, auto& taken) { psrs::give_samples(t, mine, samples, taken); });
      });
    });
  });
}
void choose_pivots(team_member& t, const psrs_data& w, const choices& h) {
  masters_as(h[samples_r], w.samples, [&](auto bs) {
    masters_as(h[taken_r], w.taken, [&](auto bt) {
      write_as(h[pivots_w], t, w.pivots, [&](auto bp) {
        with(bs, bt, bp, [&](auto& samples, auto& taken, auto& pivots) {
          psrs::choose<key>(t.size(), samples, taken, pivots, {});
        });
      });
    });
  });
}
void divide(team_member& t, const keys_vector& keys, const psrs_data& w, const choices& h) {
  own_keys_as(h[own], t, keys, [&](auto mine) {
    read_as(h[pivots_r], t, w.pivots, [&](auto bp) {
      write_as(h[partitions_w], t, w.partitions, [&](auto bw) {
        with(bp, bw, [&](auto& pivots, auto& partitions) {
          psrs::divide<key>(t, mine, psrs::first_own(keys), pivots, partitions);
        });
      });
    });
  });
}
psrs::partition<key> collect(team_member& t, const keys_vector& keys, const psrs_data& w, const choices& h) {
  psrs::partition<key> p;
  read_as(h[partitions_r], t, w.partitions, [&](auto bw) {
    with(bw, [&](auto& partitions) {
      const std::uint64_t first = partitions[0, t.rank()];
      const std::uint64_t end = partitions[t.size() - 1, t.rank() + 1];
      read_part_as(h[gathered], t, keys, keys.part(first, end - first),
                   [&](auto bk) { with(bk, [&](auto& all) { p = psrs::collect<key>(t, partitions, all); }); });
    });
  });
  return p;
}
void sort_as(team_member& t, keys_vector keys, choices h) {
  const auto w = t.broadcast(t.rank() == 0 ? psrs_data(t.size()) : psrs_data());
  sort_and_sample(t, keys, w, h);
  t.barrier();
  if (t.rank() == 0) choose_pivots(t, w, h);
  t.barrier();
  divide(t, keys, w, h);
  t.barrier();
  const psrs::partition<key> p = collect(t, keys, w, h);
  t.barrier();
  write_as(h[result], t, keys, [&](auto b) { with(b, [&](auto& to) { psrs::put(p, to); }); });
  t.barrier();
  if (t.rank() == 0) w.end();
}

/// Of the example itself if there are no choices.
std::int64_t sorting(const choices& h) {
  std::vector<key> keys(24 * world_pes());
  for (std::uint32_t i = 0; i < keys.size(); ++i) keys[i] = i * 7919 % 1009;
  const keys_vector v(keys.size());
  copy(std::span<const key>(keys), v);
  const auto begin = now();
  if (std::ranges::count(h, how::plain) == std::ssize(h)) {
    psrs::sort(team(), v, {}, !h.empty());
  } else {
    spmd<&sort_as>(team(), v, h);
  }
  const auto time = (now() - begin).count();
  std::ranges::sort(keys);
  std::vector<key> got(keys.size());
  copy(v, std::span(got));
  EXPECT_EQ(got, keys);
  return time;
}

TEST(advice_on_examples, psrs_has_the_scopes_that_are_advised) {
  const auto of = [](std::size_t object, auto... also) {
    return [=](const advised& a) { return a.object == object && (also(a) && ...); };
  };
  const auto near = [](const advised& a) { return !is_far(a); };
  const std::vector<place_to_choose> places{
      {of(0, near), {how::plain, how::owned}},
      {of(1, only_writes), {how::plain, how::released}},
      {of(2, only_writes), {how::plain, how::released}},
      {of(1, only_reads), {how::plain, how::owned}},
      {of(2, only_reads), {how::plain, how::owned}},
      {of(3, only_writes), {how::plain, how::owned, how::released}},
      {of(3, only_reads), {how::plain, how::cached, how::part}},
      {of(4, only_writes), {how::plain, how::released}},
      {of(4, only_reads), {how::plain, how::cached, how::part}},
      {of(0, is_far, only_reads), {how::plain, how::cached, how::part}},
      {of(0, is_far, only_writes), {how::plain, how::released}},
  };
  for (const auto& w : advice_worlds) {
    const choices chosen = expect_best_choice(w, &sorting, places,
                                              {{own, samples_w, taken_w},
                                               {samples_r, taken_r, pivots_w},
                                               {pivots_r, partitions_w},
                                               {partitions_r, gathered},
                                               {result}});
    // The example copies what it gathers and the result, which is no behaviour: it is not slower.
    EXPECT_LE(static_cast<double>(time_of(w, &sorting, {})), 1.05 * static_cast<double>(time_of(w, &sorting, chosen)))
        << w;
  }
}

// --- search --------------------------------------------------------------------------------------

/// The distances and the best length by choice; of the example itself if there are none.
std::int64_t tours(const choices& h) {
  constexpr int cities = 9;
  const std::vector<int> distance = tsp::random_distances(cities, 3);
  const shared_vector<int> distances(distance.size());
  copy(std::span<const int>(distance), distances);
  const shared<int> best(std::numeric_limits<int>::max());
  const shared<int> next(0);
  tsp::search s{cities};
  s.node_ns = 2'000;  // so that the others come before all is done
  if (!h.empty()) {
    s.cached = h[0] != how::plain;
    s.read_mostly = h[1] != how::plain;
  }
  const auto begin = now();
  spmd<&tsp::search_as_member>(team(), distances, s, best, next);
  const auto time = (now() - begin).count();
  EXPECT_EQ(best.get(), tsp::shortest_by_all({cities, distance}));
  return time;
}

TEST(advice_on_examples, tsp_has_the_scopes_that_are_advised) {
  const std::vector<place_to_choose> places{
      {[](const advised& a) { return a.advice.object.starts_with("shared vector"); }, {how::plain, how::cached}},
      {[](const advised& a) { return a.advice.object.starts_with("shared scalar") && reads_and_writes(a); },
       {how::plain, how::mostly}}};
  for (const auto& w : advice_worlds)
    EXPECT_EQ(expect_best_choice(w, &tours, places, {{0, 1}}), (choices{how::cached, how::mostly})) << w;
}

}  // namespace
}  // namespace orrery::testing
