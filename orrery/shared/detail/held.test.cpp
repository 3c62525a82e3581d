// SPDX-License-Identifier: Apache-2.0
// Elements that are no plain bytes: their owners hold them.
#include <orrery/shared/shared.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_each_world.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace held_tests {

using testing::what_is_thrown;
using words = shared_vector<std::string>;

class shared_held : public testing::on_threads_and_machines<3> {};
INSTANTIATE_ON_THREADS_AND_MACHINES(shared_held);

/// Larger than what a string keeps in itself.
std::string long_word(std::uint64_t i) { return std::string(40, 'a') + std::to_string(i); }
std::string word_at(std::uint64_t i, std::uint64_t j) { return std::to_string(i) + "," + std::to_string(j); }

TEST_P(shared_held, strings_are_assigned_and_read_with_plain_syntax) {
  in_each([] {
    const words v(6, distribution::cyclic(), "start");
    shared_matrix<std::string> m(2, 3, distribution::columns());
    v[4] = long_word(4);
    v[1] = v[4];
    const std::string one = v[1];
    EXPECT_EQ(one, long_word(4));
    EXPECT_TRUE(v[0] == "start");
    m[1, 2] = "corner";
    EXPECT_EQ((m[1, 2].get() + m[0, 0].get()), "corner");
    EXPECT_EQ(v[5].exchange("other"), "start");
    std::string expected = "start";
    EXPECT_FALSE(v[5].compare_exchange(expected, "x"));
    EXPECT_EQ(expected, "other");
    EXPECT_TRUE(v[5].compare_exchange(expected, "x"));
    EXPECT_EQ(v[5].accumulate("y", [](std::string a, const std::string& b) { return a + b; }), "xy");
    EXPECT_NE(what_is_thrown<std::out_of_range>([&] { v[6] = ""; }).find("index 6 is outside"), std::string::npos);
    destroy(v);
    EXPECT_NE(what_is_thrown<usage_error>([&] { v[5] = ""; }).find("was destroyed"), std::string::npos);
  });
}

/// Cannot be sent, if that is asked for.
struct fragile {
  std::string text;
  static inline std::atomic<int> live = 0;
  static inline std::atomic<bool> breaks = false;
  fragile() { ++live; }
  fragile(const fragile& other) : text(other.text) { ++live; }
  fragile& operator=(const fragile&) = default;
  ~fragile() { --live; }
  template <class A>
  void serialize(A& a) {
    if (breaks) throw std::runtime_error("fragile");
    a & text;
  }
};
TEST_P(shared_held, elements_that_cannot_be_filled_leave_nothing_behind) {
  in_each([] {
    const auto none_is_left = [] {
      for (int i = 0; i < 1000 && fragile::live != 0; ++i) sleep_for(std::chrono::milliseconds(1));
      return fragile::live == 0;
    };
    {
      const shared_vector<fragile> v(6, distribution::cyclic());
      EXPECT_EQ(v[5].get().text, "");
      EXPECT_FALSE(fragile::live == 0) << "this test sees nothing";
      destroy(v);
      EXPECT_TRUE(none_is_left());
    }
    fragile::breaks = true;
    EXPECT_THROW(
        {
          const fragile value;
          const shared_vector<fragile> v(6, distribution::cyclic(), value);
        },
        std::runtime_error);
    fragile::breaks = false;
    EXPECT_TRUE(none_is_left());
  });
}

TEST_P(shared_held, a_scalar_may_be_a_string) {
  in_each([] {
    const shared<std::string> s("first", pe(2));
    s = "second";
    EXPECT_EQ(s.get(), "second");
    EXPECT_EQ(s.exchange("third"), "second");
    EXPECT_EQ(s.home(), 2U);
  });
}

struct note {
  std::map<std::string, int> counts;
  std::vector<double> values;
  friend bool operator==(const note&, const note&) = default;
  template <class A>
  void serialize(A& a) {
    a & counts & values;
  }
};
TEST_P(shared_held, a_class_with_serialize_may_be_an_element) {
  in_each([] {
    const shared_vector<note> v(3);
    const note some{{{"a", 1}, {"b", 2}}, {0.5, 1.5}};
    v[2] = some;
    EXPECT_EQ(v[2].get(), some);
    EXPECT_EQ(v[0].get(), note());
    with(read_cache(v), [&](auto& c) { EXPECT_EQ(c[2].counts.at("b"), 2); });
  });
}

