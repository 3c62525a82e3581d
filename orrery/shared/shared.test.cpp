// SPDX-License-Identifier: Apache-2.0
#include <orrery/shared/shared.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/shared/detail/shared_directory.hpp>
#include <orrery/shared/internal/test_text.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace orrery {
namespace shared_tests {

using testing::holds;
using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

// Each test runs where elements of other PEs are memory, and where they are messages.
class shared_data : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(shared_data);

TEST_P(shared_data, elements_are_assigned_and_read_with_plain_syntax) {
  in_each([] {
    shared_vector<long> v(10);
    shared_matrix<double> m(4, 5, distribution::tiles(1, 3));
    for (std::uint64_t i = 0; i < v.size(); ++i) v[i] = static_cast<long>(i * i);
    v[3] = v[4];
    m[3, 4] = 1.5;
    m[3, 4] += 2;
    EXPECT_EQ(v[3], 16);
    EXPECT_EQ(v[9], 81);
    EXPECT_EQ((m[3, 4]), 3.5);
    EXPECT_EQ((m[0, 0]), 0);
  });
}

TEST_P(shared_data, distributions_say_who_owns_an_element) {
  in_each([] {
    const shared_vector<int> block(6);
    const shared_vector<int> cyclic(6, distribution::cyclic());
    const shared_vector<int> runs(6, distribution::block_cyclic(2).over({2, 0}));
    const shared_vector<int> bounds(6, distribution::bounds({1, 1, 6}));
    const shared_vector<int> one(6, distribution::on(pe(1)));
    const shared_matrix<int> columns(2, 3, distribution::columns());
    const auto owners = [](const auto& v) {
      std::string all;
      for (std::uint64_t i = 0; i < v.size(); ++i) all += std::to_string(v.owner(i));
      return all;
    };
    EXPECT_EQ(owners(block), "001122");
    EXPECT_EQ(owners(cyclic), "012012");
    EXPECT_EQ(owners(runs), "220022");
    EXPECT_EQ(owners(bounds), "022222");
    EXPECT_EQ(owners(one), "111111");
    EXPECT_EQ(columns.owner(1, 2), 2U);
  });
}

TEST_P(shared_data, an_index_that_is_outside_is_named_with_the_vector) {
  in_each([] {
    const shared_vector<int> v(10);
    const shared_matrix<int> m(2, 3);
    holds(what_is_thrown<std::out_of_range>([&] { v[10] = 1; }), "index 10 is outside of its 10 elements");
    holds(what_is_thrown<std::out_of_range>([&] { v[10] = 1; }), "shared vector made at shared.test.cpp:");
    holds(what_is_thrown<std::out_of_range>([&] { (void)m[1, 3].get(); }), "index [1, 3] is outside of its 2 x 3");
    std::vector<int> some(6);
    holds(what_is_thrown<std::out_of_range>([&] { copy(m.part(0, 2, 2, 3), std::span(some)); }),
          "a rectangle of 2 x 3 elements from [0, 2] on lies outside of its 2 x 3 elements");
    holds(what_is_thrown<usage_error>([&] { copy(m.part(0, 0, 2, 3), std::span(some)); }),
          "a part of 0 x 3 elements from [0, 2] on, and 6 elements");
    holds(what_is_thrown<std::out_of_range>([&] { copy(std::span<const int>(some), m.part(1, 2, 0, 3)); }),
          "2 x 3 elements from [1, 0] on lies outside");
    holds(what_is_thrown<std::out_of_range>([&] { with(read_cache(v.part(8, 3)), [](auto&) {}); }),
          "3 elements from 8 on reach outside of its 10 elements");
    holds(what_is_thrown<std::out_of_range>([&] { with(release(v), [](auto& w) { w[11] = 1; }); }), "index 11");
  });
}

TEST_P(shared_data, a_use_after_destroy_says_so) {
  in_each([] {
    const shared_vector<int> v(10);
    v[9] = 1;
    destroy(v);
    holds(what_is_thrown<usage_error>([&] { v[9] = 1; }), "was destroyed");
    holds(what_is_thrown<usage_error>([&] { destroy(v); }), "shared vector made at shared.test.cpp:");
    holds(what_is_thrown<usage_error>([&] { with(read_cache(v), [](auto&) {}); }), "was destroyed at shared.test.cpp:");
    holds(what_is_thrown<usage_error>([] { (void)shared_vector<int>()[0].get(); }), "null shared data");
  });
}

TEST_P(shared_data, elements_are_changed_where_they_lie) {
  in_each([] {
    const shared_vector<long> v(3, distribution::block(), 7L);
    EXPECT_EQ(v[2].fetch_add(5), 7);
    EXPECT_EQ(v[2].fetch_max(20), 12);
    EXPECT_EQ(v[2].fetch_min(3), 20);
    EXPECT_EQ(v[2].exchange(9), 3);
    long expected = 8;
    EXPECT_FALSE(v[2].compare_exchange(expected, 1));
    EXPECT_EQ(expected, 9);
    EXPECT_TRUE(v[2].compare_exchange(expected, 1));
    EXPECT_EQ(v[2].accumulate(6, [](long a, long b) { return 10 * a + b; }), 16);
    v[2] -= 6;
    v[2] *= 3;
    v[2] /= 2;
    EXPECT_EQ(v[2], 15);
    EXPECT_THROW(v[2] /= 0, std::domain_error);
    v[2] = std::numeric_limits<long>::min();
    v[2] /= -1;
    EXPECT_EQ(v[2], std::numeric_limits<long>::min());
    v[2] -= 1;
    EXPECT_EQ(v[2], std::numeric_limits<long>::max());
    v[2] = 12;
    EXPECT_EQ(v[2].fetch_and(10), 12);
    EXPECT_EQ(v[2].fetch_or(3), 8);
    EXPECT_EQ(v[2].fetch_xor(1), 11);
    v[2] |= 4;
    v[2] &= 6;
    v[2] ^= 5;
    EXPECT_EQ(v[2]++, 3);
    EXPECT_EQ(--v[2], 3);
  });
}

TEST_P(shared_data, a_scalar_lies_on_its_home) {
  in_each([] {
    const shared<int> s(3, pe(2));
    s = s + 1;
    s.element() += 2;
    EXPECT_EQ(s, 6);
    EXPECT_EQ(s.home(), 2U);
    destroy(s);
  });
}

TEST_P(shared_data, a_scalar_is_changed_with_plain_syntax) {
  in_each([] {
    const shared<long> s(3, pe(2));
    s += 5;
    s -= 2;
    s *= 4;
    s /= 3;
    EXPECT_EQ(s, 8);
    s |= 7;
    s &= 13;
    s ^= 1;
    EXPECT_EQ(++s, 13);
    EXPECT_EQ(s--, 13);
    EXPECT_EQ(s.fetch_add(1), 12);
    EXPECT_EQ(s.fetch_sub(3), 13);
    EXPECT_EQ(s.fetch_min(4), 10);
    EXPECT_EQ(s.fetch_max(6), 4);
    EXPECT_EQ(s.exchange(8), 6);
    EXPECT_EQ(s.fetch_or(1) + s.fetch_and(3) + s.fetch_xor(2), 8 + 9 + 1);
    long expected = 8;
    EXPECT_FALSE(s.compare_exchange(expected, 1));
    EXPECT_TRUE(s.compare_exchange(expected, 1));
    EXPECT_EQ(s.accumulate(6, [](long a, long b) { return 10 * a + b; }), 16);
    const shared<double> real(1, pe(1));
    real += 2;
    real /= 4;
    EXPECT_EQ(real, 0.75);
  });
}

void add_to(team_member& t, shared<long> sum, shared<int> most, shared<std::uint8_t> bits) {
  for (int i = 0; i < 100; ++i) sum += static_cast<long>(t.rank());
  most.fetch_max(static_cast<int>(t.rank()));
  bits |= 1 << t.rank();
  t.barrier();
  ++sum;
}
TEST_P(shared_data, members_change_a_scalar_at_once_and_nothing_is_lost) {
  in_each([] {
    const shared<long> sum(0, pe(1));
    const shared<int> most(0, pe(2));
    const shared<std::uint8_t> bits(0, pe(0));
    spmd<&add_to>(team(everywhere(), 6), sum, most, bits);
    EXPECT_EQ(sum, 1506);
    EXPECT_EQ(most, 5);
    EXPECT_EQ(bits, 63);
  });
}

static_assert(detail::integer_scalar(8, true) == detail::scalar::i64);
static_assert(detail::integer_scalar(16, true) == detail::scalar::none);
static_assert(detail::scalar_of<std::uint16_t> == detail::scalar::u16);
struct two_longs {
  long a;
  long b;
  friend bool operator==(const two_longs&, const two_longs&) = default;
};
TEST_P(shared_data, elements_of_16_bytes_are_exchanged_and_are_no_scalars) {
  in_each([] {
    const shared_vector<two_longs> v(3);
    v[2] = {1, 2};
    EXPECT_EQ(v[2].exchange({3, 4}), (two_longs{1, 2}));
    EXPECT_EQ(v[2].get(), (two_longs{3, 4}));
    v[0] = {5, 6};
    const auto o = detail::hold_object(v.id());
    const two_longs one{1, 1};
    two_longs old{};
    EXPECT_THROW(detail::change_here(*o, o->base[0], detail::element_change::add, detail::scalar::i64, &one, &old),
                 bad_message);
    EXPECT_EQ(v[0].get(), (two_longs{5, 6}));
  });
}

/// Other bytes where the first element has none: a value that was copied has any.
void change_padding(const shared_vector<long double>& v) {
  if constexpr (std::numeric_limits<long double>::digits == 64) {
    auto* const bytes = reinterpret_cast<unsigned char*>(v.local().data());
    std::fill(bytes + 10, bytes + sizeof(long double), static_cast<unsigned char>(0xAB));
  }
}
void change_real(shared_vector<long double> v) {
  EXPECT_EQ(v[0].accumulate(2, [](long double a, long double b) { return a * b; }), 3);
}
bool exchange_real(shared_vector<long double> v) {
  long double expected = 1.5L;
  return v[0].compare_exchange(expected, 4);
}
TEST_P(shared_data, padding_in_an_element_does_not_keep_changes_out) {
  in_each([] {
    const shared_vector<long double> v(1, distribution::on(here()));
    for (const std::uint32_t p : {0U, 1U}) {
      v[0] = 1.5L;
      change_padding(v);
      call<&change_real>(pe(p), v);
      v[0] = 1.5L;
      change_padding(v);
      EXPECT_TRUE(call<&exchange_real>(pe(p), v));
      EXPECT_FALSE(call<&exchange_real>(pe(p), v));
      EXPECT_EQ(v[0], 4);
    }
  });
}

int count_down(shared<int> c) { return c.fetch_sub(1); }
int lower(shared<int> c) {
  int expected = 2;
  return c.compare_exchange(expected, 1) ? 2 : 0;
}
int look_at(shared<int> c) { return c; }
void be_busy() { compute(std::chrono::milliseconds(3)); }
bool can_use(shared_vector<int> v) {
  try {
    (void)v[0].get();
    return true;
  } catch (const usage_error&) {
    return false;
  }
}
bool keeps(shared_vector<int> v) {
  auto& d = detail::shared_directory::of_this_pe();
  return d.find(v.id()) != nullptr || d.keeps.contains(v.id()) || !d.asks_for.empty();
}
/// PE 1 hears of an object, and of its end, while it does something else.
void end_at_the_first_use() {
  const shared_vector<int> v(1, distribution::on(here()));
  auto used = start_call<&can_use>(pe(1), v);
  auto busy = start_call<&be_busy>(pe(1));
  sleep_for(std::chrono::milliseconds(1));
  destroy(v);
  (void)used.get();
  busy.get();
  EXPECT_FALSE(call<&can_use>(pe(1), v));
  EXPECT_FALSE(call<&keeps>(pe(1), v));
}
TEST(shared_data_ends, an_object_that_ends_behind_its_introduction_is_not_kept) {
  in_simulation("machines=1,pes=2", end_at_the_first_use);
  in_simulation("machines=2", end_at_the_first_use);
}
void race_with_first_uses() {
  for (int round = 0; round < 100; ++round) {
    const shared_vector<int> v(3);
    const shared_vector<int> here_only(3, distribution::on(here()));
    std::vector<future<bool>> used;
    for (const std::uint32_t p : {1U, 2U, 3U}) used.push_back(start_call<&can_use>(pe(p), round % 2 ? v : here_only));
    for (int i = 0; i < round % 7; ++i) yield();
    destroy(v);
    destroy(here_only);
    for (auto& u : used) (void)u.get();
    for (const std::uint32_t p : {0U, 1U, 2U, 3U})
      for (const auto& gone : {v, here_only}) {
        EXPECT_FALSE(call<&can_use>(pe(p), gone));
        EXPECT_FALSE(call<&keeps>(pe(p), gone));
      }
  }
}
TEST(shared_data_ends, first_uses_that_race_with_the_end_leave_nothing) {
  in_world(4, race_with_first_uses);
  in_simulation("machines=2,pes=2,jitter=5us,seed=3", race_with_first_uses);
  in_simulation("machines=4,jitter=5us,seed=4", race_with_first_uses);
}

/// The answer to F and the end of the object come to a PE while it does something else.
template <auto F>
void end_behind_the_answer(int left) {
  const shared<int> c(3, here());
  call<&count_down>(pe(1), c);
  auto counted = start_call<F>(pe(1), c);
  auto busy = start_call<&be_busy>(pe(1));
  sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(c, left);
  destroy(c);
  EXPECT_EQ(counted.get(), 2);
  busy.get();
}
TEST(shared_data_ends, who_has_counted_down_hears_nothing_of_a_destroy_behind_it) {
  in_simulation("machines=2", [] {
    end_behind_the_answer<&count_down>(1);
    end_behind_the_answer<&lower>(1);
    end_behind_the_answer<&look_at>(2);
  });
}
void leave(team_member& t, shared<int> c) {
  compute(std::chrono::microseconds(t.rank()));
  if (c.fetch_sub(1) == 1) destroy(c);
}
TEST(shared_data_ends, the_last_one_that_leaves_destroys_the_counter) {
  for (int seed = 0; seed < 20; ++seed)
    in_simulation(fmt::format("machines=4,jitter=5us,seed={}", seed), [] {
      const team all(everywhere(), 12);
      for (int round = 0; round < 5; ++round) spmd<&leave>(all, shared<int>(12, pe(0)));
    });
}

// Elements that the machine does not copy whole: each value has equal words.
struct wide_value {
  std::array<std::uint64_t, 20> words{};
};
int write_and_read(team_member& t, shared_vector<wide_value> v) {
  int torn = 0;
  for (std::uint64_t i = 1; i <= 300; ++i) {
    wide_value w;
    w.words.fill(i * 10 + t.rank());
    v[0] = w;
    const wide_value r = v[0];
    for (const std::uint64_t x : r.words) torn += x == r.words[0] ? 0 : 1;
  }
  return torn;
}
TEST_P(shared_data, large_elements_are_never_seen_half_written) {
  in_each([] {
    const shared_vector<wide_value> v(1, distribution::on(pe(1)));
    EXPECT_EQ(spmd<&write_and_read>(team(), v), std::vector<int>(3, 0));
  });
}

TEST_P(shared_data, vectors_may_be_empty_or_smaller_than_their_pes) {
  in_each([] {
    const shared_vector<int> none(0);
    const shared_vector<int> one(1, distribution::cyclic());
    one[0] = 5;
    with(read_cache(none), read_cache(one), release(none), [](auto& n, auto& o, auto&) {
      EXPECT_EQ(n.size(), 0U);
      EXPECT_EQ(o[0], 5);
    });
    destroy(none);
  });
}

TEST_P(shared_data, a_view_and_a_scope_that_writes_exclude_each_other) {
  in_each([] {
    const shared_vector<int> v(6, distribution::on(here()));
    with(read_view(v), [&](auto&) {
      const std::string both = what_is_thrown<usage_error>([&] { with(release(v), [](auto&) {}); });
      holds(both, "may write it while a view at shared.test.cpp:");
      holds(what_is_thrown<usage_error>([&] { with(owner_computes(v), [](auto&) {}); }), "may write it");
      with(read_cache(v), read_view(v), [](auto&, auto&) {});
    });
    with(release(v), [&](auto&) {
      holds(what_is_thrown<usage_error>([&] { with(read_view(v), [](auto&) {}); }), "a view at shared.test.cpp:");
    });
    with(release(v), [](auto& w) { w[5] = 3; });
    EXPECT_EQ(v[5], 3);
  });
}

TEST_P(shared_data, scopes_of_a_part_write_nothing_else) {
  in_each([] {
    const shared_vector<int> v(30, distribution::cyclic(), 1);
    with(release(v.part(10, 5)), [](auto& w) {
      EXPECT_EQ(w.first(), 10U);
      EXPECT_EQ(w.size(), 5U);
      for (std::uint64_t i = 10; i < 15; ++i) w[i] = static_cast<int>(i);
    });
    EXPECT_EQ((v[9] + v[10] + v[14] + v[15]), 1 + 10 + 14 + 1);
    const auto outside = [](auto behaviour, std::uint64_t i) {
      return what_is_thrown<std::out_of_range>([&] { with(behaviour, [&](auto& w) { w[i] = 7; }); });
    };
    holds(outside(release(v.part(10, 5)), 15), "index 15 is outside of the 5 elements from 10 on");
    holds(outside(read_release(v.part(10, 5)), 9), "index 9 is outside of the 5 elements from 10 on");
    holds(outside(release(v.part(10, 5), {.buffer_bytes = 1}), 30), "index 30 is outside of its 30 elements");
    holds(what_is_thrown<std::out_of_range>([&] { with(release(v.part(28, 3)), [](auto&) {}); }), "3 elements from 28");
    EXPECT_EQ(v[15], 1);
    with(read_release(v.part(12, 8)), [](auto& u) {
      u[12] += 5;
      u[13] = u[12];
    });
    EXPECT_EQ(v[13], 17);
  });
}

TEST_P(shared_data, scopes_of_rows_and_tiles_write_nothing_else) {
  in_each([] {
    for (const distribution& d : {distribution::block(), distribution::cyclic(), distribution::tiles(1, 3)}) {
      const shared_matrix<long> m(6, 9, d);
      with(release(m.rows(2, 2)), release(m.part(4, 2, 6, 3)), [](auto& a, auto& b) {
        for (std::uint64_t j = 0; j < 9; ++j) a[3, j] = 1;
        b[5, 8] = 2;
      });
      with(read_release(m.part(3, 3, 6, 3)), [](auto& u) {
        u[4, 7] = u[3, 7] + u[5, 8];
        EXPECT_EQ(u.first_column(), 6U);
      });
      EXPECT_EQ((m[4, 7]), 3);
      EXPECT_EQ((m[3, 0] + m[5, 8] + m[2, 0]), 3);
      holds(what_is_thrown<std::out_of_range>([&] { with(release(m.rows(2, 2)), [](auto& w) { w[4, 0] = 1; }); }),
            "index [4, 0] is outside of the 2 x 9 elements from [2, 0] on");
      destroy(m);
    }
  });
}

TEST_P(shared_data, views_of_a_part_show_its_elements) {
  in_each([] {
    for (const distribution& d : {distribution::block(), distribution::cyclic(), distribution::tiles(1, 3),
                                  distribution::columns().over({2, 0})}) {
      const shared_matrix<int> m(6, 9, d);
      for (std::uint64_t i = 0; i < 6; ++i)
        for (std::uint64_t j = 0; j < 9; ++j) m[i, j] = static_cast<int>(10 * i + j);
      with(read_view(m.rows(2, 3)), read_view(m.part(1, 5, 3, 3)), [](auto& rows, auto& tile) {
        EXPECT_EQ((rows[2, 0] + rows[4, 8]), 20 + 48);
        EXPECT_EQ(rows.row(3)[5], 35);
        EXPECT_EQ((tile[1, 3] + tile[5, 5]), 13 + 55);
        EXPECT_EQ(tile.row(4).size(), 3U);
        EXPECT_EQ(tile.row(4)[2], 45);
        EXPECT_EQ(tile.data()[tile.pitch()], 23);
      });
      destroy(m);
    }
    const shared_vector<int> v(12, distribution::block_cyclic(4), 3);
    v[5] = 8;
    with(read_view(v.part(5, 2)), read_view(v.part(3, 6)), [](auto& in_place, auto& copied) {
      EXPECT_EQ(in_place[5] + in_place[6], 11);
      EXPECT_EQ(copied[5] + copied[8], 11);
      EXPECT_EQ(in_place.first(), 5U);
    });
    holds(what_is_thrown<std::out_of_range>([&] { with(read_view(v.part(8, 5)), [](auto&) {}); }), "5 elements from 8");
  });
}

void write_a_part(shared_vector<int> v, std::uint64_t first) {
  with(release(v.part(first, 2)), [&](auto& w) { w[first] = 5; });
}
TEST_P(shared_data, a_view_of_a_part_keeps_writers_of_that_part_out) {
  in_each([] {
    const shared_vector<int> v(12, distribution::on(here()));
    with(read_view(v.part(4, 4)), [&](auto&) {
      with(release(v.part(0, 4)), release(v.part(8, 4)), [](auto& a, auto& b) { a[3] = static_cast<int>(b.size()); });
      const auto refused = [&](auto behaviour) {
        return what_is_thrown<usage_error>([&] { with(behaviour, [](auto&) {}); });
      };
      holds(refused(release(v.part(7, 2))), "may write it while a view at shared.test.cpp:");
      holds(refused(release(v)), "may write it while a view at shared.test.cpp:");
      holds(refused(owner_computes(v)), "may write it");
      for (std::uint32_t p = 0; p < world_pes(); ++p) {
        call<&write_a_part>(pe(p), v, 8U);
        holds(what_is_thrown<usage_error>([&] { call<&write_a_part>(pe(p), v, 6U); }), "while a view at shared.te");
      }
    });
    with(release(v.part(4, 4)), [&](auto&) {
      with(read_view(v.part(0, 4)), [](auto& c) { EXPECT_EQ(c[3], 4); });
      holds(what_is_thrown<usage_error>([&] { with(read_view(v), [](auto&) {}); }),
            "while a scope at shared.test.cpp:");
    });
    with(read_view(v), [](auto& c) { EXPECT_EQ(c[8], 5); });
  });
}

TEST_P(shared_data, what_was_written_before_an_exception_is_written) {
  in_each([] {
    const shared_vector<int> v(30);
    EXPECT_THROW(with(release(v),
                      [](auto& w) {
                        for (std::uint64_t i = 0; i < 30; ++i) w[i] = 1;
                        throw std::domain_error("in the middle");
                      }),
                 std::domain_error);
    const auto all = with(read_cache(v), [](auto& c) { return std::accumulate(c.begin(), c.end(), 0); });
    EXPECT_EQ(all, 30);
    with(read_view(v), [](auto&) {});  // nothing is left open
  });
}

class scope_holder {
 public:
  void view(shared_vector<int> v) {
    with(read_view(v), [](auto&) { wait_until([] { return false; }); });
  }
  void write(shared_vector<int> v) {
    with(release(v.part(4, 1)), [](auto& w) {
      w[4] = 7;
      wait_until([] { return false; });
    });
  }
};
ORRERY_PROCESS(scope_holder, view, write);
bool is_refused(const auto& behaviour) {
  try {
    with(behaviour, [](auto&) {});
  } catch (const usage_error&) {
    return true;
  }
  return false;
}
TEST_P(shared_data, a_process_that_is_destroyed_in_a_scope_leaves_nothing_behind) {
  in_each([] {
    const shared_vector<int> v(9, distribution::on(here()));
    const auto viewer = spawn<scope_holder>(here());
    auto viewed = start(viewer)->view(v);
    while (!is_refused(release(v))) yield();
    destroy(viewer);
    EXPECT_THROW(viewed.get(), process_gone);
    EXPECT_FALSE(is_refused(release(v)));
    const auto writer = spawn<scope_holder>(here());
    auto written = start(writer)->write(v);
    while (!is_refused(read_view(v))) yield();
    EXPECT_FALSE(is_refused(read_view(v.part(0, 4))));
    destroy(writer);
    EXPECT_THROW(written.get(), process_gone);
    EXPECT_FALSE(is_refused(read_view(v)));
    EXPECT_EQ(v[4], 7);
  });
}

TEST_P(shared_data, a_cache_says_how_much_memory_it_needs) {
  in_each([] {
    const shared_matrix<double> m(30, 20);
    EXPECT_EQ(read_cache(m).bytes(), 4800U);
    EXPECT_EQ(read_cache(m.rows(3, 2)).bytes(), 320U);
    EXPECT_EQ(read_cache(shared_vector<short>(7)).bytes(), 14U);
  });
}

int fill_until(const shared_vector<int>& v, int last) {
  for (;;) {
    ORRERY_BEHAVIOUR(v, release);
    for (int i = 0; i < 30; ++i) {
      v[static_cast<std::uint64_t>(i)] = i + 1;
      if (i == last) return i;
    }
    break;
  }
  return -1;
}
TEST_P(shared_data, a_block_scope_ends_with_return_and_break) {
  in_each([] {
    const shared_vector<int> v(30);
    EXPECT_EQ(fill_until(v, 20), 20);
    EXPECT_EQ(v[20], 21);
    EXPECT_EQ(v[21], 0);
    EXPECT_EQ(fill_until(v, 99), -1);
    EXPECT_EQ(v[29], 30);
  });
}

TEST_P(shared_data, copies_move_parts_between_distributions) {
  in_each([] {
    const shared_vector<int> from(500'000, distribution::cyclic());
    const shared_vector<int> to(500'000, distribution::bounds({100, 300'000, 500'000}));
    std::vector<int> numbers(500'000);
    std::iota(numbers.begin(), numbers.end(), 0);
    copy(std::span(numbers), from.part(0, from.size()));
    copy(from.part(1'000, 450'000), to.part(3, 450'000));
    std::vector<int> back(450'000);
    copy(to.part(3, 450'000), std::span(back));
    EXPECT_TRUE(std::ranges::equal(back, std::span(numbers).subspan(1'000, 450'000)));
    EXPECT_EQ(to[2], 0);
    holds(what_is_thrown<usage_error>([&] { copy(from.part(0, 3), to.part(0, 4)); }), "3 elements to a place for 4");
  });
}

TEST_P(shared_data, the_local_elements_are_a_span_with_indices) {
  in_each([] {
    const shared_vector<int> v(9, distribution::cyclic(), 1);
    EXPECT_EQ(v.local().size(), 3U);
    std::vector<std::uint64_t> mine;
    for (const std::uint64_t i : v.local_indices()) mine.push_back(i);
    EXPECT_EQ(mine, (std::vector<std::uint64_t>{0, 3, 6}));
    v.local()[1] = 8;
    EXPECT_EQ(v[3], 8);
  });
}

TEST_P(shared_data, a_distribution_that_does_not_fit_is_refused) {
  in_each([] {
    const auto made = [](const distribution& d) {
      return what_is_thrown<usage_error>([&] { shared_matrix<int> m(4, 4, d); });
    };
    holds(made(distribution::tiles(2, 2)), "2 x 2 tiles for 3 PEs");
    holds(made(distribution::bounds({1, 3, 2})), "must ascend to the size, which is 4");
    holds(made(distribution::bounds({1, 4}).over({0, 1, 2})), "2 ends for 3 PEs");
    holds(made(distribution::block().over({0, 1, 0})), "PE 0 is listed twice");
    holds(made(distribution::block_cyclic(0)), "at least one element");
    holds(made(distribution::block().over({0, 77})), "77");
    const auto huge = [](std::uint64_t n) { return what_is_thrown<usage_error>([&] { shared_matrix<long> m(n, n); }); };
    holds(huge(std::uint64_t{1} << 40), "more than there are addresses");
  });
}

// --- teams ---------------------------------------------------------------------------------------

std::string use_collectives(team_member& t) {
  const auto rank = t.rank();
  t.barrier();
  const std::string word = t.broadcast<std::string>(rank == 2 ? "orrery" : "", 2);
  const std::string order = t.all_reduce(std::to_string(rank));  // concatenation is not commutative
  const std::size_t sum = t.scan(rank + 1);
  std::string all;
  for (const auto x : t.all_gather(rank * 10)) all += std::to_string(x) + ",";
  return word + " " + order + " " + std::to_string(sum) + " " + all;
}
TEST_P(shared_data, members_of_a_team_work_together) {
  in_each([] {
    const auto results = spmd<&use_collectives>(team(everywhere(), 5));
    ASSERT_EQ(results.size(), 5U);
    EXPECT_EQ(results[0], "orrery 01234 1 0,10,20,30,40,");
    EXPECT_EQ(results[4], "orrery 01234 15 0,10,20,30,40,");
  });
}

std::uint64_t sum_in_part(team_member& t, shared_vector<long> v, long part) {
  with(owner_computes(v, t), [&](auto& own) {
    for (long& x : own) x = part;
  });
  std::uint64_t sum = 0;
  for (int i = 0; i < 10; ++i) sum = t.all_reduce(std::uint64_t{1} + t.rank());
  return sum;
}
std::string work_in_parts(team_member& t, shared_vector<long> first, shared_vector<long> second) {
  const std::uint64_t number = t.rank() == 1 ? 1 : 0;
  const sub_team part = t.split(number);
  std::uint64_t sum = 0;
  if (part.leads())
    sum = spmd<&sum_in_part>(part.members(), number == 0 ? first : second, static_cast<long>(number) + 5).back();
  t.barrier();
  return fmt::format("{}/{}:{} {} {}", part.rank(), part.size(), sum, first[3].get(), second[3].get());
}
TEST_P(shared_data, parts_of_a_team_work_beside_each_other) {
  in_each([] {
    const shared_vector<long> first(4, distribution::block().over({0, 2}));
    const shared_vector<long> second(4, distribution::on(pe(1)));
    const auto results = spmd<&work_in_parts>(team(everywhere(), 3), first, second);
    EXPECT_EQ(results, (std::vector<std::string>{"0/2:3 5 6", "0/1:1 5 6", "1/2:0 5 6"}));
  });
}

void fail_before_a_barrier(team_member& t) {
  if (t.rank() == 1) throw std::domain_error("rank 1 has failed");
  t.barrier();
}
TEST_P(shared_data, a_member_that_throws_ends_the_barriers_of_the_others) {
  in_each([] {
    EXPECT_EQ(what_is_thrown<std::domain_error>([] { spmd<&fail_before_a_barrier>(team(everywhere(), 4)); }),
              "rank 1 has failed");
  });
}

std::uint64_t meet(team_member& t, shared_vector<long> counts) {
  counts[t.rank() % counts.size()] += 1;
  t.barrier();
  const long mine = counts[t.rank() % counts.size()];
  t.barrier();
  return static_cast<std::uint64_t>(mine);
}
TEST_P(shared_data, thousands_of_members_wait_on_few_pes) {
  in_each([] {
    const std::size_t members = testing::slowed_down ? 600 : 3000;
    const shared_vector<long> counts(10, distribution::cyclic());
    for (const std::uint64_t n : spmd<&meet>(team(everywhere(), members), counts)) EXPECT_EQ(n, members / 10);
  });
}

long sum_of(shared_vector<long> v, std::uint64_t first, std::uint64_t n) {
  return with(read_cache(v.part(first, n)), [](auto& c) { return std::accumulate(c.begin(), c.end(), 0L); });
}
void add_one(team_member& t, shared_vector<long> v) {
  with(owner_computes(v, t), [](auto& own) {
    for (long& x : own) x += 1;
  });
}
TEST_P(shared_data, calls_and_futures_work_on_the_data_of_teams) {
  in_each([] {
    const shared_vector<long> v(30, distribution::cyclic(), 1L);
    spmd<&add_one>(team(), v);
    std::vector<future<long>> parts;
    for (std::uint32_t p = 0; p < world_pes(); ++p) parts.push_back(start_call<&sum_of>(pe(p), v, 10 * p, 10U));
    long sum = 0;
    for (auto& f : parts) sum += f.get();
    EXPECT_EQ(sum, 60);
  });
}

std::vector<std::uint64_t> what_is_mine(team_member& t, shared_vector<int> v) {
  return with(owner_computes(v, t), [](auto& own) {
    std::vector<std::uint64_t> all;
    for (const std::uint64_t i : own.indices()) all.push_back(i);
    return all;
  });
}
TEST_P(shared_data, members_on_one_pe_share_what_it_owns) {
  in_each([] {
    const shared_vector<int> v(12);
    std::vector<std::uint64_t> all;
    for (const auto& mine : spmd<&what_is_mine>(team(in_blocks(), 6), v)) {
      EXPECT_EQ(mine.size(), 2U);
      all.insert(all.end(), mine.begin(), mine.end());
    }
    std::vector<std::uint64_t> expected(12);
    std::iota(expected.begin(), expected.end(), 0U);
    EXPECT_EQ(all, expected);
    holds(what_is_thrown<usage_error>([&] { spmd<&what_is_mine>(team(pe(0), 1), v); }), "has no member of the team");
  });
}

// --- losses --------------------------------------------------------------------------------------

TEST(shared_data_loss, scopes_and_accesses_that_need_what_is_lost_say_so) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const shared_vector<int> v(9);
    const shared_vector<int> here_only(9, distribution::on(pe(0)));
    sleep_for(std::chrono::milliseconds(5));
    v[0] = 1;
    EXPECT_THROW(v[4] = 1, node_lost);
    v[8] = 1;
    EXPECT_THROW(with(read_cache(v), [](auto&) {}), node_lost);
    EXPECT_THROW(with(release(v), [](auto& V) { V[4] = 1; }), node_lost);
    EXPECT_THROW(with(read_cache(v.part(2, 2)), [](auto&) {}), node_lost);
    with(owner_computes(v), [](auto& V) { V[0] = 2; });
    with(release(v), [](auto& V) {
      V[2] = 3;
      V[8] = 4;
    });
    with(read_cache(v.part(0, 3)), [](auto& V) { EXPECT_EQ(V[0] + V[2], 5); });
    EXPECT_EQ(v[8], 4);
    with(read_cache(here_only), release(here_only), [](auto&, auto&) {});
    destroy(v);
  });
}

TEST(shared_data_loss, a_release_scope_says_what_of_it_was_written) {
  const testing::leaks_expected of_the_lost_node;
  in_simulation("machines=3,lose=1@1ms", [] {
    const shared_vector<int> v(90);
    const std::string why = what_is_thrown<node_lost>([&] {
      with(release(v, {.buffer_bytes = 1}), [](auto& w) {
        for (std::uint64_t i = 0; i < 20; ++i) w[30 + i] = 1;  // they arrive
        sleep_for(std::chrono::milliseconds(5));
        for (std::uint64_t i = 0; i < 3; ++i) w[60 + i] = 2;
        w[35] = 3;
      });
    });
    holds(why, "23 of 24 writes to other machines in the release scope at shared.test.cpp:");
    EXPECT_EQ(v[62], 2);
    with(release(shared_vector<int>(9, distribution::on(pe(2)))), [](auto& w) { w[8] = 1; });
  });
}

}  // namespace shared_tests
}  // namespace orrery
