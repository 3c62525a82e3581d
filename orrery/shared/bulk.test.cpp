// SPDX-License-Identifier: Apache-2.0
// Bulk transfer: strides, lists of indices, copies that go on, caches and exchanges of whole teams.
#include <orrery/shared/shared.hpp>

#include <orrery/process/function.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/transport/internal/test_seed.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace bulk_tests {

using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where they are messages.
class bulk : public testing::on_threads_and_machines<4> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(bulk);

struct record {
  std::array<std::uint16_t, 5> words{};
  friend bool operator==(const record&, const record&) = default;
};
record record_of(std::uint64_t i) { return {{static_cast<std::uint16_t>(i), 7, static_cast<std::uint16_t>(3 * i)}}; }

TEST(bulk_messages, regions_that_are_not_there_are_refused) {
  testing::in_world(2, [] {
    const shared_matrix<int> m(6, 4, distribution::block());
    const detail::layout& l = detail::hold_object(m.id())->how();
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    EXPECT_TRUE(detail::is_inside(l, {1, 0, 3, 1, 3}));
    EXPECT_FALSE(detail::is_inside(l, {1U << 30, 0, 1, 0, 1}));
    EXPECT_FALSE(detail::is_inside(l, {0, 1, most, 0, 1}));
    EXPECT_FALSE(detail::is_inside(l, {0, 0, 1, most, 2}));
    const int value = 1;
    const auto bytes = std::as_bytes(std::span(&value, 1));
    EXPECT_THROW(detail::fill_at_owner(m.id(), 1U << 30, bytes, "test"), bad_message);
    EXPECT_THROW(detail::fill_at_owner(m.id(), 2, bytes, "test"), bad_message);
    EXPECT_EQ((m[5, 3]), 0);
  });
}

std::vector<distribution> all_distributions(std::uint64_t n = 23) {
  return {distribution::block(),         distribution::cyclic(),
          distribution::block_cyclic(3), distribution::bounds({0, 20, 21, n}),
          distribution::on(pe(2)),       distribution::block().over({3, 1})};
}

shared_vector<record> records(const distribution& d) {
  shared_vector<record> v(23, d);
  for (std::uint64_t i = 0; i < v.size(); ++i) v[i] = record_of(i);
  return v;
}

TEST_P(bulk, gathers_and_scatters_by_lists_of_indices) {
  in_each([] {
    std::mt19937_64 random(testing::test_seed());
    for (const distribution& d : all_distributions()) {
      const auto v = records(d);
      std::vector<std::uint64_t> indices(50);
      for (auto& i : indices) i = random() % v.size();
      const std::vector<record> got = gather(v, indices);
      for (std::size_t k = 0; k < indices.size(); ++k) EXPECT_EQ(got[k], record_of(indices[k]));

      std::vector<std::uint64_t> all(v.size());
      std::iota(all.begin(), all.end(), 0);
      std::ranges::shuffle(all, random);
      all.resize(15);
      std::vector<record> values;
      for (const auto i : all) values.push_back(record_of(100 + i));
      scatter(std::span<const record>(values), v, all);
      for (std::uint64_t i = 0; i < v.size(); ++i) {
        const bool changed = std::ranges::find(all, i) != all.end();
        EXPECT_EQ(v[i].get(), record_of(changed ? 100 + i : i));
      }
      destroy(v);
    }
  });
}

