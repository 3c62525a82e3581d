// SPDX-License-Identifier: Apache-2.0
#include <orrery/orrery.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/service/hash_map.hpp>
#include <orrery/service/ordered_list.hpp>
#include <orrery/service/walking_list.hpp>
#include <orrery/service/work_queue.hpp>
#include <orrery/wire/type_key.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace refusals_tests {

using orrery::consistency;
using orrery::reply_order;
using orrery::usage_error;
using orrery::testing::in_simulation;
using orrery::testing::in_world;
using list = orrery::ordered_list<int, int>;
using map = orrery::hash_map<int, int>;
using walking = orrery::walking_list<int, int>;
using queue = orrery::work_queue<int>;

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

// Where all is made at once, and where PEs get their part with the first split.
TEST(services, refuse_pes_that_there_are_not) {
  in_world(2, [] {
    expect_part(text_of([] { (void)list::make({.pes = {0, 99}}); }), "pe(99)");
    expect_part(text_of([] { (void)map::make({0, 99}); }), "pe(99)");
    expect_part(text_of([] { (void)walking::make({.pes = {0, 99}}); }), "pe(99)");
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

// Any request to a service that has ended, or of a handle that names none, the error says which
// service, and that.
template <class Service>
void expect_all_to_say(const Service& s, const std::string& part) {
  Service mine = s;
  expect_part(text_of([&] { (void)s.open(); }), part);
  expect_part(text_of([&] { (void)s.statistics(); }), part);
  expect_part(text_of([&] { (void)s.has_these_types(); }), part);
  expect_part(text_of([&] { mine.end(); }), part);
  if constexpr (requires { s.size(); }) expect_part(text_of([&] { (void)s.size(); }), part);
  if constexpr (requires { s.estimated_size(); }) expect_part(text_of([&] { (void)s.estimated_size(); }), part);
  if constexpr (requires { s.balance(); }) expect_part(text_of([&] { (void)s.balance(); }), part);
  if constexpr (requires { s.lost(); }) expect_part(text_of([&] { (void)s.lost(); }), part);
  if constexpr (requires { s.tune(8U); }) expect_part(text_of([&] { s.tune(8U); }), part);
  if constexpr (requires { s.tune(8U, 8U); }) expect_part(text_of([&] { s.tune(8U, 8U); }), part);
  if constexpr (requires { s.set_processes(8U); }) expect_part(text_of([&] { s.set_processes(8U); }), part);
  if constexpr (requires { s.counts(); }) expect_part(text_of([&] { (void)s.counts(); }), part);
  if constexpr (requires { s.close(); }) expect_part(text_of([&] { s.close(); }), part);
}
TEST(services, that_have_ended_say_so_whatever_they_are_asked) {
  in_world(2, [] {
    const auto end_one = [](auto s) {
      const auto same = s;
      s.end();
      expect_all_to_say(same, std::string("the ") + decltype(s)::kind + " has ended");
      expect_all_to_say(decltype(s)(), std::string("this handle names no ") + decltype(s)::kind);
      expect_part(text_of([&] { s.publish("/nothing"); }), "this handle names no");
    };
    end_one(list::make());
    end_one(map::make());
    end_one(walking::make({.processes = 3}));
    end_one(queue::make());
  });
}
TEST(sessions, of_services_that_have_ended_say_so_whatever_they_are_asked) {
  in_world(2, [] {
    const std::string part = "the service that this session is of has ended";
    const auto end_one = [&](auto service) {
      auto s = service.open();
      auto others = service.open();
      for (int k = 0; k < 8; ++k) (void)s.insert(k, k);
      auto stream = s.stream({}, {}, 2);
      auto scan = others.scan({}, {}, 2);
      service.end();
      expect_part(text_of([&] { (void)s.size(); }), part);
      expect_part(text_of([&] { (void)s.first(); }), part);
      expect_part(text_of([&] { (void)s.snapshot(); }), part);
      expect_part(text_of([&] { (void)s.stream(); }), part);
      for (int again = 0; again < 2; ++again) {  // the second time, too: an empty part is the end
        expect_part(text_of([&] {
                      while (!stream.next().empty()) {
                      }
                    }),
                    part);
        expect_part(text_of([&] {
                      while (!scan.next().empty()) {
                      }
                    }),
                    part);
      }
    };
    end_one(list::make());
    end_one(walking::make({.processes = 30, .granularity = 4}));
    auto q = queue::make();
    auto s = q.open();
    (void)s.put(0, 1);
    const auto w = s.take();
    q.end();
    expect_part(text_of([&] { (void)s.take(); }), part);
    expect_part(text_of([&] { (void)s.try_take(); }), part);
    expect_part(text_of([&] { (void)s.take_for(std::chrono::milliseconds(1)); }), part);
    expect_part(text_of([&] { (void)s.done(*w); }), part);
  });
}

TEST(walking_list, refuses_more_forwards_than_it_counts) {
  in_world(1, [] {
    const std::string part = "65,535";
    expect_part(text_of([] { (void)walking::make({.processes = 3, .forwards = 65'536}); }), part);
    auto l = walking::make({.processes = 3, .forwards = 65'535});
    expect_part(text_of([&] { l.tune(1, 65'536); }), part);
    l.tune(1, orrery::tuning::automatic);
    l.end();
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
TEST(services, of_another_kind_or_type_are_neither_ended_nor_tuned) {
  in_world(1, [] {
    auto l = list::make();
    auto s = l.open();
    EXPECT_TRUE(s.insert(1, 1));
    orrery::service::bytes handle;
    orrery::service::pack(handle, l);
    const auto as = [&]<class Service>(Service*) { return orrery::service::unpacker(handle).take<Service>(); };
    auto other = as(static_cast<orrery::ordered_list<int, double>*>(nullptr));
    const std::string types = "was opened with <int, double>";
    expect_part(text_of([&] { other.end(); }), types);
    expect_part(text_of([&] { other.tune(8); }), types);
    expect_part(text_of([&] { (void)other.balance(); }), types);
    expect_part(text_of([&] { other.publish("/another"); }), types);
    expect_part(text_of([&] { (void)other.statistics(); }), types);
    expect_part(text_of([&] { (void)other.estimated_size(); }), types);
    auto kind = as(static_cast<map*>(nullptr));
    expect_part(text_of([&] { kind.end(); }), "\"hash map\"");
    expect_part(text_of([&] { (void)kind.size(); }), "\"hash map\"");
    EXPECT_EQ(s.find(1), 1);
    l.end();
  });
}

struct record {
  int a = 0;
  int b = 0;
};
TEST(services, say_how_fields_differ_of_types_with_one_name) {
  in_world(1, [] {
    using records = orrery::ordered_list<int, record>;
    const auto refusal = [](const std::string& types) {
      const auto root = orrery::spawn<orrery::service::service_root>(orrery::here(), records::kind, types,
                                                                     std::vector<std::uint32_t>{0});
      orrery::service::bytes handle;
      orrery::service::pack(handle, root);
      const auto l = orrery::service::unpacker(handle).take<records>();
      std::string text = text_of([&] { (void)l.open(); });
      orrery::destroy(root);
      return text;
    };
    std::string types = records::types();
    const std::string is_int = '=' + orrery::wire::stable_key(orrery::wire::type_key<int>()) + '\n';
    const auto lines = [&](std::string_view names) {
      std::string all;
      for (const char c : names) all += c + is_int;
      return all;
    };
    const auto replace = [&](const std::string& what, const std::string& by) {
      const auto at = types.find(what);
      ASSERT_NE(at, std::string::npos) << types;
      types.replace(at, what.size(), by);
    };
    replace(lines("ab"), lines("ba"));
    expect_part(refusal(types), "record has other fields: {b: int, a: int}, and {a: int, b: int}");
    replace(lines("ba"), lines("abc"));
    expect_part(refusal(types), "{a: int, b: int, c: int}, and {a: int, b: int}");
    const std::string without_shape = orrery::wire::stable_key(orrery::wire::type_key<record>()) + ":;";
    for (const char* const nonsense : {"", ";", ":", "x", "x:;", "x:\n\n;;", "=", without_shape.c_str()})
      expect_part(refusal(nonsense), "types");
  });
}

std::atomic<int> sessions_that_work;
std::atomic<int> ends_that_were_said;
template <class Session>
void expect_ends(Session s) {
  (void)s.find(1);
  ++sessions_that_work;
  try {
    for (;;) (void)s.find(1);
  } catch (const orrery::stopped&) {  // the program ends
  }
  // whatever is asked then
  for (int i = 0; i < 3; ++i) {
    try {
      (void)s.find(2);
    } catch (const orrery::stopped&) {
      ++ends_that_were_said;
    }
    try {
      (void)s.insert(3, 3);
    } catch (const orrery::stopped&) {
      ++ends_that_were_said;
    }
  }
  if constexpr (requires { s.snapshot(); }) {
    try {
      (void)s.snapshot();
    } catch (const orrery::stopped&) {
      ++ends_that_were_said;
    }
  }
}
TEST(sessions, of_a_program_that_ends_say_so_again_and_again) {
  sessions_that_work = ends_that_were_said = 0;
  in_world(2, [] {
    auto l = list::make({.splits = {2}});
    auto m = map::make();
    (void)orrery::spawn_here(orrery::pe(1), [l] { expect_ends(l.open()); });
    (void)orrery::spawn_here(orrery::pe(0), [m] { expect_ends(m.open()); });
    while (sessions_that_work != 2) orrery::yield();
  });
  EXPECT_EQ(ends_that_were_said, 7 + 6);
}

orrery::work_queue<int> queue_here() { return orrery::work_queue<int>::make(orrery::here()); }

TEST(services, say_what_the_loss_of_a_work_queue_means) {
  const orrery::testing::leaks_expected of_the_lost_node;
  in_simulation("machines=2,lose=1@1ms,detect=100us", [] {
    const auto q = orrery::call<&queue_here>(orrery::pe(1));
    auto s = q.open();
    EXPECT_TRUE(s.put(0, 1));
    orrery::sleep_for(std::chrono::milliseconds(2));
    const auto text_of = [](auto f) -> std::string {
      try {
        f();
        return "it answers";
      } catch (const orrery::node_lost& e) {
        return e.what();
      }
    };
    for (const std::string& said : {text_of([&] { (void)s.put(0, 2); }), text_of([&] { (void)s.take(); }),
                                    text_of([&] { (void)s.take_for(std::chrono::milliseconds(1)); })}) {
      EXPECT_TRUE(said.contains("the queue and its items are lost with that node: make another one")) << said;
      EXPECT_FALSE(said.contains("spawn the process again")) << said;
    }
    for (const std::string& said : {text_of([&] { (void)q.open(); }), text_of([&] { (void)q.counts(); })}) {
      EXPECT_TRUE(
          said.ends_with("before this was sent, so that nothing was done there; the work queue cannot be opened "
                         "any more, as what knows its parts was there: make another one"))
          << said;
    }
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

}  // namespace refusals_tests
