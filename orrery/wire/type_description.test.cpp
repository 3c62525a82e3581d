// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/type_description.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

namespace type_description_tests {

using orrery::wire::type_description;

template <class T>
std::string looks() {
  type_description s;
  s.describe<T>();
  return s.text();
}
// The look of a T, but for the name of its namespace: as two builds would see one class.
template <class T>
std::string looks_but_for(std::string_view space) {
  std::string text = looks<T>();
  space.remove_suffix(2);  // "::"
  for (std::size_t at; (at = text.find(space)) != std::string::npos;) text.erase(at, space.size());
  return text;
}

namespace first_build {
struct range {
  double low;
  double high;
};
struct tree {
  std::vector<tree> children;
  range value;
};
enum class unit : std::uint8_t { kelvin };
struct measured {
  std::map<std::string, std::optional<range>> all;
};
struct by_hand {
  int a = 0;
  float b = 0;
  template <class A>
  void serialize(A& archive) {
    archive & a & b;
  }
};
struct by_friend {
  int a = 0;
  int b = 0;
};
template <class A>
void serialize(A& archive, by_friend& x) {
  archive(x.a);
}
}  // namespace first_build

namespace other_build {
struct range {
  double high;
  double low;
};
struct tree {
  std::vector<tree> children;
  range value;
};
enum class unit : std::uint16_t { kelvin };
struct measured {
  std::map<std::string, std::optional<range>> all;
};
struct by_hand {
  int a = 0;
  float b = 0;
  template <class A>
  void serialize(A& archive) {
    archive & b & a;
  }
};
struct by_friend {
  int a = 0;
  int b = 0;
};
template <class A>
void serialize(A& archive, by_friend& x) {
  archive(x.a, x.b);
}
}  // namespace other_build

namespace third_build {
struct range {
  double low;
  double high;
};
}  // namespace third_build

template <class A, class B>
void expect_different() {
  EXPECT_NE(looks_but_for<A>("first_build::"), looks_but_for<B>("other_build::"));
}

TEST(type_description, of_the_same_fields_is_the_same) {
  EXPECT_EQ(looks_but_for<first_build::range>("first_build::"), looks_but_for<third_build::range>("third_build::"));
}
TEST(type_description, tells_swapped_fields_of_one_type_by_their_names) {
  expect_different<first_build::range, other_build::range>();
}
TEST(type_description, looks_into_what_a_class_holds) { expect_different<first_build::tree, other_build::tree>(); }
TEST(type_description, looks_into_containers) {
  expect_different<first_build::measured, other_build::measured>();
  expect_different<std::vector<first_build::range>, std::vector<other_build::range>>();
  expect_different<std::span<const first_build::range>, std::span<const other_build::range>>();
  expect_different<std::unique_ptr<first_build::range>, std::unique_ptr<other_build::range>>();
  expect_different<std::variant<int, first_build::range>, std::variant<int, other_build::range>>();
}
TEST(type_description, has_the_type_that_an_enum_is_made_of) {
  expect_different<first_build::unit, other_build::unit>();
}
TEST(type_description, has_what_a_serialize_names_in_its_order) {
  expect_different<first_build::by_hand, other_build::by_hand>();
  expect_different<first_build::by_friend, other_build::by_friend>();
}

TEST(type_description, is_written_alike_by_all_compilers) {
  type_description s;
  s.describe<first_build::range>();
  const std::string key = "N6orrery4wire10keyed_typeIN22type_description_tests11first_build5rangeEEE";
  EXPECT_EQ(s.text(),
            ":=" + key + "\n;" + key + ":16\nlow=N6orrery4wire10keyed_typeIdEE\nhigh=N6orrery4wire10keyed_typeIdEE\n;");
}
struct named_fields {
  int list[3];
  char text_[8];
  std::string name2;
};
TEST(type_description, has_the_names_of_fields_that_are_arrays) {
  type_description s;
  s.describe<named_fields>();
  ASSERT_GE(s.layouts().size(), 2U);
  const std::string& fields = s.layouts()[1].text;
  EXPECT_NE(fields.find("\nlist="), std::string::npos) << fields;
  EXPECT_NE(fields.find("\ntext_="), std::string::npos) << fields;
  EXPECT_NE(fields.find("\nname2="), std::string::npos) << fields;
}

struct throws_when_empty {
  template <class A>
  void serialize(A&) {
    throw std::logic_error("empty");
  }
};
TEST(type_description, of_a_class_that_cannot_be_sent_empty_has_its_name) {
  EXPECT_NE(looks<throws_when_empty>().find("throws_when_empty"), std::string::npos);
}

struct deep {
  std::map<int, std::vector<deep>> more;
};
TEST(type_description, of_a_class_that_holds_itself_ends) { EXPECT_LT(looks<deep>().size(), 10'000U); }

}  // namespace type_description_tests