TEST_P(bulk, gathers_and_scatters_by_lists_of_rows_and_columns) {
  in_each([] {
    std::mt19937_64 random(testing::test_seed());
    for (const distribution& d :
         {distribution::block(), distribution::block_cyclic(2), distribution::columns(), distribution::tiles(2, 2),
          distribution::tiles(2, 2).with_halo(1), distribution::on(pe(2))}) {
      const shared_matrix<record> m(7, 5, d);
      for (std::uint64_t i = 0; i < m.size(); ++i) m[i / 5, i % 5] = record_of(i);
      std::vector<matrix_index> indices(50);
      for (auto& i : indices) i = {random() % 7, random() % 5};
      const std::vector<record> got = gather(m, indices);
      for (std::size_t k = 0; k < indices.size(); ++k)
        EXPECT_EQ(got[k], record_of(indices[k].row * 5 + indices[k].column));

      std::vector<matrix_index> some{{6, 4}, {0, 0}, {3, 1}, {3, 2}, {5, 0}};
      std::vector<record> values;
      for (const auto& i : some) values.push_back(record_of(100 + i.row * 5 + i.column));
      scatter(std::span<const record>(values), m, some);
      for (std::uint64_t i = 0; i < m.size(); ++i) {
        const bool changed = std::ranges::find(some, matrix_index{i / 5, i % 5}) != some.end();
        EXPECT_EQ((m[i / 5, i % 5].get()), record_of(changed ? 100 + i : i));
      }
      std::vector<record> there(some.size());
      transfer t = start_gather(m, some, std::span(there));
      t.wait();
      EXPECT_EQ(there, values);
      destroy(m);
    }
    const shared_matrix<int> m(4, 3, distribution::on(here()), 5);
    const std::vector<matrix_index> outside{{0, 0}, {1, 3}};
    const std::vector<int> values{1, 1};
    EXPECT_NE(what_is_thrown<std::out_of_range>([&] { (void)gather(m, outside); }).find("[1, 3]"), std::string::npos);
    (void)what_is_thrown<std::out_of_range>([&] { scatter(std::span<const int>(values), m, outside); });
    EXPECT_EQ((m[0, 0]), 5);
    const std::vector<matrix_index> row{{2, 0}, {2, 2}};
    (void)what_is_thrown<usage_error>([&] { scatter(std::span<const int>(values).first(1), m, row); });
    with(read_view(m.part(2, 1, 1, 2)), [&](auto&) {
      EXPECT_TRUE(what_is_thrown<usage_error>([&] {
                    scatter(std::span<const int>(values), m, row);
                  }).contains("scatter at bulk.test.cpp:"));
      // nobody views these
      scatter(std::span<const int>(values), m, std::vector<matrix_index>{{2, 0}, {3, 2}});
    });
    EXPECT_EQ((m[3, 2]), 1);
    EXPECT_TRUE(gather(m, std::vector<matrix_index>{}).empty());
  });
}

TEST_P(bulk, lists_that_cannot_be_are_errors_and_change_nothing) {
  in_each([] {
    const shared_vector<long> v(10, distribution::cyclic(), 5);
    const std::vector<std::uint64_t> outside{1, 2, 10};
    const std::vector<long> values{1, 1, 1};
    EXPECT_NE(what_is_thrown<std::out_of_range>([&] { (void)gather(v, outside); }).find("10"), std::string::npos);
    (void)what_is_thrown<std::out_of_range>([&] { scatter(std::span<const long>(values), v, outside); });
    for (std::uint64_t i = 0; i < v.size(); ++i) EXPECT_EQ(v[i], 5);
    (void)what_is_thrown<usage_error>([&] { scatter(std::span<const long>(values).first(2), v, outside); });
    EXPECT_TRUE(gather(v, {}).empty());
    scatter(std::span<const long>(), v, {});
  });
}

TEST_P(bulk, copies_from_and_to_local_memory_of_any_kind) {
  in_each([] {
    shared_vector<int> v(6);
    shared_matrix<int> m(2, 3);
    std::vector<int> list{1, 2, 3, 4, 5, 6};
    std::array<int, 6> back{};
    const auto expect_there = [&](const auto& part) {
      back = {};
      copy(part, std::span(back));
      EXPECT_TRUE(std::ranges::equal(back, list));
      std::vector<int> again(6);
      copy(part, again);
      EXPECT_EQ(again, list);
      for (int& x : list) ++x;
    };
    const auto part = m.part(0, 2, 0, 3);
    copy(std::span(list), part);
    expect_there(part);
    copy(std::span<const int>(list), part);
    expect_there(part);
    copy(list, part);
    expect_there(part);
    copy(std::span(list), v);
    expect_there(v);
    copy(list, v.part(0, 6));
    expect_there(v.part(0, 6));
    destroy(v);
    destroy(m);
  });
}

