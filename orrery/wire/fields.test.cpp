// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/fields.hpp>

#include <any>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::wire {
namespace fields_tests {

struct nothing_inside {};
struct point {
  int x;
  double y;
};
struct with_array {
  int a;
  int grid[3][4];
  double d;
};
struct nested {
  point p;
  nothing_inside n;
  std::array<point, 2> ps;
};
struct of_everything {
  std::optional<int> o;
  std::variant<int, std::string> v;
  std::span<const int> s;
  std::string_view sv;
  std::unique_ptr<int> u;
  std::tuple<int, double> t;
  std::filesystem::path p;
  std::map<int, std::any> m;
};
struct with_defaults {
  bool b = true;
  int i = 3;
};
struct page {
  char bytes[1 << 25];
  std::array<double, 1 << 20> more;
};
struct tree {
  std::vector<tree> children;
  int value;
};

TEST(fields, are_counted_one_by_one) {
  EXPECT_EQ(field_count<nothing_inside>, 0u);
  EXPECT_EQ(field_count<point>, 2u);
  EXPECT_EQ(field_count<with_defaults>, 2u);
  EXPECT_EQ(field_count<of_everything>, 8u);
}

TEST(fields, an_array_or_a_class_inside_is_one_field) {
  EXPECT_EQ(field_count<with_array>, 3u);
  EXPECT_EQ(field_count<nested>, 3u);
}

TEST(fields, a_class_of_many_mebibytes_costs_nothing_to_count) { EXPECT_EQ(field_count<page>, 2u); }

TEST(fields, a_class_may_hold_a_container_of_itself) { EXPECT_EQ(field_count<tree>, 2u); }

#define EIGHT(n) int n##0, n##1, n##2, n##3, n##4, n##5, n##6, n##7;
struct sixty_four {
  EIGHT(a) EIGHT(b) EIGHT(c) EIGHT(d) EIGHT(e) EIGHT(f) EIGHT(g) EIGHT(h)
};
struct sixty_five {
  EIGHT(a) EIGHT(b) EIGHT(c) EIGHT(d) EIGHT(e) EIGHT(f) EIGHT(g) EIGHT(h) int i;
};
#undef EIGHT

TEST(fields, sixty_four_are_known_and_no_more) {
  EXPECT_EQ(field_count<sixty_four>, max_fields);
  EXPECT_FALSE(has_fields<sixty_five>);
}

struct explicit_default {
  explicit explicit_default(int = 0) {}
};
struct no_default {
  no_default(int) {}
};
struct holds_explicit {
  int a;
  explicit_default e;
};
struct holds_explicit_with_default {
  int a;
  explicit_default e{3};
};
struct holds_no_default {
  no_default n;
  int a;
};
struct holds_no_default_with_default {
  no_default n{1};
  int a;
};
struct holds_reference {
  int a;
  int& r;
};

TEST(fields, are_unknown_where_one_has_no_default) {
  EXPECT_FALSE(has_fields<holds_explicit>);
  EXPECT_FALSE(has_fields<holds_explicit_with_default>);
  EXPECT_FALSE(has_fields<holds_no_default>);
  EXPECT_FALSE(has_fields<holds_no_default_with_default>);
  EXPECT_FALSE(has_fields<holds_reference>);
}

struct derived : point {
  int z;
};
struct derived_from_nothing : nothing_inside {
  int z;
};
struct derived_and_empty : nothing_inside {};

TEST(fields, are_unknown_in_a_class_with_a_base) {
  EXPECT_FALSE(has_fields<derived>);
  EXPECT_FALSE(has_fields<derived_from_nothing>);
  EXPECT_FALSE(has_fields<derived_and_empty>);
}

struct begins_with_anything {
  std::any a;
  int b;
};

TEST(fields, a_first_field_that_takes_anything_is_not_taken_for_a_base) {
  EXPECT_EQ(field_count<begins_with_anything>, 2u);
}

class closed {
 public:
  int visible;

 private:
  [[maybe_unused]] int hidden_;
};
union either {
  int a;
  float b;
};

TEST(fields, are_unknown_in_what_is_no_aggregate_class) {
  EXPECT_FALSE(has_fields<closed>);
  EXPECT_FALSE(has_fields<either>);
  EXPECT_FALSE(has_fields<int>);
  EXPECT_FALSE(has_fields<std::string>);
}

TEST(fields, are_visited_in_order_and_can_be_written) {
  nested n{{1, 2.0}, {}, {{{3, 4.0}, {5, 6.0}}}};
  visit_fields(n, [](point& p, nothing_inside&, std::array<point, 2>& ps) {
    EXPECT_EQ(p.x, 1);
    EXPECT_EQ(ps[1].y, 6.0);
    p.x = 7;
  });
  EXPECT_EQ(n.p.x, 7);
}

TEST(fields, of_a_const_object_are_const) {
  const point p{1, 2.0};
  visit_fields(p, [](auto&... f) { EXPECT_TRUE((std::is_const_v<std::remove_reference_t<decltype(f)>> && ...)); });
  visit_fields(p, [](const int& x, const double& y) { EXPECT_EQ(x + y, 3.0); });
}

TEST(fields, have_the_types_they_were_declared_with) {
  EXPECT_TRUE((std::is_same_v<field_types<with_array>, type_list<int, int[3][4], double>>));
  EXPECT_TRUE((std::is_same_v<field_types<nothing_inside>, type_list<>>));
}

TEST(fields, all_sixty_four_can_be_visited) {
  sixty_four x{};
  x.a0 = 1;
  x.h7 = 2;
  EXPECT_EQ(visit_fields(x, [](auto... f) { return (f + ...); }), 3);
}

}  // namespace fields_tests
}  // namespace orrery::wire
