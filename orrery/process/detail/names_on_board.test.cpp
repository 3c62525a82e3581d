// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/names_on_board.hpp>
#include <orrery/process/internal/name_records.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/spawn.hpp>
#include <orrery/wire/serialize.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::detail {
namespace names_on_board_tests {

struct engine {};
struct other_engine {};

std::vector<std::byte> encoded(const names_on_board& names) {
  std::vector<std::byte> text(wire_size(names));
  writer w(text);
  write(w, names);
  return text;
}

/// The records of a node, with names of two classes.
template <class Body>
void with_names(std::uint32_t count, Body body) {
  scheduler::node_settings settings;
  settings.pes = 1;
  (void)orrery::testing::in_world(settings, [&] {
    name_records records(here_pe().owner());
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::string name = "name " + std::to_string(i);
      const address process{0, i, 1};
      (void)records.claim(name, process, i % 2 == 0 ? class_of<engine>::info() : class_of<other_engine>::info());
      (void)records.confirm(name, process, records.members(true)->id);
    }
    body(records);
  });
}

TEST(names_on_board, are_those_that_were_confirmed) {
  with_names(3, [](name_records& records) {
    (void)records.claim("pending", {0, 9, 1}, class_of<engine>::info());
    names_on_board shown = decode_names(encoded(records.list(100'000)));
    EXPECT_EQ(shown.total, 3U);
    EXPECT_EQ(shown.classes.size(), 2U);
    std::ranges::sort(shown.names, {}, &name_on_board::name);
    ASSERT_EQ(shown.names.size(), 3U);
    EXPECT_EQ(shown.names[1].name, "name 1");
    EXPECT_EQ(shown.names[1].process, (address{0, 1, 1}));
    EXPECT_EQ(shown.classes[shown.names[1].cls], class_of<other_engine>::info().name);
    (void)records.drop("name 1", {0, 1, 1});
    EXPECT_EQ(records.list(100'000).total, 2U);
  });
}

TEST(names_on_board, are_as_many_as_fit_and_all_are_counted) {
  with_names(100, [](name_records& records) {
    for (std::size_t room = 0; room < 2000; room += 100) {
      const names_on_board shown = records.list(room);
      EXPECT_EQ(shown.total, 100U);
      EXPECT_LT(shown.names.size(), 100U);
      EXPECT_EQ(shown.names.empty(), room == 0) << room;
      constexpr std::size_t lengths = 64;
      EXPECT_LE(wire_size(shown), room + lengths);
      EXPECT_EQ(decode_names(encoded(shown)).names.size(), shown.names.size());
    }
  });
}

TEST(names_on_board, an_empty_board_has_none) { EXPECT_EQ(decode_names({}).total, 0U); }

TEST(names_on_board, a_class_that_is_not_there_is_an_error) {
  EXPECT_THROW((void)decode_names(encoded({1, {"A"}, {{"n", {0, 1, 1}, 1}}})), bad_message);
}

RC_GTEST_PROP(names_on_board, what_is_cut_or_changed_is_read_or_refused, ()) {
  std::vector<std::byte> text = encoded({2, {"A", "B"}, {{"n", {0, 1, 1}, 1}, {"m", {1, 1, 1}, 0}}});
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  if (*rc::gen::arbitrary<bool>()) {
    text.resize(at);
  } else {
    text[at] = std::byte{*rc::gen::arbitrary<std::uint8_t>()};
  }
  try {
    const names_on_board names = decode_names(text);
    for (const name_on_board& n : names.names) RC_ASSERT(n.cls < names.classes.size());
  } catch (const bad_message&) {
  }
}

TEST(name_board, a_world_that_no_tool_finds_has_none) {
  bool asked = false;
  {
    name_board board(nullptr, [&](std::size_t) {
      asked = true;
      return names_on_board{};
    });
    board.changed();
  }
  EXPECT_FALSE(asked);
}

}  // namespace names_on_board_tests
}  // namespace orrery::detail
