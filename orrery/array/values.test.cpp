// SPDX-License-Identifier: Apache-2.0
// The small values that name processes, elements, groups and arrays, and what programs do with all
// of them alike.
#include <orrery/array/array.hpp>
#include <orrery/array/section.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <compare>
#include <map>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace orrery {
namespace values_tests {

using testing::in_world;

struct Block;
ORRERY_PROCESS(Block, neighbours, count_lists);
// Inside it the names of the templates mean what they do outside.
struct Block : element<Block, index<2>> {
  std::vector<index<2>> neighbours() {
    const index<2> me = this_index();
    return {index<2>{me[0] - 1, me[1]}, index<2>{me[0] + 1, me[1]}};
  }
  int count_lists(array<Block, index<2>> of) const { return of == this_array() ? 1 : 0; }
};
struct Worker;
ORRERY_PROCESS(Worker, of_group);
struct Worker : member<Worker> {
  bool of_group(group<Worker> g) const { return g == this_group(); }
};

TEST(values, names_of_templates_are_not_hidden_inside_elements_and_members) {
  in_world(2, [] {
    auto grid = create_array<Block>(range<index<2>>{{3, 3}}, {.name = "grid"});
    EXPECT_EQ((grid[1, 1]->neighbours()), (std::vector<index<2>>{{0, 1}, {2, 1}}));
    EXPECT_EQ((grid[2, 2]->count_lists(grid)), 1);
    auto g = spawn_group<Worker>(everywhere(), 2);
    EXPECT_EQ(g->of_group(g), std::vector<bool>(2, true));
  });
}

template <class V>
std::string printed(const V& value) {
  std::ostringstream out;
  out << value;
  EXPECT_EQ(out.str(), to_string(value));
  return out.str();
}

// The properties of every class of names. `a` and `b` name two different things.
template <class V>
void expect_a_value(const V& a, const V& b) {
  const V copy = a;
  const V null;
  EXPECT_TRUE(a == copy);
  EXPECT_TRUE(a != b);
  EXPECT_TRUE(static_cast<bool>(a));
  EXPECT_FALSE(static_cast<bool>(null));
  EXPECT_TRUE(a != null);
  EXPECT_TRUE((a <=> copy) == 0);
  EXPECT_TRUE((a < b) != (b < a));
  EXPECT_TRUE((null < a) != (a < null));
  const std::unordered_set<V> some{a, b, copy, null};
  EXPECT_EQ(some.size(), 3U);
  std::map<V, int> numbers;
  numbers[a] = 1;
  numbers[b] = 2;
  numbers[copy] = 3;
  EXPECT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers.at(a), 3);
}

TEST(values, all_that_name_something_can_be_compared_and_be_keys) {
  in_world(2, [] {
    auto grid = create_array<Block>(range<index<2>>{{3, 3}}, {.name = "grid"});
    auto other = create_array<Block>(range<index<2>>{{1, 1}}, {.name = "other"});
    expect_a_value(grid[0, 1], grid[1, 0]);
    expect_a_value(grid[0, 0], other[0, 0]);
    expect_a_value(grid, other);
    auto g = spawn_group<Worker>(everywhere(), 3);
    auto h = spawn_group<Worker>(everywhere(), 2);
    expect_a_value(g, h);
    expect_a_value(g[0], g[1]);
    const std::vector<index<2>> row{{0, 0}, {0, 1}};
    expect_a_value(create_section(grid, row), create_section(grid, row));
    expect_a_value(spawn<double[]>(here(), 2), spawn<double[]>(pe(1), 2));
  });
}

TEST(values, what_they_name_can_be_printed) {
  in_world(2, [] {
    auto grid = create_array<Block>(range<index<2>>{{3, 3}}, {.name = "grid"});
    EXPECT_EQ(printed(grid[0, 1]), "grid[[0, 1]]");
    EXPECT_EQ(printed(element_ptr<Block, index<2>>{}), "null");
    auto g = spawn_group<Worker>(everywhere(), 2);
    EXPECT_EQ(printed(g[1]), to_string(g[1].address()));
    EXPECT_EQ(printed(remote<Worker>{}), "null");
    EXPECT_EQ(printed(g), "[" + to_string(g[0]) + ", " + to_string(g[1]) + "]");
    EXPECT_EQ(printed(group<Worker>{}), "null");
    auto many = spawn_group<Worker>(everywhere(), 64);
    EXPECT_NE(printed(many).find(", ... 64 members]"), std::string::npos);
  });
}

TEST(values, a_future_says_whether_there_is_one) {
  in_world(1, [] {
    auto g = spawn_group<Worker>(everywhere(), 1);
    future<bool> f;
    EXPECT_FALSE(f);
    f = start(g[0])->of_group(g);
    EXPECT_TRUE(f);
    EXPECT_TRUE(f.get());
    EXPECT_FALSE(f);
  });
}

}  // namespace values_tests
}  // namespace orrery