TEST_P(bulk, copies_every_nth_element_there_and_back) {
  in_each([] {
    for (const distribution& d : all_distributions())
      for (const std::uint64_t step : {1, 2, 3, 7}) {
        const auto v = records(d);
        const std::uint64_t n = (v.size() - 2 + step - 1) / step;
        std::vector<record> got(n);
        copy(every(v, step, 2, n), std::span(got));
        for (std::uint64_t k = 0; k < n; ++k) {
          EXPECT_EQ(got[k], record_of(2 + k * step));
          got[k] = record_of(50 + k);
        }
        copy(std::span<const record>(got), every(v, step, 2, n));
        for (std::uint64_t i = 0; i < v.size(); ++i)
          EXPECT_EQ(v[i].get(), i >= 2 && (i - 2) % step == 0 ? record_of(50 + (i - 2) / step) : record_of(i));
        destroy(v);
      }
    const shared_vector<long> v(10);
    std::vector<long> four(4);
    (void)what_is_thrown<std::out_of_range>([&] { copy(every(v, 3, 1, 4), std::span(four)); });
    (void)what_is_thrown<usage_error>([&] { copy(every(v, 3, 0, 3), std::span(four)); });
  });
}

TEST_P(bulk, copies_between_vectors_of_all_distributions_go_from_owner_to_owner) {
  in_each([] {
    for (const distribution& from : all_distributions())
      for (const distribution& to : all_distributions(30)) {
        const auto a = records(from);
        const shared_vector<record> b(30, to, record_of(9));
        start_copy(a.part(3, 17), b.part(11, 17)).wait();
        for (std::uint64_t i = 0; i < b.size(); ++i)
          EXPECT_EQ(b[i].get(), i >= 11 && i < 28 ? record_of(i - 8) : record_of(9));
        destroy(a);
        destroy(b);
      }
  });
}

TEST_P(bulk, copies_every_nth_element_between_vectors) {
  in_each([] {
    for (const distribution& d : all_distributions())
      for (const distribution& other : all_distributions()) {
        const auto v = records(d);
        const shared_vector<record> to(23, other);
        copy(every(v, 3, 1, 7), every(to, 2, 5, 7));  // 1, 4 ... 19 to 5, 7 ... 17
        for (std::uint64_t k = 0; k < 7; ++k) EXPECT_EQ((to[5 + 2 * k].get()), record_of(1 + 3 * k)) << k;
        EXPECT_EQ((to[6].get()), record{});
        destroy(v);
        destroy(to);
      }
    const shared_vector<int> v(5);
    const shared_vector<int> to(5);
    copy(every(v, 1, 0, 0), every(to, 1, 0, 0));
    EXPECT_THROW(copy(every(v, 2, 1, 3), every(to, 1, 0, 3)), std::out_of_range);
    EXPECT_THROW(copy(every(v, 1, 0, 3), every(to, 2, 1, 3)), std::out_of_range);
    EXPECT_THROW(copy(every(v, 1, 0, 3), every(to, 1, 0, 2)), usage_error);
  });
}

TEST_P(bulk, copies_strides_that_need_several_messages) {
  in_each([] {
    const std::uint64_t n = 150'000;  // more than 512 KiB
    const shared_vector<std::uint64_t> v(2 * n + 1, distribution::on(pe(2)));
    const shared_vector<std::uint64_t> to(n, distribution::block_cyclic(7));
    std::vector<std::uint64_t> all(v.size());
    std::iota(all.begin(), all.end(), 0U);
    copy(all, v);
    copy(every(v, 2, 1, n), every(to, 1, 0, n));
    std::vector<std::uint64_t> got(n);
    copy(to, got);
    for (std::uint64_t k = 0; k < n; ++k) ASSERT_EQ(got[k], 2 * k + 1);
  });
}

TEST_P(bulk, copies_whole_vectors_and_matrices) {
  in_each([] {
    const auto v = records(distribution::cyclic());
    const shared_vector<record> w(23, distribution::block());
    copy(v, w);
    std::vector<record> here(23);
    start_copy(w, here).wait();
    for (std::uint64_t i = 0; i < 23; ++i) EXPECT_EQ(here[i], record_of(i));
    copy(w.part(3, 4), v.part(0, 4));
    EXPECT_EQ((v[0].get()), record_of(3));

    const shared_matrix<long> m(4, 6, distribution::tiles(2, 2));
    std::vector<long> all(24);
    std::iota(all.begin(), all.end(), 1);
    copy(all, m);
    const shared_matrix<long> n(4, 6, distribution::columns());
    copy(m, n);
    std::vector<long> back(24);
    copy(n, back);
    EXPECT_EQ(back, all);
    start_copy(std::vector<long>(24, 7), n).wait();
    EXPECT_EQ((n[3, 5]), 7);
    EXPECT_THROW(copy(m, n.part(0, 4, 0, 5)), usage_error);
  });
}

