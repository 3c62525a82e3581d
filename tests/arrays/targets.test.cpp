// SPDX-License-Identifier: Apache-2.0
// Values that anybody delivers to whatever a target names, in each kind of world.
#include "../support/four_ways.hpp"

#include <orrery/array/array.hpp>
#include <orrery/array/deliver.hpp>
#include <orrery/array/section.hpp>
#include <orrery/process/make_group.hpp>

#include <stdexcept>

namespace orrery {
namespace targets_tests {

using testing::check;
using testing::check_contains;
using testing::thrown;

struct Box {
  void put(std::vector<double> v) { all.insert(all.end(), v.begin(), v.end()); }
  void look(std::string_view s) { text += s; }
  void count(int n) { sum += n; }
  std::vector<double> values() const { return all; }
  std::string words() const { return text; }
  int total() const { return sum; }
  std::vector<double> all;
  std::string text;
  int sum = 0;
};
ORRERY_PROCESS(Box, put, look, count, values, words, total);

struct Cell;
ORRERY_PROCESS(Cell, take, give, total);
struct Cell : element<Cell, int> {
  void take(const int& n) { sum += n; }
  void give(const result_target& t) { contribute(this_index(), orrery::sum, t); }
  int total() const { return sum; }
  int sum = 0;
};

// An element is made where the first message to it comes from.
struct Guest;
ORRERY_PROCESS(Guest, take, total, place);
struct Guest : element<Guest, int> {
  static constexpr early when_early(std::string_view) { return early::create_at_sender; }
  void take(const int& n) { sum += n; }
  int total() const { return sum; }
  std::uint32_t place() const { return this_pe(); }
  int sum = 0;
};
array<Cell> make_cells() { return create_array<Cell>(range<int>{3}); }

int noted = 0;  // on each node
void note(int n) { noted += n; }
int notes() { return noted; }

/// Fires a target from everywhere.
void fire(const result_target& t, int n) { deliver(t, n); }
void fire_all(const result_target& t) {
  for (std::uint32_t p = 0; p < world_pes(); ++p) call<&fire>(pe(p), t, static_cast<int>(p) + 1);
}
int all_of_them() {
  const int n = static_cast<int>(world_pes());
  return n * (n + 1) / 2;
}

void processes() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    const auto b = spawn<Box>(pe(p));
    fire_all(result_to<&Box::count>(b));
    quiescence();
    check(b->total() == all_of_them(), "a process");
    deliver(result_to<&Box::put>(b), std::vector{1.0, 2.0});
    deliver(result_to<&Box::put>(b), std::vector<double>(5000, 3.0));
    deliver(result_to<&Box::look>(b), "words");
    quiescence();
    check(b->values().size() == 5002 && b->words() == "words", "values of any type, in their order");
    thrown<usage_error>("of type double, and the target takes int", [&] { deliver(result_to<&Box::count>(b), 1.5); });
  }
  thrown<usage_error>("no destination", [] { deliver(result_target{}, 1); });
  thrown<usage_error>("null", [] { (void)result_to<&Box::count>(remote<Box>{}); });
}

void elements() {
  const auto a = create_array<Cell>(range<int>{6});
  fire_all(result_to<&Cell::take>(a[4]));
  fire_all(result_to<&Cell::take>(a));
  const auto s = create_section(a, std::vector{1, 4});
  fire_all(result_to<&Cell::take>(s));
  quiescence();
  check(a[4]->total() == 3 * all_of_them() && a[1]->total() == 2 * all_of_them() && a[0]->total() == all_of_them(),
        "an element, an array, a section");
}

void groups() {
  const auto g = spawn_group<Box>(everywhere(), 2 * world_pes());
  fire_all(result_to<&Box::count>(g));
  deliver(result_to<&Box::look>(g), std::string("all"));
  quiescence();
  check(g->total() == std::vector<int>(2 * world_pes(), all_of_them()), "a group");
  check(g->words() == std::vector<std::string>(2 * world_pes(), "all"), "a view of a value");
}

