// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/hash_map.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <gtest/gtest.h>

namespace {

using orrery::consistency;
using orrery::reply_order;
using orrery::usage_error;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using list = orrery::ordered_list<int, int>;
using map = orrery::hash_map<int, int>;
using walking = orrery::walking_list<int, int>;

std::string text_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const orrery::error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(hash_map, gives_replies_in_the_order_of_requests) {
  const auto replies = [] {
    auto m = map::make();
    auto s = m.open({.window = 100, .replies = reply_order::as_requested});
    std::uint64_t next = 0;
    for (int i = 0; i < 300; ++i) {
      if (s.start_insert(i, i) % 50 == 7) {
        EXPECT_EQ(s.find(i), i);  // a reply between those of receive()
      }
      while (const auto r = s.try_receive()) {
        EXPECT_EQ(r->request, next);
        next = r->request % 50 == 7 ? next + 2 : next + 1;
      }
    }
    while (const auto r = s.receive()) {
      EXPECT_EQ(r->request, next);
      next = r->request % 50 == 7 ? next + 2 : next + 1;
    }
    EXPECT_GE(next, 300U);
    m.end();
  };
  in_world(3, replies);
  in_simulation("machines=3,jitter=20us,seed=3", replies);
}

TEST(services, refuse_options_that_are_none) {
  in_world(1, [] {
    auto l = list::make();
    auto m = map::make();
    auto w = walking::make({.processes = 3});
    const auto level = static_cast<consistency>(77);
    const auto order = static_cast<reply_order>(5);
    EXPECT_THROW((void)l.open({.order = level}), usage_error);
    EXPECT_THROW((void)m.open({.order = level}), usage_error);
    EXPECT_THROW((void)w.open({.order = level}), usage_error);
    EXPECT_THROW((void)l.open({.replies = order}), usage_error);
    EXPECT_THROW((void)m.open({.replies = order}), usage_error);
    EXPECT_THROW((void)walking::make({.processes = 0}), usage_error);
  });
}

TEST(services, say_that_they_have_ended) {
  in_world(2, [] {
    auto l = list::make();
    const auto same = l;
    auto s = l.open();
    EXPECT_TRUE(s.insert(1, 1));
    l.end();
    expect_part(text_of([&] { (void)s.find(1); }), "has ended");
    expect_part(text_of([&] { (void)same.open(); }), "the ordered list has ended");
    expect_part(text_of([&] { (void)l.open(); }), "this handle names no ordered list");
    expect_part(text_of([&] { (void)map().open(); }), "this handle names no hash map");
  });
}

TEST(services, name_both_kinds_and_both_types) {
  in_world(1, [] {
    orrery::service::bytes handle;
    orrery::service::pack(handle, list::make());
    const auto as = [&]<class Service>(Service*) { return orrery::service::unpacker(handle).take<Service>(); };
    const std::string types =
        text_of([&] { (void)as(static_cast<orrery::ordered_list<int, double>*>(nullptr)).open(); });
    expect_part(types, "it has <int, int>");
    expect_part(types, "was opened with <int, double>");
    const std::string kinds = text_of([&] { (void)as(static_cast<map*>(nullptr)).open(); });
    expect_part(kinds, "\"ordered list\"");
    expect_part(kinds, "\"hash map\"");
  });
}

TEST(services, balance_after_a_loss_says_nothing) {
  const orrery::testing::leaks_expected of_the_lost_node;
  testing::internal::CaptureStderr();
  in_simulation("machines=2,lose=1@1ms,detect=100us", [] {
    auto l = list::make({.splits = {10, 20, 30}});
    {
      auto s = l.open();
      for (int k = 0; k < 40; ++k) (void)s.insert(k, k);
    }
    orrery::sleep_for(std::chrono::milliseconds(2));
    (void)l.balance();
    l.tune(100);
    (void)l.balance();
    orrery::sleep_for(std::chrono::milliseconds(2));
  });
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("nobody waits"), std::string::npos);
}

}  // namespace