/// Trivially copyable, without a default constructor.
struct mark {
  explicit mark(int n) : at(n) {}
  int at;
};
TEST_P(bulk, copies_what_has_no_default_constructor_and_bits) {
  in_each([] {
    const shared_vector<mark> v(9, distribution::cyclic(), mark(4));
    const shared_vector<mark> w(9, distribution::block());
    v[7] = mark(11);
    copy(v.part(6, 3), w.part(0, 3));
    EXPECT_EQ(w[1].get().at, 11);
    const std::vector<std::uint64_t> indices{8, 7};
    EXPECT_EQ(gather(v, indices)[1].at, 11);
    const shared_vector<bool> bits(9, distribution::cyclic());
    const shared_vector<bool> more(9);
    bits[7] = true;
    copy(bits, more);
    EXPECT_TRUE(more[7]);
    EXPECT_EQ(gather(bits, indices), (std::vector<bool>{false, true}));
  });
}

TEST_P(bulk, what_is_viewed_is_not_written) {
  in_each([] {
    const shared_vector<int> v(12, distribution::on(here()), 3);
    const auto refused = [](auto write) { return what_is_thrown<usage_error>(write); };
    const auto named = [](const std::string& text, const char* what) {
      return text.contains(std::string(": ") + what + " at bulk.test.cpp:") &&
             text.contains(" writes it while a view at bulk.test.cpp:");
    };
    const std::vector<int> four(4, 1);
    const std::vector<std::uint64_t> places{0, 1, 4, 9};
    with(read_view(v.part(4, 4)), [&](auto& c) {
      EXPECT_TRUE(named(refused([&] { v.fill(5); }), "fill"));
      EXPECT_TRUE(named(refused([&] { copy(four, v.part(7, 4)); }), "copy"));
      EXPECT_TRUE(named(refused([&] { start_copy(four, v.part(1, 4)).wait(); }), "copy"));
      EXPECT_TRUE(named(refused([&] { scatter(four, v, places); }), "scatter"));
      for (const int value : c) EXPECT_EQ(value, 3);
      copy(four, v.part(0, 4));
      copy(four, v.part(8, 4));
    });
    v.fill(5);
    EXPECT_EQ(v[5], 5);
  });
}

void write_all_ways(team_member& t, shared_vector<int> v, shared_vector<int> other) {
  if (t.rank() == 0) return;
  const std::vector<int> two(2, 1);
  const std::vector<std::uint64_t> places{0, 5};
  int refused = 0;
  const auto attempt = [&](const char* what, auto write) {
    const std::string text = what_is_thrown<usage_error>(write);
    refused += text.contains(std::string(what) + " at bulk.test.cpp:") && text.contains("a view at bulk.test.cpp:");
  };
  attempt("fill", [&] { v.fill(5); });
  attempt("copy", [&] { copy(two, v.part(4, 2)); });
  attempt("copy", [&] { copy(other.part(0, 2), v.part(4, 2)); });
  attempt("copy", [&] { copy(every(other, 2, 0, 2), every(v, 3, 2, 2)); });
  attempt("scatter", [&] { scatter(two, v, places); });
  attempt("", [&] { with(release(v.part(5, 1)), [](auto& w) { w[5] = 2; }); });
  EXPECT_EQ(refused, 6);
  copy(two, v.part(2, 2));
}
TEST_P(bulk, what_is_viewed_is_not_written_from_elsewhere) {
  in_each([] {
    const shared_vector<int> v(12, distribution::on(here()), 3);
    const shared_vector<int> other(12, distribution::on(pe(world_pes() - 1)));
    with(read_view(v.part(4, 4)), [&](auto& c) {
      spmd<&write_all_ways>(team(), v, other);
      for (const int value : c) EXPECT_EQ(value, 3);
    });
    EXPECT_EQ(v[2], 1);
  });
}

