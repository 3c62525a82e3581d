// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/serializable.hpp>

#include <atomic>
#include <bitset>
#include <chrono>
#include <complex>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <forward_list>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <gtest/gtest.h>

#include <orrery/wire/address.hpp>
#include <orrery/wire/exception.hpp>

namespace orrery {
namespace serializable_tests {

enum class colour : std::uint8_t { red, green };
enum class flag : bool { off, on };
enum plain { one, two };

struct point {
  int x;
  int y;
};
struct padded {
  char c;
  int i;
};
struct with_bool {
  bool b;
  bool c;
};
struct with_text {
  int id;
  std::string name;
};
struct with_array {
  int id;
  float grid[4][4];
};

class with_member {
 public:
  explicit with_member(int* p = nullptr) : not_looked_at_(p) {}
  template <class A>
  void serialize(A& a) {
    a & x_;
  }

 private:
  [[maybe_unused]] int* not_looked_at_;
  int x_ = 0;
};

struct with_free {
  explicit with_free(int) {}
  with_free() {}
  int x = 0;
};
template <class A>
void serialize(A& a, with_free& w) {
  a & w.x;
}

TEST(serializable, numbers_and_enums_are) {
  EXPECT_TRUE(serializable<int>);
  EXPECT_TRUE(serializable<char8_t>);
  EXPECT_TRUE(serializable<bool>);
  EXPECT_TRUE(serializable<long double>);
  EXPECT_TRUE(serializable<std::byte>);
  EXPECT_TRUE(serializable<colour>);
  EXPECT_TRUE(serializable<flag>);
  EXPECT_TRUE(serializable<plain>);
  EXPECT_TRUE(serializable<wire::int128>);
}

TEST(serializable, the_standard_containers_are) {
  EXPECT_TRUE(serializable<std::string>);
  EXPECT_TRUE(serializable<std::u16string>);
  EXPECT_TRUE(serializable<std::vector<with_text>>);
  EXPECT_TRUE(serializable<std::vector<bool>>);
  EXPECT_TRUE((serializable<std::array<with_text, 3>>));
  EXPECT_TRUE(serializable<int[2][3]>);
  EXPECT_TRUE(serializable<std::deque<with_text>>);
  EXPECT_TRUE(serializable<std::list<with_text>>);
  EXPECT_TRUE((serializable<std::map<std::string, with_text>>));
  EXPECT_TRUE((serializable<std::multimap<std::string, with_text>>));
  EXPECT_TRUE((serializable<std::unordered_map<std::string, with_text>>));
  EXPECT_TRUE((serializable<std::unordered_multimap<std::string, with_text>>));
  EXPECT_TRUE(serializable<std::set<int>>);
  EXPECT_TRUE(serializable<std::multiset<int>>);
  EXPECT_TRUE(serializable<std::unordered_set<int>>);
  EXPECT_TRUE(serializable<std::unordered_multiset<int>>);
  EXPECT_TRUE(serializable<std::bitset<100>>);
}

TEST(serializable, the_standard_sums_products_and_pointers_are) {
  EXPECT_TRUE((serializable<std::pair<int, std::string>>));
  EXPECT_TRUE((serializable<std::tuple<int, std::string>>));
  EXPECT_TRUE(serializable<std::tuple<>>);
  EXPECT_TRUE(serializable<std::optional<with_text>>);
  EXPECT_TRUE((serializable<std::variant<std::monostate, int, with_text>>));
  EXPECT_TRUE(serializable<std::unique_ptr<with_text>>);
  EXPECT_TRUE(serializable<std::shared_ptr<const with_text>>);
}

TEST(serializable, numbers_and_times_and_paths_of_the_library_are) {
  EXPECT_TRUE(serializable<std::complex<double>>);
  EXPECT_TRUE(serializable<std::complex<long double>>);
  EXPECT_TRUE(serializable<std::chrono::nanoseconds>);
  EXPECT_TRUE((serializable<std::chrono::duration<double>>));
  EXPECT_TRUE(serializable<std::chrono::system_clock::time_point>);
  EXPECT_TRUE(serializable<std::filesystem::path>);
}

TEST(serializable, orrerys_own_values_are) {
  EXPECT_TRUE(serializable<address>);
  EXPECT_TRUE(serializable<where>);
  EXPECT_TRUE(serializable<wire_exception>);
}

TEST(serializable, aggregates_are_if_their_fields_are) {
  EXPECT_TRUE(serializable<point>);
  EXPECT_TRUE(serializable<with_text>);
  EXPECT_TRUE(serializable<with_array>);
  struct {
    point p;
    int* q;
  } bad;
  EXPECT_FALSE(serializable<decltype(bad)>);
}

TEST(serializable, a_class_with_serialize_is_whatever_else_it_holds) {
  EXPECT_TRUE(serializable<with_member>);
  EXPECT_TRUE(serializable<with_free>);
  EXPECT_TRUE((serializable<std::map<int, std::vector<with_free>>>));
}

struct tree {
  int value;
  std::vector<tree> children;
  std::unique_ptr<tree> next;
  std::map<int, std::optional<std::vector<tree>>> more;
};
struct left_tree;
struct right_tree {
  std::unique_ptr<left_tree> left;
};
struct left_tree {
  std::vector<right_tree> right;
};
struct bad_tree {
  std::vector<bad_tree> children;
  void* data;
};

TEST(serializable, a_class_that_holds_containers_of_itself_is) {
  EXPECT_TRUE(serializable<tree>);
  EXPECT_TRUE(serializable<left_tree>);
  EXPECT_TRUE(serializable<right_tree>);
  EXPECT_FALSE(serializable<bad_tree>);
}

TEST(serializable, pointers_and_references_are_not) {
  EXPECT_FALSE(serializable<int*>);
  EXPECT_FALSE(serializable<const char*>);
  EXPECT_FALSE(serializable<void*>);
  EXPECT_FALSE(serializable<int&>);
  EXPECT_FALSE(serializable<const int&>);
  EXPECT_FALSE(serializable<void (*)(int)>);
  EXPECT_FALSE(serializable<void(int)>);
  EXPECT_FALSE(serializable<int point::*>);
  EXPECT_FALSE(serializable<std::nullptr_t>);
  EXPECT_FALSE(serializable<std::vector<int*>>);
  EXPECT_FALSE((serializable<std::map<int, std::tuple<int, char*>>>));
}

TEST(serializable, what_is_no_value_is_not) {
  EXPECT_FALSE(serializable<void>);
  EXPECT_FALSE(serializable<const int>);
  EXPECT_FALSE(serializable<int[]>);
  EXPECT_FALSE(serializable<std::mutex>);
  EXPECT_FALSE(serializable<std::atomic<int>>);
  union either {
    int a;
    float b;
  };
  EXPECT_FALSE(serializable<either>);
  auto lambda = [x = 3] { return x; };
  EXPECT_FALSE(serializable<decltype(lambda)>);
}

class closed {
  [[maybe_unused]] int x_ = 0;
};
class private_serialize {
  template <class A>
  void serialize(A& a) {
    a & x_;
  }
  int x_ = 0;
};
struct derived : point {
  int z;
};
struct constant {
  const int x = 0;
};
struct constant_time {
  const std::chrono::seconds x{};
};
struct changes_by_itself {
  int x;
  volatile int y;
};
struct with_mutex {
  std::mutex m;
  int x;
};

TEST(serializable, a_class_that_nobody_can_look_into_is_not) {
  EXPECT_FALSE(serializable<closed>);
  EXPECT_FALSE(serializable<private_serialize>);
  EXPECT_FALSE(serializable<derived>);
  EXPECT_FALSE(serializable<constant>);
  EXPECT_FALSE(serializable<constant_time>);
  EXPECT_FALSE(serializable<changes_by_itself>);
  EXPECT_FALSE(serializable<with_mutex>);
  EXPECT_FALSE(serializable<std::forward_list<int>>);
}

struct inherits_member : with_member {
  int lost = 0;
};
struct inherits_free : with_free {
  int lost = 0;
};
struct without_padding {
  template <class A>
  void serialize(A& a) {
    a & x;
  }
  int x = 0;
};
struct adds_nothing : without_padding {
  int twice() const { return 2 * x; }
};
template <class T>
struct mixin {
  template <class A>
  void serialize(A& a) {
    a& static_cast<T*>(this)->x;
  }
};
struct uses_mixin : mixin<uses_mixin> {
  int x = 0;
};
struct extends_member : with_member {
  int z = 0;
  template <class A>
  void serialize(A& a) {
    with_member::serialize(a);
    a & z;
  }
};
struct extends_free : with_free {
  int z = 0;
};
template <class A>
void serialize(A& a, extends_free& e) {
  serialize(a, static_cast<with_free&>(e));
  a & e.z;
}
class inherits_vector : public std::vector<std::string> {
 public:
  using std::vector<std::string>::vector;
  int lost = 0;
};
class renamed_vector : public std::vector<std::string> {
 public:
  using std::vector<std::string>::vector;
};
class inherits_map : public std::map<int, int> {
 public:
  using std::map<int, int>::map;
  int lost = 0;
};

TEST(serializable, a_class_that_would_lose_its_own_members_is_not) {
  EXPECT_FALSE(serializable<inherits_member>);
  EXPECT_FALSE(serializable<inherits_free>);
  EXPECT_FALSE(serializable<inherits_vector>);
  EXPECT_FALSE(serializable<inherits_map>);
}

TEST(serializable, a_derived_class_that_adds_nothing_or_names_it_is) {
  EXPECT_TRUE(serializable<adds_nothing>);
  EXPECT_TRUE(serializable<uses_mixin>);
  EXPECT_TRUE(serializable<extends_member>);
  EXPECT_TRUE(serializable<extends_free>);
  EXPECT_TRUE(serializable<renamed_vector>);
}

class without_default {
 public:
  explicit without_default(int x) : x_(x) {}
  template <class A>
  void serialize(A& a) {
    a & x_;
  }