void functions() {
  const auto me = this_process<function>();
  fire_all(result_to<int>(me));
  int sum = 0;
  for (std::uint32_t p = 0; p < world_pes(); ++p) sum += receive<int>();
  check(sum == all_of_them(), "a process function");
  const int before = call<&notes>(pe(world_pes() - 1));
  fire_all(result_to<&note>(pe(world_pes() - 1)));
  quiescence();
  check(call<&notes>(pe(world_pes() - 1)) - before == all_of_them(), "a function that runs there");
}

void futures() {
  for (std::uint32_t p = 0; p < world_pes(); ++p) {
    auto [target, result] = expect_result<int>();
    post_call<&fire>(pe(p), target, 7);
    check(result.get() == 7, "a future");
    deliver(target, 8);  // too late
    auto [other, one] = expect_result<int>();
    thrown<usage_error>("of type char, and the target takes int", [&, t = other] { deliver(t, 'c'); });
    deliver(other, 1);
    check(one.ready() && one.get() == 1, "at once on its own PE");
  }
}

void reductions() {
  const auto a = create_array<Cell>(range<int>{6});
  const auto s = create_section(a, std::vector{1, 4});
  const auto g = spawn_group<Box>(everywhere(), 3);
  post(a)->give(result_to<&Box::count>(g));
  post(a)->give(result_to<&Cell::take>(s));
  post(a)->give(result_to<int>(this_process<function>()));
  check(receive<int>() == 15, "a function gets the sum");
  quiescence();
  check(g->total() == std::vector<int>(3, 15) && a[4]->total() == 15 && a[0]->total() == 0,
        "so do groups and sections");
}

// Neither a value nor a result is from PE 0 unless it comes from there.
void elements_made_for_values() {
  const auto guests = create_array<Guest>();
  const auto n = static_cast<int>(world_pes());
  for (int p = 0; p < n; ++p) call<&fire>(pe(static_cast<std::uint32_t>(p)), result_to<&Guest::take>(guests[p]), 5);
  const std::uint32_t last = world_pes() - 1;
  const auto cells = call<&make_cells>(pe(last));
  post(cells)->give(result_to<&Guest::take>(guests[n]));
  quiescence();
  for (int p = 0; p < n; ++p)
    check(guests[p]->total() == 5 && guests[p]->place() == static_cast<std::uint32_t>(p), "where its value was sent");
  check(guests[n]->total() == 3 && guests[n]->place() == last, "where its reduction ended");
}

void errors() {
  const auto a = create_array<Cell>(range<int>{3});
  const auto t = result_to<&Cell::take>(a);
  destroy(a);
  thrown<process_gone>("a destroyed array", [&] { deliver(t, 1); });
  // Reported as of posts:
  const auto b = spawn<Box>(pe(world_pes() - 1));
  const auto gone = result_to<&Box::count>(b);
  destroy(b);
  deliver(gone, 1);
  quiescence();
}

using targets = testing::in_each_way;
INSTANTIATE_IN_FOUR_WAYS(targets);
TEST_P(targets, name_processes) { EXPECT_EQ(wrong_in("processes"), ""); }
TEST_P(targets, name_elements_arrays_and_sections) { EXPECT_EQ(wrong_in("elements"), ""); }
TEST_P(targets, make_elements_where_the_value_comes_from) { EXPECT_EQ(wrong_in("elements_made_for_values"), ""); }
TEST_P(targets, name_groups) { EXPECT_EQ(wrong_in("groups"), ""); }
TEST_P(targets, name_functions) { EXPECT_EQ(wrong_in("functions"), ""); }
TEST_P(targets, name_futures) { EXPECT_EQ(wrong_in("futures"), ""); }
TEST_P(targets, take_what_reductions_give) { EXPECT_EQ(wrong_in("reductions"), ""); }
TEST_P(targets, that_are_gone_are_reported) {
  const std::string said = wrong_in("errors");
  EXPECT_NE(said.find("Box::count"), std::string::npos) << said;
}

const orrery::testing::scenarios_of_file of_this({{"processes", processes},
                                                  {"elements", elements},
                                                  {"elements_made_for_values", elements_made_for_values},
                                                  {"groups", groups},
                                                  {"functions", functions},
                                                  {"futures", futures},
                                                  {"reductions", reductions},
                                                  {"errors", errors}});

}  // namespace targets_tests
}  // namespace orrery