TEST_P(bulk, copies_rectangles_between_matrices) {
  in_each([] {
    const std::vector<distribution> ways{distribution::block(), distribution::columns(), distribution::tiles(2, 2),
                                         distribution::cyclic()};
    for (const distribution& from : ways)
      for (const distribution& to : ways) {
        const shared_matrix<int> a(7, 6, from);
        std::vector<int> numbers(42);
        std::iota(numbers.begin(), numbers.end(), 0);
        copy(std::span<const int>(numbers), a.rows(0, 7));
        const shared_matrix<int> b(9, 8, to, -1);
        copy(a.part(1, 5, 2, 3), b.part(3, 5, 4, 3));
        for (std::uint64_t i = 0; i < 9; ++i)
          for (std::uint64_t j = 0; j < 8; ++j) {
            const bool inside = i >= 3 && i < 8 && j >= 4 && j < 7;
            EXPECT_EQ((b[i, j].get()), inside ? static_cast<int>((i - 2) * 6 + j - 2) : -1);
          }
        (void)what_is_thrown<usage_error>([&] { copy(a.part(0, 2, 0, 3), b.part(0, 3, 0, 2)); });
        (void)what_is_thrown<std::out_of_range>([&] { copy(a.part(0, 2, 0, 3), b.part(8, 2, 0, 3)); });
        destroy(a);
        destroy(b);
      }
  });
}

TEST_P(bulk, copies_that_were_started_go_on_meanwhile) {
  in_each([] {
    const shared_vector<long> v(1000, distribution::block_cyclic(10));
    const shared_matrix<long> m(30, 30, distribution::tiles(2, 2));
    std::vector<long> a(1000);
    std::iota(a.begin(), a.end(), 0);
    std::vector<long> b(900, 4);
    transfer first = start_copy(std::span<const long>(a), v.part(0, 1000));
    transfer second = start_copy(std::span<const long>(b), m.rows(0, 30));
    std::ranges::fill(a, -1);  // a write has taken its values when it was started
    std::ranges::fill(b, -1);
    first.wait();
    second.wait();
    second.wait();  // nothing more to wait for
    std::vector<long> c(500);
    std::vector<long> d(100);
    std::vector<transfer> reads;
    reads.push_back(start_copy(v.part(250, 500), std::span(c)));
    reads.push_back(start_copy(m.part(5, 10, 10, 10), std::span(d)));
    for (auto& r : reads) r.wait();
    for (std::size_t i = 0; i < c.size(); ++i) EXPECT_EQ(c[i], static_cast<long>(250 + i));
    EXPECT_EQ(d, std::vector<long>(100, 4));
    {
      transfer dropped = start_copy(v.part(0, 500), std::span(c));
    }
    transfer nothing;
    nothing.wait();
  });
}

TEST_P(bulk, scopes_that_were_started_write_while_the_process_goes_on) {
  in_each([] {
    const shared_vector<long> v(100, distribution::cyclic());
    const shared_vector<long> w(100, distribution::block(), 1);
    auto seen = start_with(release(v), read_release(w), read_cache(w), [](auto& a, auto& b, auto& c) {
      for (std::uint64_t i = 0; i < 100; ++i) {
        a[i] = static_cast<long>(i);
        b[i] += c[i];
      }
    });
    yield();
    seen.wait();
    seen.wait();
    for (std::uint64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(v[i], static_cast<long>(i));
      EXPECT_EQ(w[i], 2);
    }
    {
      auto dropped = start_with(release(v), [](auto& a) { a[99] = 5; });
    }
    EXPECT_EQ(v[99], 5);
    EXPECT_EQ(what_is_thrown<std::runtime_error>([&] {
                (void)start_with(release(v), [](auto& a) {
                  a[3] = 8;
                  throw std::runtime_error("in the scope");
                });
              }),
              "in the scope");
    EXPECT_EQ(v[3], 8);  // what was written before is written
  });
}

std::int64_t time_until_seen(bool started) {
  std::int64_t ns = 0;
  testing::in_simulation("machines=2,net=10g", [&] {
    const shared_vector<long> v(2000, distribution::on(pe(1)));
    const auto write = [](auto& a) {
      for (std::uint64_t i = 0; i < 2000; ++i) a[i] = 1;
    };
    with(release(v), write);
    const auto begin = now();
    if (started) {
      auto seen = start_with(release(v), write);
      compute(std::chrono::microseconds(30));
      seen.wait();
    } else {
      with(release(v), write);
      compute(std::chrono::microseconds(30));
    }
    ns = (now() - begin).count();
  });
  return ns;
}

