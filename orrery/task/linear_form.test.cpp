// SPDX-License-Identifier: Apache-2.0
#include <orrery/task/task.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include <orrery/process/internal/test_world.hpp>

// Message types with strings, arrays and messages in them; the tables are as orrery-cc writes them.
namespace linear_form_tests {

struct point {
  double x;
  char* label;
};
constexpr orrery_field point_fields[] = {{"label", ORRERY_STRING, offsetof(point, label), 1, 0, 0, 0, nullptr}};
constexpr orrery_message_type point_type = {"Point", 11, sizeof(point), 1, point_fields};

struct shape {
  std::int8_t count;
  point* corners;
  char* name;
  unsigned numbers;
  short* values;
  point* centre;
};
constexpr orrery_field shape_fields[] = {
    {"corners", ORRERY_ARRAY, offsetof(shape, corners), sizeof(point), offsetof(shape, count), 1, 1, &point_type},
    {"name", ORRERY_STRING, offsetof(shape, name), 1, 0, 0, 0, nullptr},
    {"values", ORRERY_ARRAY, offsetof(shape, values), sizeof(short), offsetof(shape, numbers), 4, 0, nullptr},
    {"centre", ORRERY_ONE, offsetof(shape, centre), sizeof(point), 0, 0, 0, &point_type}};
constexpr orrery_message_type shape_type = {"Shape", 12, sizeof(shape), 4, shape_fields};

struct sample {
  char a[2] = "a";
  char c[2] = "c";
  char square[7] = "square";
  char middle[7] = "middle";
  point corners[3] = {{1, a}, {2, nullptr}, {3, c}};
  short values[2] = {-7, 7};
  point centre{0.5, middle};
  shape s{3, corners, square, 2, values, &centre};
};

void expect_sample(const shape& s) {
  ASSERT_EQ(s.count, 3);
  EXPECT_EQ(s.corners[0].x, 1);
  EXPECT_STREQ(s.corners[0].label, "a");
  EXPECT_EQ(s.corners[1].label, nullptr);
  EXPECT_EQ(s.corners[2].x, 3);
  EXPECT_STREQ(s.corners[2].label, "c");
  EXPECT_STREQ(s.name, "square");
  ASSERT_EQ(s.numbers, 2U);
  EXPECT_EQ(s.values[0], -7);
  EXPECT_EQ(s.values[1], 7);
  EXPECT_EQ(s.centre->x, 0.5);
  EXPECT_STREQ(s.centre->label, "middle");
}

struct freed {
  void operator()(void* p) const { std::free(p); }
};
using cloned = std::unique_ptr<shape, freed>;
cloned clone(const shape& s) { return cloned(static_cast<shape*>(orrery_clone(&shape_type, &s))); }

TEST(message_type, is_cloned_with_all_that_belongs_to_it) {
  cloned copy;
  {
    const sample original;
    copy = clone(original.s);
  }
  ASSERT_NE(copy, nullptr);
  expect_sample(*copy);
}

TEST(message_type, may_have_nothing_where_pointers_are) {
  const auto copy = clone({});
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->corners, nullptr);
  EXPECT_EQ(copy->name, nullptr);
  EXPECT_EQ(copy->centre, nullptr);
}

TEST(message_type, is_refused_if_a_count_makes_no_sense) {
  sample of;
  of.s.count = -1;
  EXPECT_EQ(clone(of.s), nullptr);
  EXPECT_NE(std::string(orrery_error()).find("'corners' has a negative count"), std::string::npos) << orrery_error();
  of.s.count = 3;
  of.s.values = nullptr;
  EXPECT_EQ(clone(of.s), nullptr);
  EXPECT_NE(std::string(orrery_error()).find("'values' is NULL"), std::string::npos) << orrery_error();
}

