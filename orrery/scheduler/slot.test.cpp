// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/slot.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery::scheduler {
namespace slot_tests {

std::vector<const message*> in_order(slot& s) {
  std::vector<const message*> all;
  s.search([&](message*, const message* m) {
    all.push_back(m);
    return false;
  });
  return all;
}

RC_GTEST_PROP(mailbox, is_a_queue_from_whose_middle_messages_can_be_taken, (std::vector<std::uint8_t> turns)) {
  slot s{};
  message_pool pool;
  std::deque<message*> model;
  const auto make = [&] {
    message* m = pool.allocate(16);
    m->head.form = wire::payload_form::refs;
    s.charge += m->charge();
    return m;
  };
  for (const std::uint8_t turn : turns) {
    switch (turn % 6) {
      case 0:
      case 1:
        model.push_back(make());
        s.push_back(model.back());
        break;
      case 2:
        model.push_front(make());
        s.push_front(model.front());
        break;
      case 3:
        if (model.empty()) break;
        RC_ASSERT(s.pop() == model.front());
        model.pop_front();
        break;
      case 4: {
        if (model.empty()) break;
        const auto at = model.begin() + turn % static_cast<std::ptrdiff_t>(model.size());
        RC_ASSERT(s.search([&](message* before, message* m) {
          if (m != *at) return false;
          s.charge -= m->charge();
          return s.unlink_after(before) == m;
        }));
        model.erase(at);
        break;
      }
      default:
        if (turn < 240) break;
        for (const message* m = s.take_all(); m != nullptr; m = m->next) {
          RC_ASSERT(m == model.front());
          s.charge -= m->charge();
          model.pop_front();
        }
        RC_ASSERT(model.empty());
    }
    RC_ASSERT(s.has_messages() == !model.empty());
    RC_ASSERT(std::ranges::equal(in_order(s), model));
    RC_ASSERT(s.charge == model.size());  // a unit each
  }
}

TEST(slot, holds_a_small_object_itself_and_says_where_a_large_one_lies) {
  slot s{};
  EXPECT_EQ(s.object(), nullptr);
  s.set_object(s.open_room());
  EXPECT_EQ(s.object(), s.room);
  s.has_object = false;
  EXPECT_EQ(s.object(), nullptr);
  int large = 0;
  s.set_object(&large);
  EXPECT_EQ(s.object(), &large);
  EXPECT_EQ(s.where_apart(), &large);
}

TEST(slot, of_a_class_is_found_by_its_number) {
  static const class_info first{"first", nullptr, {}, false};
  static const class_info second{"second", nullptr, {}, true};
  EXPECT_NE(first.number, second.number);
  slot s{};
  EXPECT_EQ(s.cls(), nullptr);
  s.class_number = first.number;
  EXPECT_EQ(s.cls(), &first);
  s.class_number = second.number;
  EXPECT_EQ(s.cls(), &second);
}

#if defined(ORRERY_ASAN)
TEST(slot_death, AddressSanitizer_sees_the_use_of_a_small_object_after_its_end) {
  const auto s = std::make_unique<slot>();
  auto* object = new (s->open_room()) std::uint64_t(7);
  s->set_object(object);
  EXPECT_EQ(*static_cast<volatile std::uint64_t*>(object), 7U);
  s->close_room();
  EXPECT_DEATH((void)*static_cast<volatile std::uint64_t*>(object), "use-after-poison");
  (void)s->open_room();
}
#endif

}  // namespace slot_tests
}  // namespace orrery::scheduler