TEST(bulk_messages, what_a_started_scope_writes_travels_while_the_process_computes) {
  EXPECT_LE(time_until_seen(true), time_until_seen(false) - 20'000);
}

// --- teams ---------------------------------------------------------------------------------------

std::vector<std::uint32_t> list_for(std::size_t from, std::size_t to) {
  return std::vector<std::uint32_t>((from * 3 + to) % 5, static_cast<std::uint32_t>(10 * from + to));
}
std::uint32_t exchange_lists(team_member& t) {
  std::uint32_t wrong = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<std::uint32_t>> mine;
    for (std::size_t to = 0; to < t.size(); ++to) mine.push_back(list_for(t.rank(), to));
    const auto got = t.all_to_all(mine);
    for (std::size_t from = 0; from < t.size(); ++from) wrong += got[from] == list_for(from, t.rank()) ? 0 : 1;
  }
  return wrong;
}
void exchange_or_throw(team_member& t) {
  if (t.rank() == 2) throw std::runtime_error("no exchange");
  (void)t.all_to_all(std::vector<int>(t.size()));
}

void exchange_too_many(team_member& t) { (void)t.all_to_all(std::vector<int>(t.size() + 1)); }

TEST_P(bulk, members_exchange_lists_of_any_length) {
  in_each([] {
    for (const std::size_t members : {1, 4, 9})
      for (const std::uint32_t wrong : spmd<&exchange_lists>(team(everywhere(), members))) EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(what_is_thrown<std::runtime_error>([] { spmd<&exchange_or_throw>(team()); }), "no exchange");
    EXPECT_NE(what_is_thrown<usage_error>([] { spmd<&exchange_too_many>(team()); }).find("5 values for the 4 members"),
              std::string::npos);
  });
}

/// Writes what is its own and caches all at once: no barrier but that of the cache.
std::uint32_t cache_together(team_member& t, shared_vector<record> v, shared_matrix<int> m) {
  std::uint32_t wrong = 0;
  for (std::uint64_t round = 0; round < 3; ++round) {
    with(owner_computes(v, t), owner_computes(m, t), [&](auto& mine, auto& rows) {
      for (const auto i : mine.indices()) mine[i] = record_of(i + round);
      for (const auto i : rows.rows())
        for (const auto j : rows.columns()) rows[i, j] = static_cast<int>(i * 100 + j + round);
    });
    with(read_cache(v, t), read_cache(m, t), [&](auto& all, auto& both) {
      for (std::uint64_t i = 0; i < v.size(); ++i) wrong += all[i] == record_of(i + round) ? 0 : 1;
      for (std::uint64_t i = 0; i < m.row_count(); ++i)
        for (std::uint64_t j = 0; j < m.column_count(); ++j)
          wrong += both[i, j] == static_cast<int>(i * 100 + j + round) ? 0 : 1;
    });
  }
  return wrong;
}
void cache_or_throw(team_member& t, shared_vector<record> v) {
  if (t.rank() == 1) throw std::runtime_error("no cache");
  with(read_cache(v, t), [](auto&) {});
}
void cache_in_team(team_member& t, shared_vector<record> v) {
  with(read_cache(v, t), [](auto&) {});
}

TEST_P(bulk, members_cache_all_at_once) {
  in_each([] {
    const std::vector<distribution> ways{distribution::block(), distribution::columns(), distribution::tiles(2, 2),
                                         distribution::cyclic()};
    for (std::size_t i = 0; i < ways.size(); ++i)
      for (const std::size_t members : {4, 7}) {
        const shared_vector<record> v(23, all_distributions()[i]);
        const shared_matrix<int> m(9, 7, ways[i]);
        for (const auto wrong : spmd<&cache_together>(team(everywhere(), members), v, m)) EXPECT_EQ(wrong, 0U);
        destroy(v);
        destroy(m);
      }
  });
}

