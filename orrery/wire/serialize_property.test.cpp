// SPDX-License-Identifier: Apache-2.0
// What holds for all values, tried with random ones.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <orrery/wire/error.hpp>
#include <orrery/wire/internal/test_message.hpp>
#include <orrery/wire/serialize.hpp>

namespace orrery {

// Something of every kind, within itself. Not in an unnamed namespace: RapidCheck's Arbitrary is
// specialized for it.
struct thing {
  std::int8_t small = 0;
  double number = 0;
  bool flag = false;
  std::string text;
  std::vector<std::uint64_t> numbers;
  std::vector<bool> bits;
  std::optional<std::string> maybe;
  std::variant<std::monostate, int, std::string, std::vector<float>> choice;
  std::map<std::string, std::pair<char, std::list<int>>> map;
  std::unordered_map<int, std::string> table;
  std::set<std::tuple<int, bool>> set;
  std::pair<short, std::int64_t> pair;
  std::array<std::optional<char>, 3> array;
  short grid[2][2] = {};
  std::vector<thing> children;
  std::shared_ptr<thing> next;
};

bool operator==(const thing& a, const thing& b) {
  if ((a.next == nullptr) != (b.next == nullptr)) return false;
  if (a.next && !(*a.next == *b.next)) return false;
  return a.small == b.small && a.number == b.number && a.flag == b.flag && a.text == b.text && a.numbers == b.numbers &&
         a.bits == b.bits && a.maybe == b.maybe && a.choice == b.choice && a.map == b.map && a.table == b.table &&
         a.set == b.set && a.pair == b.pair && a.array == b.array &&
         std::equal(&a.grid[0][0], &a.grid[0][0] + 4, &b.grid[0][0]) && a.children == b.children;
}

std::ostream& operator<<(std::ostream& out, const thing& t) { return out << "thing " << t.text; }

thing arbitrary_thing(int depth) {
  using rc::gen::arbitrary;
  thing t;
  t.small = *arbitrary<std::int8_t>();
  t.number = *arbitrary<double>();
  t.flag = *arbitrary<bool>();
  t.text = *arbitrary<std::string>();
  t.numbers = *arbitrary<std::vector<std::uint64_t>>();
  t.bits = *arbitrary<std::vector<bool>>();
  if (*arbitrary<bool>()) t.maybe = *arbitrary<std::string>();
  switch (*rc::gen::inRange(0, 4)) {
    case 1:
      t.choice = *arbitrary<int>();
      break;
    case 2:
      t.choice = *arbitrary<std::string>();
      break;
    case 3:
      t.choice = *arbitrary<std::vector<float>>();
      break;
    default:
      break;
  }
  t.map = *arbitrary<std::map<std::string, std::pair<char, std::list<int>>>>();
  t.table = *arbitrary<std::unordered_map<int, std::string>>();
  t.set = *arbitrary<std::set<std::tuple<int, bool>>>();
  t.pair = *arbitrary<std::pair<short, std::int64_t>>();
  if (*arbitrary<bool>()) t.array[1] = *arbitrary<char>();
  t.grid[1][0] = *arbitrary<short>();
  if (depth != 0) {
    for (int n = *rc::gen::inRange(0, 3); n != 0; --n) {
      t.children.push_back(arbitrary_thing(depth - 1));
    }
    if (*arbitrary<bool>()) t.next = std::make_shared<thing>(arbitrary_thing(depth - 1));
  }
  return t;
}

}  // namespace orrery

template <>
struct rc::Arbitrary<orrery::thing> {
  static Gen<orrery::thing> arbitrary() {
    return gen::exec([] { return orrery::arbitrary_thing(2); });
  }
};

namespace orrery {
namespace serialize_property_tests {

using wire::decode;
using wire::encode;
using wire::message;

// True if reading does not go well: by bad_message and nothing else.
template <class T>
bool is_refused(const message& m) {
  try {
    (void)decode<T>(m);
    return false;
  } catch (const bad_message&) {
    return true;
  }
}

RC_GTEST_PROP(property, every_value_comes_back_equal, (const thing& t)) { RC_ASSERT(wire::round_trip(t) == t); }

RC_GTEST_PROP(property, the_size_is_what_is_written, (const thing& t, const std::string& s)) {
  const message m(wire_size(s, t, s));
  writer w(m.bytes());
  write(w, s, t, s);
  RC_ASSERT(w.left() == 0u);
}

RC_GTEST_PROP(property, no_byte_of_a_message_is_left_unwritten, (const thing& t)) {
  const message a(wire_size(t));
  const message b(a.size());
  std::memset(a.bytes().data(), 0x00, a.size());
  std::memset(b.bytes().data(), 0xff, b.size());
  writer to_a(a.bytes());
  writer to_b(b.bytes());
  write(to_a, t);
  write(to_b, t);
  RC_ASSERT(std::memcmp(a.bytes().data(), b.bytes().data(), a.size()) == 0);
}

RC_GTEST_PROP(property, every_truncation_is_refused, (const thing& t)) {
  const message m = encode(t);
  // All short ones, and a spread of the others: a message may have thousands of bytes.
  const std::size_t step = 1 + m.size() / 50;
  for (std::size_t n = 0; n < m.size(); n += step) RC_ASSERT(is_refused<thing>(m.first(n)));
  RC_ASSERT(is_refused<thing>(m.first(m.size() - 1)));
}

RC_GTEST_PROP(property, a_byte_too_many_is_refused, (const thing& t)) {
  const message m = encode(t, 'x');
  RC_ASSERT(is_refused<thing>(m));
}

RC_GTEST_PROP(property, any_bytes_are_read_or_refused, (const std::vector<char>& bytes)) {
  const message m(std::as_bytes(std::span(bytes)));
  (void)is_refused<thing>(m);
  (void)is_refused<std::vector<std::vector<bool>>>(m);
  (void)is_refused<std::map<std::string, thing>>(m);
  (void)is_refused<std::variant<thing, std::unique_ptr<thing>>>(m);
}

}  // namespace serialize_property_tests
}  // namespace orrery
