// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/handler.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery::scheduler {
namespace handler_tests {

const handler first("Handled", "first", "int(int)", nullptr, nullptr, nullptr, 8, false);
const handler overload("Handled", "first", "int(double)", nullptr, nullptr, nullptr, 8, false);
const handler second("Handled", "second", "int(int)", nullptr, nullptr, nullptr, 8, true);
const handler elsewhere("Other", "first", "int(int)", nullptr, nullptr, nullptr, 8, false);

TEST(handler_table, has_each_handler_at_its_index) {
  freeze_handlers();
  const auto table = handler_table();
  for (std::uint32_t i = 0; i < table.size(); ++i) EXPECT_EQ(table[i]->index, i);
  for (const handler* h : {&first, &overload, &second, &elsewhere}) {
    ASSERT_LT(h->index, table.size());
    EXPECT_EQ(table[h->index], h);
  }
}

TEST(handler_table, tells_class_method_and_signature_apart) {
  freeze_handlers();
  EXPECT_EQ((std::set{first.hash, overload.hash, second.hash, elsewhere.hash}.size()), 4U);
}

TEST(handler_table, is_in_an_order_that_does_not_depend_on_who_registered_first) {
  freeze_handlers();
  EXPECT_TRUE(std::ranges::is_sorted(handler_table(), {}, [](const handler* h) { return h->hash; }));
}

TEST(handler_table, stays_as_it_is) {
  freeze_handlers();
  const auto table = handler_table();
  freeze_handlers();
  EXPECT_EQ(handler_table().data(), table.data());
  EXPECT_EQ(handler_table().size(), table.size());
}

TEST(handler_table, has_the_numbers_that_the_world_gives) {
  freeze_handlers();
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < own_handlers().size(); ++i) numbers.push_back(100 + 3 * i);
  number_handlers(numbers);
  EXPECT_EQ(find_handler(first.index), &first);
  EXPECT_EQ(first.index % 3, 1U);
  EXPECT_EQ(find_handler(first.index + 1), nullptr) << "that of another program";
  EXPECT_EQ(find_handler(std::uint64_t{1} << 32), nullptr);
  number_handlers({});
  EXPECT_EQ(handler_table().size(), own_handlers().size());
  EXPECT_EQ(find_handler(first.index), &first);
}

// --- what an object is of ------------------------------------------------------------------------

struct top {
  virtual ~top() = default;
  int t = 1;
};
struct left : top {
  int l = 2;
};
struct right {
  virtual ~right() = default;
  int r = 3;
};
struct both : left, right {
  int b = 4;
};

template <class From, class To>
void* cast(void* p) {
  return static_cast<To*>(static_cast<From*>(p));
}
const class_info top_class{"top", nullptr, {}, false};
const class_info right_class{"right", nullptr, {}, false};
const class_info stranger_class{"stranger", nullptr, {}, false};
const class_info::base left_bases[] = {{[]() -> const class_info& { return top_class; }, cast<left, top>}};
const class_info left_class{"left", nullptr, left_bases, false};
const class_info::base both_bases[] = {{[]() -> const class_info& { return left_class; }, cast<both, left>},
                                       {[]() -> const class_info& { return right_class; }, cast<both, right>}};
const class_info both_class{"both", nullptr, both_bases, false};

TEST(cast_object, finds_the_parts_of_an_object_at_any_depth) {
  both object;
  EXPECT_EQ(cast_object(both_class, &object, both_class), &object);
  EXPECT_EQ(cast_object(both_class, &object, left_class), static_cast<left*>(&object));
  EXPECT_EQ(cast_object(both_class, &object, top_class), static_cast<top*>(&object));
  EXPECT_EQ(cast_object(both_class, &object, right_class), static_cast<right*>(&object));
  EXPECT_EQ(static_cast<right*>(cast_object(both_class, &object, right_class))->r, 3);
}

TEST(cast_object, finds_nothing_where_there_is_no_such_base) {
  both object;
  EXPECT_EQ(cast_object(both_class, &object, stranger_class), nullptr);
  left part;
  EXPECT_EQ(cast_object(left_class, &part, both_class), nullptr) << "a base is not the derived class";
  EXPECT_EQ(cast_object(left_class, &part, right_class), nullptr);
}

}  // namespace handler_tests
}  // namespace orrery::scheduler