TEST_P(bulk, a_cache_of_a_team_ends_with_a_member_and_needs_one_at_each_owner) {
  in_each([] {
    const shared_vector<record> v(23);
    EXPECT_EQ(what_is_thrown<std::runtime_error>([&] { spmd<&cache_or_throw>(team(), v); }), "no cache");
    EXPECT_NE(what_is_thrown<usage_error>([&] {
                spmd<&cache_in_team>(team(placements({pe(0), pe(1)}), 2), v);
              }).find("PE 2 owns elements, and has no member"),
              std::string::npos);
    spmd<&cache_in_team>(team(), v);  // nothing is left of the others
  });
}

void cache_ten_times(team_member& t, shared_vector<long> v, bool together) {
  for (int i = 0; i < 10; ++i) {
    if (together) {
      with(read_cache(v, t), [](auto&) {});
    } else {
      t.barrier();
      with(read_cache(v), [](auto&) {});
    }
  }
}
void scatter_by_rank(team_member& t, shared_vector<record> v, std::uint64_t distance) {
  const std::vector<record> values(3, record_of(t.rank()));
  const std::uint64_t first = t.rank() * distance;
  scatter(std::span<const record>(values), v, std::vector<std::uint64_t>{first, first + 2, first + 4});
}

TEST(bulk_checked, orders_are_followed_and_a_forgotten_barrier_is_found) {
  scheduler::node_settings checked;
  checked.pe.follow_order = true;
  testing::in_simulation(parse_simulation("machines=3,jitter=3us,seed=9"), checked, [] {
    const shared_vector<record> v(23);
    const shared_matrix<int> m(9, 7);
    (void)spmd<&cache_together>(team(), v, m);
    spmd<&scatter_by_rank>(team(), v, std::uint64_t{5});
    (void)spmd<&exchange_lists>(team());
    start_copy(v.part(0, 5), v.part(9, 5)).wait();
    copy(std::span<const record>(gather(v, std::vector<std::uint64_t>{1, 9})), every(v, 2, 3, 2));
    EXPECT_EQ(sharing_mistakes(), std::vector<std::string>{});
    spmd<&scatter_by_rank>(team(), v, std::uint64_t{2});
    const auto mistakes = sharing_mistakes();
    ASSERT_EQ(mistakes.size(), 1U);
    EXPECT_NE(mistakes[0].find("(scatter)"), std::string::npos) << mistakes[0];
  });
}

std::uint64_t messages_with(bool together) {
  std::uint64_t sent = 0;
  testing::in_simulation("machines=8,net=10g", [&] {
    const shared_vector<long> v(800);
    const auto all = [] {
      std::uint64_t n = 0;
      for (const std::uint32_t p : program_pes()) n += stats(p).sent;
      return n;
    };
    const std::uint64_t before = all();
    spmd<&cache_ten_times>(team(), v, together);
    sent = all() - before;
  });
  return sent;
}

TEST(bulk_messages, what_fills_a_cache_takes_its_time_on_a_simulated_network) {
  testing::in_simulation("machines=2,net=10g", [] {
    const shared_vector<long> v(1'000'000, distribution::on(pe(1)));
    const auto begin = now();
    with(read_cache(v), [](auto&) {});
    EXPECT_GE(now() - begin, std::chrono::microseconds(6400));  // 8 MB at 10 Gb/s
  });
}

TEST(bulk_messages, a_cache_of_a_team_asks_nobody) {
  const std::uint64_t asked = messages_with(false);
  const std::uint64_t pushed = messages_with(true);
  EXPECT_GE(asked - pushed, 10U * 8 * 7);  // each owner was asked by each other one
}

std::int64_t time_of_copy(bool element_by_element) {
  std::int64_t ns = 0;
  testing::in_simulation("machines=4,net=10g", [&] {
    const shared_vector<long> v(400, distribution::cyclic());
    std::vector<std::uint64_t> indices(100);
    for (std::size_t i = 0; i < 100; ++i) indices[i] = i * 37 % 400;
    (void)v[1].get();  // known here
    const auto begin = now();
    if (element_by_element) {
      for (const auto i : indices) (void)v[i].get();
    } else {
      (void)gather(v, indices);
    }
    ns = (now() - begin).count();
  });
  return ns;
}

TEST(bulk_messages, a_list_takes_one_message_for_each_owner) {
  EXPECT_GE(time_of_copy(true), 60 * time_of_copy(false));
}

}  // namespace bulk_tests
}  // namespace orrery
