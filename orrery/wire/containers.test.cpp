// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/containers.hpp>

#include <bitset>
#include <complex>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>
#include <boost/container/flat_map.hpp>
#include <boost/container/stable_vector.hpp>
#include <boost/container/vector.hpp>

#include <orrery/wire/error.hpp>
#include <orrery/wire/internal/test_message.hpp>

namespace orrery::wire {
namespace containers_tests {

struct empty {
  bool operator==(const empty&) const = default;
  auto operator<=>(const empty&) const = default;
};
struct writes_nothing {
  template <class A>
  void serialize(A&) {}
};
struct item {
  int id = 0;
  std::string name;
  bool operator==(const item&) const = default;
};

TEST(run, strings_of_all_characters_come_back) {
  EXPECT_EQ(round_trip(std::string("with\0zero", 9)), std::string("with\0zero", 9));
  EXPECT_EQ(round_trip(std::u16string(u"wide")), u"wide");
  EXPECT_EQ(round_trip(std::string()), "");
}

TEST(run, a_vector_of_numbers_is_its_length_and_one_block) {
  const std::vector<std::int32_t> v{1, 2, 3};
  const message m = encode(v);
  ASSERT_EQ(m.size(), 4 + 12u);
  EXPECT_EQ(std::memcmp(m.bytes().data() + 4, v.data(), 12), 0);
  EXPECT_EQ(decode<std::vector<std::int32_t>>(m), v);
}

TEST(run, vectors_of_pairs_and_complex_numbers_are_blocks_too) {
  const std::vector<std::pair<int, float>> pairs{{1, 2.0f}, {3, 4.0f}};
  EXPECT_EQ(round_trip(pairs), pairs);
  EXPECT_EQ(wire_size(pairs), 4 + 16u);
  const std::vector<std::complex<double>> numbers{{1, 2}, {3, 4}};
  EXPECT_EQ(round_trip(numbers), numbers);
  EXPECT_EQ(wire_size(numbers), 8 + 32u);
}

TEST(run, an_empty_one_takes_its_length_only) {
  EXPECT_EQ(wire_size('x', std::vector<double>()), 5u);
  EXPECT_EQ(round_trip(std::vector<double>()), std::vector<double>());
}

TEST(sequence, vectors_deques_and_lists_of_anything_come_back) {
  const std::vector<item> v{{1, "one"}, {2, "two"}};
  EXPECT_EQ(round_trip(v), v);
  const std::deque<item> d(v.begin(), v.end());
  EXPECT_EQ(round_trip(d), d);
  const std::list<item> l(v.begin(), v.end());
  EXPECT_EQ(round_trip(l), l);
  const std::vector<std::vector<std::string>> nested{{"a"}, {}, {"b", "c"}};
  EXPECT_EQ(round_trip(nested), nested);
}

TEST(sequence, of_elements_without_bytes_takes_one_byte_for_each) {
  const std::vector<empty> v(1000);
  EXPECT_EQ(wire_size(v), 1004u);
  EXPECT_EQ(round_trip(v).size(), 1000u);
  const std::vector<writes_nothing> w(1000);
  EXPECT_EQ(wire_size(w), 1004u);
  EXPECT_EQ(round_trip(w).size(), 1000u);
}

TEST(sequence, of_elements_without_bytes_cannot_be_forged_to_be_endless) {
  EXPECT_THROW((void)decode<std::vector<empty>>(encode(std::uint32_t{0xfffffffe})), bad_message);
  EXPECT_THROW((void)decode<std::vector<writes_nothing>>(encode(std::uint32_t{0xfffffffe})), bad_message);
  EXPECT_THROW((void)decode<std::list<std::tuple<>>>(encode(std::uint32_t{5}, 'x')), bad_message);
}

TEST(sequence, a_length_of_more_than_the_message_holds_is_refused) {
  const message m = encode(std::vector<std::string>{"a", "b", "c"});
  m.bytes()[0] = std::byte{4};
  EXPECT_THROW((void)decode<std::vector<std::string>>(m), bad_message);
}

TEST(bools, a_vector_of_any_length_comes_back_eight_to_a_byte) {
  for (std::size_t n = 0; n != 40; ++n) {
    std::vector<bool> v(n);
    for (std::size_t i = 0; i != n; ++i) v[i] = i % 3 == 0;
    EXPECT_EQ(round_trip(v), v);
    EXPECT_EQ(wire_size(v), 4 + (n + 7) / 8);
  }
}

TEST(bools, a_bit_after_the_last_is_refused) {
  const message m = encode(std::vector<bool>(9));
  m.bytes().back() = std::byte{2};
  EXPECT_THROW((void)decode<std::vector<bool>>(m), bad_message);
}

TEST(bits, a_bitset_comes_back) {
  std::bitset<100> b;
  b.set(0).set(63).set(99);
  EXPECT_EQ(round_trip(b), b);
  EXPECT_EQ(wire_size(b), 13u);
  EXPECT_EQ(round_trip(std::bitset<0>()), std::bitset<0>());
}

TEST(set, every_kind_comes_back) {
  const std::set<std::string> s{"a", "b"};
  EXPECT_EQ(round_trip(s), s);
  const std::multiset<int> m{1, 1, 2};
  EXPECT_EQ(round_trip(m), m);
  const std::unordered_set<std::string> u{"a", "b"};
  EXPECT_EQ(round_trip(u), u);
  const std::unordered_multiset<int> um{1, 1, 2};
  EXPECT_EQ(round_trip(um), um);
  const std::set<int, std::greater<>> down{1, 2, 3};
  EXPECT_EQ(round_trip(down), down);
  const std::set<empty> e{empty{}};
  EXPECT_EQ(round_trip(e), e);
}

TEST(set, with_two_equal_elements_is_refused) {
  const message m = encode(std::multiset<int>{1, 1});
  EXPECT_THROW((void)decode<std::set<int>>(m), bad_message);
  EXPECT_THROW((void)decode<std::unordered_set<int>>(m), bad_message);
}

TEST(map, every_kind_comes_back) {
  const std::map<std::string, item> m{{"a", {1, "one"}}, {"b", {2, "two"}}};
  EXPECT_EQ(round_trip(m), m);
  const std::multimap<int, std::string> mm{{1, "b"}, {1, "a"}, {2, "c"}};
  EXPECT_EQ(round_trip(mm), mm);
  const std::unordered_map<std::string, std::vector<int>> u{{"a", {1}}, {"b", {}}};
  EXPECT_EQ(round_trip(u), u);
  const std::unordered_multimap<int, int> um{{1, 1}, {1, 2}, {2, 2}};
  EXPECT_EQ(round_trip(um), um);
  const std::map<empty, empty> e{{}};
  EXPECT_EQ(round_trip(e), e);
}

TEST(map, equal_keys_of_a_multimap_keep_their_order) {
  const std::multimap<int, std::string> m{{1, "first"}, {1, "second"}, {1, "third"}};
  EXPECT_EQ(round_trip(m), m);
}

TEST(map, with_two_equal_keys_is_refused) {
  const message m = encode(std::multimap<int, int>{{1, 1}, {1, 2}});
  EXPECT_THROW((void)(decode<std::map<int, int>>(m)), bad_message);
}

TEST(other_libraries, their_containers_come_back) {
  const boost::container::flat_map<std::string, int> f{{"a", 1}, {"b", 2}};
  EXPECT_EQ(round_trip(f), f);
  const boost::container::vector<double> v{1, 2, 3, 4, 5};
  EXPECT_EQ(round_trip(v), v);
  EXPECT_EQ(wire_size(v), 8 + 40u);
  const boost::container::stable_vector<std::string> t{"a", "b"};
  EXPECT_EQ(round_trip(t), t);
}

}  // namespace containers_tests
}  // namespace orrery::wire