 private:
  int x_;
};
class private_default {
  private_default() = default;

 public:
  template <class A>
  void serialize(A&) {}
};

TEST(serializable, a_class_without_a_public_default_constructor_is_not) {
  EXPECT_FALSE(serializable<without_default>);
  EXPECT_FALSE(serializable<private_default>);
  EXPECT_FALSE(serializable<std::vector<without_default>>);
  EXPECT_FALSE((serializable<std::array<without_default, 2>>));
  EXPECT_FALSE((serializable<std::pair<int, without_default>>));
}

struct shape {
  virtual ~shape() = default;
  template <class A>
  void serialize(A&) {}
};
struct circle final : shape {};
struct free_it {
  void operator()(int*) const {}
};

TEST(serializable, a_pointer_that_would_lose_something_is_not) {
  EXPECT_FALSE(serializable<std::unique_ptr<shape>>);
  EXPECT_FALSE(serializable<std::shared_ptr<shape>>);
  EXPECT_TRUE(serializable<std::unique_ptr<circle>>);
  EXPECT_TRUE(serializable<shape>);
  EXPECT_FALSE((serializable<std::unique_ptr<int, free_it>>));
  EXPECT_FALSE(serializable<std::unique_ptr<int[]>>);
  EXPECT_FALSE(serializable<std::shared_ptr<int[]>>);
  EXPECT_FALSE(serializable<std::weak_ptr<int>>);
}

// As the standard's owners to look at, and not to be taken for one.
struct own_owner {
  using element_type = int;
  using weak_type = int;
  own_owner() = default;
  explicit own_owner(int* p) : at(p) {}
  int* get() const { return at; }
  template <class A>
  void serialize(A&) {}
  int* at = nullptr;
};
struct derived_owner : std::unique_ptr<int> {
  template <class A>
  void serialize(A&) {}
};

TEST(serializable, an_owner_of_somebodys_own_is_what_it_says) {
  static_assert(wire::kind_of<std::unique_ptr<const int>> == wire::kind::pointer);
  static_assert(wire::kind_of<std::shared_ptr<int>> == wire::kind::pointer);
  static_assert(wire::kind_of<own_owner> == wire::kind::member_serialize);
  static_assert(wire::kind_of<derived_owner> == wire::kind::member_serialize);
  EXPECT_TRUE(serializable<own_owner>);
  EXPECT_TRUE(serializable<derived_owner>);
}

struct my_view {
  static constexpr bool is_view = true;
  std::span<const double> values;
  std::string_view name;
};
struct holds_a_view {
  std::string_view name;
};

TEST(serializable, views_are_as_arguments_and_inside_views_only) {
  EXPECT_TRUE(serializable<std::string_view>);
  EXPECT_TRUE(serializable<std::span<const double>>);
  EXPECT_TRUE(serializable<std::span<const point>>);
  EXPECT_TRUE(serializable<my_view>);
  EXPECT_FALSE(serializable<holds_a_view>);
  EXPECT_FALSE(serializable<std::vector<std::string_view>>);
  EXPECT_FALSE((serializable<std::pair<int, std::string_view>>));
  EXPECT_FALSE(serializable<std::optional<my_view>>);
}

TEST(serializable, a_span_of_what_cannot_be_read_in_place_is_not) {
  EXPECT_FALSE(serializable<std::span<double>>);
  EXPECT_FALSE((serializable<std::span<const double, 3>>));
  EXPECT_FALSE(serializable<std::span<const std::string>>);
  EXPECT_FALSE(serializable<std::span<const bool>>);
  EXPECT_FALSE(serializable<std::span<const padded>>);
}

TEST(is_view, is_true_for_views_only) {
  EXPECT_TRUE(is_view<std::string_view>);
  EXPECT_TRUE(is_view<std::span<const int>>);
  EXPECT_TRUE(is_view<my_view>);
  EXPECT_FALSE(is_view<std::string>);
  EXPECT_FALSE(is_view<std::vector<int>>);
  EXPECT_FALSE(is_view<int>);
}

TEST(trivially_serializable, numbers_and_classes_of_numbers_without_padding_are) {
  EXPECT_TRUE(trivially_serializable<int>);
  EXPECT_TRUE(trivially_serializable<double>);
  EXPECT_TRUE(trivially_serializable<colour>);
  EXPECT_TRUE(trivially_serializable<point>);
  EXPECT_TRUE(trivially_serializable<with_array>);
  EXPECT_TRUE((trivially_serializable<std::array<point, 3>>));
  EXPECT_TRUE(trivially_serializable<int[3][2]>);
  EXPECT_TRUE((trivially_serializable<std::pair<int, float>>));
  EXPECT_TRUE(trivially_serializable<std::complex<double>>);
  EXPECT_TRUE(trivially_serializable<std::chrono::milliseconds>);
  EXPECT_TRUE(trivially_serializable<address>);
}

TEST(trivially_serializable, what_has_padding_or_forbidden_values_is_not) {
  EXPECT_FALSE(trivially_serializable<padded>);
  EXPECT_FALSE((trivially_serializable<std::pair<char, int>>));
  EXPECT_FALSE(trivially_serializable<bool>);
  EXPECT_FALSE(trivially_serializable<flag>);
  EXPECT_FALSE(trivially_serializable<with_bool>);
  EXPECT_FALSE(trivially_serializable<with_text>);
  EXPECT_FALSE(trivially_serializable<with_member>);
  EXPECT_FALSE(trivially_serializable<int*>);
  EXPECT_FALSE(trivially_serializable<std::optional<int>>);
  struct empty {};
  EXPECT_FALSE(trivially_serializable<empty>);
}

class vec3 {
 public:
  vec3() = default;
  vec3(double x, double y, double z) : x_(x), y_(y), z_(z) {}

 private:
  [[maybe_unused]] double x_ = 0, y_ = 0, z_ = 0;
};

}  // namespace serializable_tests

template <>
inline constexpr bool send_as_bytes<serializable_tests::vec3> = true;

namespace serializable_tests {

TEST(trivially_serializable, a_class_is_that_opts_in) {
  EXPECT_TRUE(trivially_serializable<vec3>);
  EXPECT_TRUE(serializable<std::span<const vec3>>);
}

}  // namespace serializable_tests
}  // namespace orrery
