// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/serialize.hpp>

#include <chrono>
#include <cmath>
#include <complex>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/wire/address.hpp>
#include <orrery/wire/error.hpp>
#include <orrery/wire/internal/test_message.hpp>

namespace orrery {
namespace serialize_tests {

using wire::decode;
using wire::encode;
using wire::message;
using wire::round_trip;

struct cache_line {
  double d[6];
  int i[4];
};
static_assert(sizeof(cache_line) == 64);

// Evaluated by the compiler: the process layer lays out fixed messages with it.
static_assert(wire_size<int, double, cache_line>() == 76);
static_assert(wire_size(1, 2.0, cache_line{}) == 76);
static_assert(has_fixed_wire_size<int, bool, std::pair<char, double>, cache_line>);
static_assert(!has_fixed_wire_size<std::string>);
static_assert(!has_fixed_wire_size<std::optional<int>>);
static_assert(min_wire_size<std::string> == 4);
static_assert(wire_size<>() == 0);

TEST(wire_size, is_what_is_written_for_values_of_any_size) {
  EXPECT_EQ(wire_size(std::string("abc"), true, std::vector<double>(3)), 7u + 1 + 4 + 4 + 24);
}

enum class colour : std::uint8_t { red = 1, green = 200 };
enum class flag : bool { off, on };

TEST(scalar, of_every_kind_comes_back) {
  EXPECT_EQ(round_trip('x'), 'x');
  EXPECT_EQ(round_trip(std::numeric_limits<std::int64_t>::min()), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(round_trip(3.25f), 3.25f);
  EXPECT_EQ(round_trip(-0.1), -0.1);
  EXPECT_TRUE(std::isnan(round_trip(std::nan(""))));
  EXPECT_EQ(round_trip(u8'x'), u8'x');
  EXPECT_EQ(round_trip(std::byte{77}), std::byte{77});
  EXPECT_EQ(round_trip(colour::green), colour::green);
  EXPECT_EQ(round_trip(flag::on), flag::on);
  EXPECT_EQ(round_trip(wire::int128{-5}), wire::int128{-5});
}

TEST(scalar, takes_its_own_size) {
  EXPECT_EQ(wire_size('x'), 1u);
  EXPECT_EQ(wire_size(std::int16_t{1}), 2u);
  EXPECT_EQ(wire_size(true), 1u);
  EXPECT_EQ(wire_size(colour::red), 1u);
}

TEST(scalar, a_long_double_travels_without_its_padding) {
  EXPECT_EQ(round_trip(1.0L / 3), 1.0L / 3);
  EXPECT_EQ(wire_size(1.0L), std::numeric_limits<long double>::digits == 64 ? 10u : sizeof(1.0L));
}

TEST(boolean, any_byte_but_0_and_1_is_refused) {
  EXPECT_TRUE(decode<bool>(encode('\1')));
  EXPECT_FALSE(decode<bool>(encode('\0')));
  for (int byte = 2; byte != 256; ++byte) {
    EXPECT_THROW((void)decode<bool>(encode(static_cast<unsigned char>(byte))), bad_message);
  }
  EXPECT_THROW((void)decode<flag>(encode('\2')), bad_message);
}

struct mixed {
  char c = 0;
  double d = 0;
  bool b = false;
  std::string s;
  int grid[2][3] = {};
  std::optional<std::vector<int>> v;

  bool operator==(const mixed&) const = default;
};
struct empty {
  bool operator==(const empty&) const = default;
};

TEST(aggregate, comes_back_field_by_field) {
  const mixed m{'x', 2.5, true, "text", {{1, 2, 3}, {4, 5, 6}}, std::vector{7, 8}};
  EXPECT_EQ(round_trip(m), m);
  EXPECT_EQ(round_trip(mixed{}), mixed{});
}

TEST(aggregate, takes_no_padding) {
  struct padded {
    char c;
    double d;
  };
  EXPECT_EQ(wire_size(padded{}), 9u);
  EXPECT_EQ(wire_size(empty{}), 0u);
  EXPECT_EQ(wire_size(mixed{}), 1u + 8 + 1 + 4 + 24 + 1);
}

TEST(aggregate, an_address_is_its_twelve_bytes) {
  const address a{3, 17, 2};
  EXPECT_EQ(wire_size(a), 12u);
  EXPECT_EQ(round_trip(a), a);
}

TEST(tuple, and_pair_come_back) {
  const std::tuple<int, std::string, bool> t{1, "two", true};
  EXPECT_EQ(round_trip(t), t);
  EXPECT_EQ(wire_size(t), 4u + 7 + 1);
  const std::pair<char, double> p{'x', 2.0};
  EXPECT_EQ(round_trip(p), p);
  EXPECT_EQ(wire_size(p), 9u);
}

TEST(optional, comes_back_full_or_empty) {
  EXPECT_EQ(round_trip(std::optional<std::string>("x")), "x");
  EXPECT_EQ(round_trip(std::optional<std::string>()), std::nullopt);
  EXPECT_EQ(round_trip(std::optional<empty>(empty{})), empty{});
}

using choice = std::variant<std::monostate, int, std::string, std::vector<double>>;

TEST(variant, every_alternative_comes_back) {
  for (const choice& c : {choice(), choice(7), choice("x"), choice(std::vector{1.5, 2.5})}) {
    EXPECT_EQ(round_trip(c), c);
  }
}

TEST(variant, an_alternative_that_does_not_exist_is_refused) {
  EXPECT_THROW((void)decode<choice>(encode('\4')), bad_message);
  EXPECT_THROW((void)decode<choice>(encode('\xff')), bad_message);
}

struct throws_when_made {
  throws_when_made() = default;
  explicit throws_when_made(int) { throw 1; }
  throws_when_made(const throws_when_made&) = default;
  throws_when_made& operator=(const throws_when_made&) = default;
  ~throws_when_made() {}  // not trivial: a variant builds a trivial one elsewhere first
  template <class A>
  void serialize(A&) {}
};

TEST(variant, without_a_value_is_refused_by_the_sender) {
  std::variant<int, throws_when_made> v;
  EXPECT_THROW(v.emplace<1>(3), int);
  ASSERT_TRUE(v.valueless_by_exception());
  try {
    (void)wire_size(v);
    FAIL();
  } catch (const usage_error& e) {
    EXPECT_EQ(e.code(), errc::value_without_state);
  }
}

struct list {
  int value = 0;
  std::unique_ptr<list> next;
};

TEST(pointer, a_unique_ptr_comes_back_with_what_it_owns) {
  list sent{1, std::make_unique<list>(2, nullptr)};
  const list received = round_trip<list>(decode<list>(encode(sent)));
  ASSERT_TRUE(received.next);
  EXPECT_EQ(received.next->value, 2);
  EXPECT_FALSE(received.next->next);
}

TEST(pointer, a_shared_ptr_comes_back_as_a_copy) {
  const auto sent = std::make_shared<const std::string>("x");
  const auto received = round_trip(sent);
  EXPECT_EQ(*received, "x");
  EXPECT_NE(received, sent);
  EXPECT_EQ(round_trip(std::shared_ptr<int>()), nullptr);
}

TEST(library_types, complex_numbers_and_times_and_paths_come_back) {
  EXPECT_EQ(round_trip(std::complex(1.0, -2.0)), std::complex(1.0, -2.0));
  EXPECT_EQ(round_trip(std::complex(1.0L, -2.0L)), std::complex(1.0L, -2.0L));
  EXPECT_EQ(round_trip(std::chrono::milliseconds(5)), std::chrono::milliseconds(5));
  const auto now = std::chrono::system_clock::now();
  EXPECT_EQ(round_trip(now), now);
  EXPECT_EQ(round_trip(std::filesystem::path("/data/set")), "/data/set");
  EXPECT_EQ(wire_size(std::chrono::milliseconds(5)), 8u);
}

class with_member {
 public:
  with_member() = default;
  with_member(int x, std::string y) : x_(x), y_(std::move(y)) {}
  bool operator==(const with_member&) const = default;

  template <class A>
  void serialize(A& a) {
    a & x_ & y_;
  }

 private:
  int x_ = 0;
  std::string y_;
};

class with_call {
 public:
  bool operator==(const with_call&) const = default;

  template <class A>
  void serialize(A& a) {
    a(x, y);
  }
  int x = 0;
  std::string y;
};

TEST(serialize_member, is_used_with_ampersands_or_as_a_call) {
  EXPECT_EQ(round_trip(with_member(1, "one")), with_member(1, "one"));
  with_call c;
  c.x = 2;
  c.y = "two";
  EXPECT_EQ(round_trip(c), c);
  EXPECT_EQ(wire_size(c), 4u + 7);
}

TEST(serialize_member, is_used_for_a_const_object) {
  const std::vector<with_member> v{{1, "one"}, {2, "two"}};
  EXPECT_EQ(round_trip(v), v);
}

struct tells_apart {
  template <class A>
  void serialize(A& a) {
    static_assert(A::is_loading::value != A::is_saving::value);
    if constexpr (A::is_loading::value) loaded = true;
    a & x;
  }
  int x = 0;
  bool loaded = false;
};

TEST(serialize_member, can_tell_loading_from_saving) {
  tells_apart t;
  t.x = 5;
  const auto received = round_trip(t);
  EXPECT_TRUE(received.loaded);
  EXPECT_FALSE(t.loaded);
  EXPECT_EQ(received.x, 5);
}

struct with_base : with_call {
  int z = 0;
  template <class A>
  void serialize(A& a) {
    with_call::serialize(a);
    a & z;
  }
};

TEST(serialize_member, can_call_the_one_of_its_base) {
  with_base b;
  b.x = 1;
  b.z = 2;
  EXPECT_EQ(round_trip(b).z, 2);
  EXPECT_EQ(round_trip(b).x, 1);
}

}  // namespace serialize_tests
}  // namespace orrery

namespace elsewhere {

class matrix {
 public:
  std::vector<double> values;
};
template <class A>
void serialize(A& a, matrix& m) {
  a & m.values;
}

enum class unit { metre, foot };
template <class A>
void serialize(A& a, unit& u) {
  char c = u == unit::metre ? 'm' : 'f';
  a & c;
  u = c == 'm' ? unit::metre : unit::foot;
}

}  // namespace elsewhere

namespace orrery {
namespace serialize_tests {

TEST(serialize_function, is_found_beside_its_class) {
  elsewhere::matrix m;
  m.values = {1, 2, 3};
  EXPECT_EQ(round_trip(m).values, m.values);
}

TEST(serialize_function, is_found_beside_its_enum) {
  EXPECT_EQ(round_trip(elsewhere::unit::foot), elsewhere::unit::foot);
  EXPECT_EQ(wire_size(elsewhere::unit::foot), 1u);
}

struct my_view {
  static constexpr bool is_view = true;
  std::string_view name;
  std::span<const double> values;
};

TEST(view, is_read_in_place) {
  const std::vector<double> values{1, 2, 3};
  const message m = encode(std::string_view("name"), std::span<const double>(values));
  reader r(m.bytes());
  const auto name = read<std::string_view>(r);
  const auto received = read<std::span<const double>>(r);
  r.finish();
  EXPECT_EQ(name, "name");
  EXPECT_EQ(static_cast<const void*>(name.data()), m.bytes().data() + 4);
  ASSERT_EQ(received.size(), 3u);
  EXPECT_EQ(received[2], 3);
  EXPECT_EQ(static_cast<const void*>(received.data()), m.bytes().data() + 16);
}

TEST(view, is_aligned_for_its_elements) {
  struct alignas(64) line {
    double d[8];
  };
  const std::vector<line> lines(2, line{{1, 2, 3, 4, 5, 6, 7, 8}});
  const message m = encode('x', std::span<const line>(lines));
  EXPECT_EQ(m.size(), 64 + 128u);
  reader r(m.bytes());
  (void)read<char>(r);
  const auto received = read<std::span<const line>>(r);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(received.data()) % 64, 0u);
  EXPECT_EQ(received[1].d[7], 8.0);
}

TEST(view, can_be_part_of_a_class_that_is_a_view) {
  const std::vector<double> values{1, 2, 3};
  const message m = encode(my_view{"name", values});
  const auto received = decode<my_view>(m);
  EXPECT_EQ(received.name, "name");
  EXPECT_EQ(received.values[2], 3.0);
}

TEST(view, a_vector_can_be_received_as_a_view_and_a_view_as_a_vector) {
  const std::vector<double> values{1, 2, 3};
  const message sent_vector = encode(values);
  EXPECT_EQ(decode<std::span<const double>>(sent_vector)[1], 2.0);
  EXPECT_EQ(decode<std::vector<double>>(encode(std::span<const double>(values))), values);
  EXPECT_EQ(decode<std::string>(encode(std::string_view("x"))), "x");
}

TEST(view, of_nothing_comes_back) {
  EXPECT_TRUE(decode<std::span<const double>>(encode(std::span<const double>())).empty());
  EXPECT_TRUE(decode<std::string_view>(encode(std::string_view())).empty());
}

TEST(view, of_a_misaligned_buffer_is_refused_and_a_copy_is_not) {
  const std::vector<double> values{1, 2, 3};
  const message m = encode(values);
  const message shifted(m.size() + 1);
  std::memcpy(shifted.bytes().data() + 1, m.bytes().data(), m.size());
  reader view_reader(shifted.bytes().subspan(1));
  try {
    (void)read<std::span<const double>>(view_reader);
    FAIL();
  } catch (const bad_message& e) {
    EXPECT_EQ(e.code(), errc::message_misaligned);
  }
  reader copy_reader(shifted.bytes().subspan(1));
  EXPECT_EQ(read<std::vector<double>>(copy_reader), values);
}

TEST(read, values_come_in_the_order_they_were_written) {
  const message m = encode(1, std::string("two"), 3.0);
  reader r(m.bytes());
  EXPECT_EQ(read<int>(r), 1);
  EXPECT_EQ(read<std::string>(r), "two");
  EXPECT_EQ(read<double>(r), 3.0);
  r.finish();
}

TEST(read_into, replaces_what_was_there_and_keeps_its_storage) {
  std::vector<double> v(100, 7.0);
  const double* storage = v.data();
  const message m = encode(std::vector<double>{1, 2});
  reader r(m.bytes());
  read_into(r, v);
  EXPECT_EQ(v, (std::vector<double>{1, 2}));
  EXPECT_EQ(v.data(), storage);
}

struct grows {
  template <class A>
  void serialize(A& a) {
    if constexpr (std::is_same_v<A, writer>)
      a & x & x;
    else
      a & x;
  }
  int x = 0;
};

TEST(write, a_value_that_grew_since_it_was_sized_does_not_overrun) {
  const message m(wire_size(grows()));
  writer w(m.bytes());
  EXPECT_THROW(write(w, grows()), usage_error);
}

}  // namespace serialize_tests
}  // namespace orrery
