// SPDX-License-Identifier: Apache-2.0
// The texts that are expected here are those of all compilers: tests are built by several.
#include <orrery/wire/type_key.hpp>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::wire {
namespace type_key_test {

struct plain {};
template <class T, std::size_t N>
struct grid {
  void move(T) const noexcept {}
};
enum class color : std::uint8_t { red, green };
template <color C>
struct painted {};
template <auto F>
struct of_value {};
int length(const std::string&) { return 0; }

}  // namespace type_key_test

namespace {

struct hidden {};
[[maybe_unused]] static int hidden_function(long) { return 0; }  // twice hidden, which GCC marks

}  // namespace

namespace type_key_tests {

using namespace type_key_test;

template <class T>
std::string key() {
  const std::string text = stable_key(type_key<T>());
  constexpr std::string_view begin = "N6orrery4wire10keyed_typeI";
  EXPECT_TRUE(is_type_key(text));
  return text.substr(begin.size(), text.size() - begin.size() - 2);
}
template <class T>
std::string readable() {
  return readable_key(type_key<T>());
}

TEST(type_key, is_spelled_alike_by_all_compilers) {
  EXPECT_EQ(key<unsigned long>(), "m");
  EXPECT_EQ(key<std::string>(), "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
  EXPECT_EQ(key<plain>(), "NS0_13type_key_test5plainE");
  EXPECT_EQ(key<hidden>(), "NS0_12_GLOBAL__N_16hiddenE");
  EXPECT_EQ((key<grid<std::vector<int>, 3>>()), "NS0_13type_key_test4gridISt6vectorIiSaIiEELm3EEE");
  EXPECT_EQ(key<painted<color::green>>(), "NS0_13type_key_test7paintedILNS2_5colorE1EEE");
  EXPECT_EQ(key<void(int, const plain&)>(), "FviRKNS0_13type_key_test5plainEE");
  EXPECT_EQ(key<of_value<nullptr>>(), "NS0_13type_key_test8of_valueILDnEEE");
}

TEST(type_key, names_functions_and_methods) {
  EXPECT_EQ(
      key<of_value<&length>>(),
      "NS0_13type_key_test8of_valueIXadL_ZNS2_6lengthERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEEEEE");
  EXPECT_EQ((key<of_value<&grid<int, 3>::move>>()), "NS0_13type_key_test8of_valueIXadL_ZNKS2_4gridIiLm3EE4moveEiEEEE");
  EXPECT_EQ(key<of_value<&hidden_function>>(),
            "NS0_13type_key_test8of_valueIXadL_ZNS0_12_GLOBAL__N_115hidden_functionElEEEE");
}

TEST(type_key, of_a_lambda_or_a_nameless_type_is_local) {
  const auto lambda = [](int n) { return n; };
  struct {
    int n;
  } nameless{0};
  (void)nameless;
  struct Ulm {};
  EXPECT_TRUE(is_local_key(type_key<decltype(lambda)>()));
  EXPECT_TRUE(is_local_key(type_key<std::vector<decltype(nameless)>>()));
  EXPECT_FALSE(is_local_key(type_key<Ulm>()));
  EXPECT_FALSE(is_local_key(type_key<hidden>()));
}

TEST(readable_key, is_what_people_write) {
  EXPECT_EQ(readable<unsigned long>(), "unsigned long");
  EXPECT_EQ(readable<std::string>(), "std::string");
  EXPECT_EQ((readable<std::map<std::string, std::vector<std::array<double, 3>>>>()),
            "std::map<std::string, std::vector<std::array<double, 3>>>");
  EXPECT_EQ(readable<hidden>(), "orrery::wire::(anonymous namespace)::hidden");
  EXPECT_EQ((readable<grid<int, 3>>()), "orrery::wire::type_key_test::grid<int, 3>");
  EXPECT_EQ(readable<std::unique_ptr<std::string_view>>(), "std::unique_ptr<std::string_view>");
  EXPECT_EQ(readable<std::span<const float>>(), "std::span<float const>");
  EXPECT_EQ(readable<const plain&>(), "orrery::wire::type_key_test::plain const&");
}

TEST(canonical_name, is_made_once) {
  EXPECT_EQ(canonical_name<plain>(), "orrery::wire::type_key_test::plain");
  EXPECT_EQ(canonical_name<plain>().data(), canonical_name<plain>().data());
}

}  // namespace type_key_tests
}  // namespace orrery::wire