// A count of each size, signed or not, as its declaration says.
template <class Count>
bool takes(Count count) {
  struct counted {
    Count count;
    const char* bytes;
  };
  const orrery_field field = {"bytes",
                              ORRERY_ARRAY,
                              offsetof(counted, bytes),
                              1,
                              offsetof(counted, count),
                              sizeof(Count),
                              std::is_signed_v<Count> ? 1U : 0U,
                              nullptr};
  const orrery_message_type type = {"Counted", 14, sizeof(counted), 1, &field};
  const std::vector<char> many(70'000, 'x');
  const counted value{count, many.data()};
  void* const copy = orrery_clone(&type, &value);
  std::free(copy);
  return copy != nullptr;
}

TEST(message_type, may_have_a_count_of_any_size) {
  EXPECT_TRUE(takes<std::int8_t>(100) && takes<std::uint8_t>(200));
  EXPECT_TRUE(takes<std::int16_t>(30'000) && takes<std::uint16_t>(60'000));
  EXPECT_TRUE(takes<std::int32_t>(70'000) && takes<std::uint32_t>(70'000));
  EXPECT_TRUE(takes<std::int64_t>(70'000) && takes<std::uint64_t>(70'000));
  EXPECT_FALSE(takes<std::int8_t>(-1));
  EXPECT_FALSE(takes<std::int16_t>(-1));
  EXPECT_FALSE(takes<std::int32_t>(-1));
  EXPECT_FALSE(takes<std::int64_t>(-1));
  EXPECT_FALSE(takes<std::uint64_t>(std::numeric_limits<std::uint64_t>::max()));
}

// The error of a call that uses the table of a shape after this change.
template <class Change>
std::string refused(Change change) {
  orrery_field fields[4];
  std::memcpy(fields, shape_fields, sizeof fields);
  orrery_message_type type = shape_type;
  type.field = fields;
  change(type, fields);
  const sample original;
  void* const copy = orrery_clone(&type, &original.s);
  EXPECT_EQ(copy, nullptr);
  std::free(copy);
  return orrery_error();
}

TEST(message_type, whose_table_makes_no_sense_is_refused_by_its_name) {
  using type = orrery_message_type;
  using field = orrery_field;
  const auto entry = [](auto change) { return refused([&](type&, field* f) { change(f); }); };
  EXPECT_EQ(refused([](type& t, field*) { t.field = nullptr; }),
            "orrery_clone: the table of the message Shape: it has 4 entries, but they are NULL");
  EXPECT_EQ(refused([](type& t, field*) { t.id = 0; }),
            "orrery_clone: the table of the message Shape: its id is 0, which is that of plain bytes");
  EXPECT_EQ(refused([](type& t, field*) { t.name = nullptr; }),
            "orrery_clone: the table of the message (without a name): its name is NULL");
  EXPECT_EQ(refused([](type& t, field*) { t.bytes = 40; }),
            "orrery_clone: the table of the message Shape: entry 3 ('centre') lies at offset 40, outside of the 40 "
            "bytes of the structure");
  EXPECT_EQ(refused([](type& t, field*) { t.fields = 1000; }),
            "orrery_clone: the table of the message Shape: it has 1000 entries, for which its structure of 48 bytes "
            "has no room");
  const std::string first = "orrery_clone: the table of the message Shape: entry 0 ('corners') ";
  EXPECT_EQ(entry([](field* f) { f[0].kind = 5; }), first + "is of kind 5, which is no orrery_field_kind");
  EXPECT_EQ(entry([](field* f) { f[0].kind = 0; }), first + "is of kind 0, which is no orrery_field_kind");
  EXPECT_EQ(entry([](field* f) { f[0].offset = 0xffffffff; }),
            first + "lies at offset 4294967295, outside of the 48 bytes of the structure");
  EXPECT_EQ(entry([](field* f) { f[0].element = 0; }),
            first + "has elements of 0 bytes, but their message Point has 16");
  EXPECT_EQ(entry([](field* f) { f[2].element = 0; }),
            "orrery_clone: the table of the message Shape: entry 2 ('values') has elements of 0 bytes");
  EXPECT_EQ(entry([](field* f) { f[0].element = 8; }),
            first + "has elements of 8 bytes, but their message Point has 16");
  EXPECT_EQ(entry([](field* f) { f[0].count_bytes = 3; }), first + "has a count of 3 bytes: it is to be 1, 2, 4 or 8");
  EXPECT_EQ(entry([](field* f) { f[0].count_offset = 48; }),
            first + "has its count at offset 48, outside of the 48 bytes of the structure");
  EXPECT_EQ(entry([](field* f) { f[0].count_signed = 2; }), first + "has count_signed 2: it is to be 0 or 1");
  EXPECT_EQ(entry([](field* f) { f[0].count_offset = offsetof(shape, name) + 7; }),
            first + "has its count where entry 1 ('name') lies");
  EXPECT_EQ(entry([](field* f) { f[1].offset = offsetof(shape, corners) + 4; }),
            "orrery_clone: the table of the message Shape: entry 1 ('name') overlaps entry 0 ('corners')");
  EXPECT_EQ(entry([](field* f) { f[1].of = &point_type; }),
            "orrery_clone: the table of the message Shape: entry 1 ('name') has elements of a message type, but is a "
            "string or a buffer");
  EXPECT_EQ(entry([](field* f) { f[2].name = nullptr; }),
            "orrery_clone: the table of the message Shape: entry 2 ('(without a name)') has a name that is NULL");
}

// The tables of elements are looked at, too, also when the array has none.
TEST(message_type, is_refused_for_a_table_that_it_leads_to) {
  orrery_field inner = point_fields[0];
  inner.offset = 16;
  const orrery_message_type damaged = {"Damaged", 15, sizeof(point), 1, &inner};
  EXPECT_EQ(refused([&](orrery_message_type&, orrery_field* f) { f[3].of = &damaged; }),
            "orrery_clone: the table of the message Damaged: entry 0 ('label') lies at offset 16, outside of the 16 "
            "bytes of the structure");
}

struct header {
  std::int32_t count;
};
struct nested_count {
  header h;
  short* values;
};

TEST(message_type, written_by_hand_may_count_by_a_member_of_a_member) {
  constexpr orrery_field field = {"values",
                                  ORRERY_ARRAY,
                                  offsetof(nested_count, values),
                                  sizeof(short),
                                  offsetof(nested_count, h) + offsetof(header, count),
                                  4,
                                  1,
                                  nullptr};
  const orrery_message_type type = {"Nested", 16, sizeof(nested_count), 1, &field};
  short values[3] = {1, 2, 3};
  const nested_count original{{3}, values};
  auto* const copy = static_cast<nested_count*>(orrery_clone(&type, &original));
  ASSERT_NE(copy, nullptr) << orrery_error();
  EXPECT_EQ(copy->values[2], 3);
  std::free(copy);
}

struct link {
  link* next;
};
extern const orrery_message_type link_type;
const orrery_field link_fields[] = {{"next", ORRERY_ONE, offsetof(link, next), sizeof(link), 0, 0, 0, &link_type}};
const orrery_message_type link_type = {"Link", 13, sizeof(link), 1, link_fields};

TEST(message_type, is_refused_if_it_is_too_deep) {
  link circle{};
  circle.next = &circle;
  EXPECT_EQ(orrery_clone(&link_type, &circle), nullptr);
  EXPECT_NE(std::string(orrery_error()).find("more than 64 messages deep"), std::string::npos) << orrery_error();
}

// Gives the message to a task of another PE and back.
void pass_on(void*, std::size_t) {
  orrery_message m;
  while (orrery_receive(&m, ORRERY_FOREVER) == ORRERY_OK) {
    if (m.type == 0) {
      EXPECT_EQ(orrery_send_bytes(m.sender, m.tag, m.data, m.size, ORRERY_WAIT), ORRERY_OK);
    } else {
      EXPECT_EQ(orrery_open(&m, &point_type), nullptr);
      const auto* s = static_cast<shape*>(orrery_open(&m, &shape_type));
      ASSERT_NE(s, nullptr) << orrery_error();
      EXPECT_EQ(orrery_send(m.sender, m.tag, &shape_type, s, ORRERY_WAIT), ORRERY_OK);
    }
    orrery_release(&m);
  }
}

class message_types : public ::testing::TestWithParam<const char*> {
 protected:
  static void in_world(orrery::testing::test_body body) {
    if (*GetParam() != '\0') {
      orrery::testing::in_simulation(GetParam(), body);
    } else {
      orrery::testing::in_world(2, body);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(on, message_types, ::testing::Values("", "machines=2,jitter=5us"),
                         [](const auto& of) { return *of.param == '\0' ? "threads" : "machines"; });

TEST_P(message_types, travel_with_all_that_belongs_to_them) {
  in_world([] {
    orrery_task t{};
    ASSERT_EQ(orrery_create(pass_on, nullptr, 0, orrery_pe(1), &t), ORRERY_OK);
    const sample original;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(orrery_send(t, 5, &shape_type, &original.s, ORRERY_WAIT), ORRERY_OK) << orrery_error();
      orrery_message m;
      ASSERT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
      const auto* s = static_cast<shape*>(orrery_open(&m, &shape_type));
      ASSERT_NE(s, nullptr) << orrery_error();
      expect_sample(*s);
      orrery_release(&m);
    }
  });
}

// Bytes that another program has sent as a shape: orrery_open must find each that is not one.
TEST_P(message_types, that_are_damaged_are_refused) {
  in_world([] {
    orrery_message m;
    const sample original;
    const auto receive_one = [&] {
      EXPECT_EQ(orrery_send(orrery_self(), 1, &shape_type, &original.s, ORRERY_WAIT), ORRERY_OK);
      EXPECT_EQ(orrery_receive(&m, ORRERY_FOREVER), ORRERY_OK);
      return static_cast<unsigned char*>(m.data);
    };
    receive_one();
    const std::size_t size = m.size;
    orrery_release(&m);
    for (std::size_t i = 0; i < size; ++i)
      for (const unsigned change : {1U, 2U, 128U, 255U}) {
        receive_one()[i] ^= static_cast<unsigned char>(change);
        // The result lies in the message.
        if (const auto* s = static_cast<shape*>(orrery_open(&m, &shape_type)); s != nullptr) {
          std::size_t all = s->name != nullptr ? std::strlen(s->name) : 0;
          for (int c = 0; c < s->count; ++c)
            all += s->corners[c].label != nullptr ? std::strlen(s->corners[c].label) : 0;
          for (unsigned v = 0; v < s->numbers; ++v) all += s->values[v] != 0 ? 1 : 0;
          EXPECT_LE(all, size);
        }
        orrery_release(&m);
      }
    for (std::size_t shorter = 0; shorter < size; ++shorter) {
      receive_one();
      m.size = shorter;
      EXPECT_EQ(orrery_open(&m, &shape_type), nullptr);
      orrery_release(&m);
    }
  });
}

}  // namespace linear_form_tests