struct reading {
  std::string unit;
  double value = 0;
  friend bool operator==(const reading&, const reading&) = default;
  template <class A>
  void serialize(A& a) {
    a & unit & value;
  }
};
TEST_P(shared_held, an_element_that_does_not_equal_itself_can_be_changed) {
  in_each([] {
    const shared_vector<reading> v(3);
    const reading none{"K", std::numeric_limits<double>::quiet_NaN()};
    v[2] = none;
    const auto join = [](reading a, const reading& b) {
      a.unit += b.unit;
      return a;
    };
    EXPECT_EQ(v[2].accumulate(none, join).unit, "KK");
    reading expected = v[2];
    EXPECT_TRUE(v[2].compare_exchange(expected, {"m", 1}));
    EXPECT_FALSE(v[2].compare_exchange(expected, none));
    EXPECT_EQ(expected.unit, "m");
  });
}

TEST_P(shared_held, elements_are_filled_generated_copied_and_dealt_out_anew) {
  in_each([] {
    words v(1000, distribution::block_cyclic(7));
    generate<&long_word>(v);
    EXPECT_EQ(v[999].get(), long_word(999));
    std::vector<std::string> some(600);
    copy(v.part(300, 600), std::span(some));
    EXPECT_EQ(some[599], long_word(899));
    const words w(600, distribution::bounds({0, 10, 600}));
    copy(std::span<const std::string>(some), w);
    copy(v.part(0, 100), w.part(50, 100));
    EXPECT_EQ(w[149].get() + w[150].get(), long_word(99) + long_word(450));
    v = redistribute(v, distribution::bounds({1000}).over({1}));
    EXPECT_EQ(v.owner(0), 1U);
    with(read_cache(v), [](auto& c) {
      for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(c[i], long_word(i));
    });
    v.fill("same");
    EXPECT_EQ(v[777].get(), "same");
    const shared_matrix<std::string> m(5, 4, distribution::tiles(3, 1));
    generate<&word_at>(m);
    const shared_matrix<std::string> n = redistribute(m, distribution::columns());
    copy(n.part(0, 2, 1, 2), n.part(3, 2, 2, 2));
    EXPECT_EQ((n[4, 3].get() + n[2, 1].get()), "1,22,1");
  });
}

TEST_P(shared_held, elements_larger_than_a_message_travel_one_by_one) {
  in_each([] {
    const words v(4, distribution::on(pe(2)));
    const std::string large(400'000, 'x');
    with(release(v, {.buffer_bytes = 1}), [&](auto& w) {
      for (std::uint64_t i = 0; i < 4; ++i) w[i] = large + std::to_string(i);
    });
    std::vector<std::string> all(4);
    copy(v, std::span(all));
    EXPECT_EQ(all[3], large + "3");
    copy(std::span<const std::string>(all).first(2), v.part(2, 2));
    EXPECT_EQ(v[3].get(), large + "1");
  });
}

std::string work_with_words(team_member& t, words v, words out) {
  with(owner_computes(v, t), [&](auto& own) {
    for (const std::uint64_t i : own.indices()) own[i] = long_word(i);
    for (std::string& word : own) word += "!";
  });
  std::string seen;
  with(read_cache(v, t), release(out), [&](auto& all, auto& to) {
    to[t.rank()] = all[v.size() - 1 - t.rank()];
    seen = all[0];
  });
  with(read_release(out.part(t.rank(), 1)), [&](auto& mine) {
    mine[t.rank()] += "?";
    seen += mine[t.rank()].operator std::string();
  });
  t.barrier();
  with(read_view(out), [&](auto& all) { seen += all[0]; });
  return seen;
}
TEST_P(shared_held, members_use_them_in_scopes) {
  in_each([] {
    const words v(9, distribution::cyclic());
    const words out(6, distribution::block());
    const auto seen = spmd<&work_with_words>(team(everywhere(), 6), v, out);
    EXPECT_EQ(seen[2], long_word(0) + "!" + long_word(6) + "!?" + long_word(8) + "!?");
    EXPECT_EQ(out[5].get(), long_word(3) + "!?");
    EXPECT_NE(what_is_thrown<std::out_of_range>([&] {
                with(release(v.part(2, 3)), [](auto& w) { w[5] = ""; });
              }).find("index 5 is outside of the 3 elements from 2 on"),
              std::string::npos);
  });
}

TEST_P(shared_held, they_are_a_range_for_algorithms) {
  in_each([] {
    const words v(5, distribution::cyclic());
    for (std::uint64_t i = 0; i < 5; ++i) v[i] = long_word(7 * i % 5);
    std::ranges::sort(v);
    EXPECT_EQ(v[3].get(), long_word(3));
    EXPECT_EQ(v.local().size(), 2U);
  });
}

}  // namespace held_tests
}  // namespace orrery
