// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/data.hpp>
#include <orrery/process/detail/nearest.hpp>
#include <orrery/process/function.hpp>
#include <orrery/process/internal/membership.hpp>
#include <orrery/process/internal/name_repository.hpp>
#include <orrery/process/internal/test_world.hpp>
#include <orrery/process/names.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery {
namespace names_tests {

using namespace std::chrono_literals;
using testing::what_is_thrown;

constexpr auto patience = 60s;  // the watchdog comes first

template <class Body>
void in_world(std::uint32_t pes, Body body) {
  detail::name_repository repository;
  scheduler::node_settings settings;
  settings.layer = &repository;
  settings.pes = pes;
  (void)testing::in_world(settings, std::move(body));
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

struct shape {
  virtual ~shape() = default;
  virtual int corners() { return 0; }
};
ORRERY_PROCESS(shape, corners);

struct square : shape {
  int corners() override { return 4; }
  int side() { return 1; }
};
ORRERY_PROCESS(square, side);

struct engine {
  int work() { return 7; }
  void run_until(std::string name) { (void)await_name<engine>(name, patience); }
};
ORRERY_PROCESS(engine, work, run_until);

// --- what can be a name --------------------------------------------------------------------------

TEST(names, find_the_process_that_was_published) {
  in_world(2, [] {
    for (const auto where : {pe(0), pe(1)}) {
      const auto e = spawn<engine>(where);
      const std::string name = fmt::format("/engine/{}", where.index);
      publish(name, e);
      EXPECT_EQ(lookup<engine>(name), e);
      EXPECT_EQ(lookup<engine>(name)->work(), 7);
    }
  });
}

TEST(names, may_be_any_text_without_control_characters) {
  in_world(1, [] {
    const auto e = spawn<engine>(here());
    for (const std::string& name :
         {std::string("x"), std::string(" "), std::string("/größe/数/🚀"), std::string(255, 'n')}) {
      publish(name, e);
      EXPECT_EQ(lookup<engine>(name), e);
    }
    EXPECT_EQ(names().size(), 4U);
  });
}

TEST(names, that_cannot_be_used_are_refused_with_the_reason) {
  in_world(1, [] {
    const auto e = spawn<engine>(here());
    const std::vector<std::pair<std::string, std::string>> cases{
        {"", "it is empty"},
        {std::string(256, 'n'), "it has 256 bytes, and a name has at most 255"},
        {"/a\nb", "control character (U+000A) at byte 2"},
        {std::string("a\0b", 3), "control character (U+0000) at byte 1"},
        {"\x7f", "control character (U+007F) at byte 0"},
        {"/\xc2\x85", "control character (U+0085) at byte 1"},
        {"/\xff", "not UTF-8 at byte 1"},
        {"abc\xe2\x82", "not UTF-8 at byte 3"},
        {"\xc0\xaf", "not UTF-8 at byte 0"},
        {"\xed\xa0\x80", "not UTF-8 at byte 0"},
    };
    for (const auto& [name, reason] : cases) {
      EXPECT_PRED2(has, what_is_thrown<usage_error>([&] { publish(name, e); }), reason);
      EXPECT_PRED2(has, what_is_thrown<usage_error>([&] { (void)lookup<engine>(name); }), reason);
      EXPECT_PRED2(has, what_is_thrown<usage_error>([&] { (void)await_name<engine>(name, 1s); }), reason);
      EXPECT_PRED2(has, what_is_thrown<usage_error>([&] { unpublish(name); }), reason);
    }
    EXPECT_TRUE(names().empty());
  });
}

TEST(names, are_only_for_processes_that_run) {
  EXPECT_THROW((void)lookup<engine>("/x"), usage_error);
  EXPECT_THROW((void)names(), usage_error);
  in_world(2, [] {
    EXPECT_PRED2(has, what_is_thrown<usage_error>([] { publish("/x", remote<engine>()); }), "/x");
    for (const auto where : {pe(0), pe(1)}) {
      const auto e = spawn<engine>(where);
      destroy(e);
      EXPECT_THROW(publish("/x", e), process_gone);
    }
    EXPECT_TRUE(names().empty());
  });
}

// --- publish and unpublish -----------------------------------------------------------------------

TEST(names, belong_to_one_process) {
  in_world(2, [] {
    const auto first = spawn<engine>(pe(1));
    publish("/x", first);
    publish("/x", first);  // again: nothing happens
    for (const auto where : {pe(0), pe(1)}) {
      const std::string what = what_is_thrown<name_taken>([&] { publish("/x", spawn<shape>(where)); });
      EXPECT_PRED2(has, what, "\"/x\"");
      EXPECT_PRED2(has, what, to_string(first.address()));
      EXPECT_PRED2(has, what, "::engine");
    }
    EXPECT_EQ(lookup<engine>("/x"), first);
    EXPECT_EQ(names().size(), 1U);
  });
}

bool publish_a_new_one(std::string name) {
  try {
    publish(name, spawn<engine>(here()));
    return true;
  } catch (const name_taken&) {
    return false;
  }
}

TEST(names, are_given_to_one_of_those_that_want_them_at_the_same_time) {
  in_world(4, [] {
    for (int round = 0; round < 50; ++round) {
      const std::string name = fmt::format("/round/{}", round);
      std::vector<future<bool>> attempts;
      for (std::uint32_t i = 0; i < 8; ++i) attempts.push_back(start_call<&publish_a_new_one>(pe(i % 4), name));
      int won = 0;
      for (auto& a : attempts) won += a.get() ? 1 : 0;
      EXPECT_EQ(won, 1);
      EXPECT_EQ(lookup<engine>(name)->work(), 7);
    }
  });
}

TEST(names, can_be_taken_back_and_used_again) {
  in_world(2, [] {
    const auto a = spawn<engine>(pe(0));
    const auto b = spawn<engine>(pe(1));
    EXPECT_FALSE(unpublish("/x"));
    publish("/x", b);
    EXPECT_TRUE(unpublish("/x"));
    EXPECT_FALSE(unpublish("/x"));
    EXPECT_THROW((void)lookup<engine>("/x"), name_not_found);
    EXPECT_EQ(b->work(), 7);
    publish("/x", a);
    EXPECT_EQ(lookup<engine>("/x"), a);
  });
}

TEST(names, of_one_process_may_be_many) {
  in_world(2, [] {
    const auto e = spawn<engine>(pe(1));
    for (int i = 0; i < 100; ++i) publish(fmt::format("/{}", i), e);
    EXPECT_EQ(names().size(), 100U);
    for (int i = 0; i < 100; i += 2) EXPECT_TRUE(unpublish(fmt::format("/{}", i)));
    EXPECT_EQ(names().size(), 50U);
    destroy(e);
    EXPECT_TRUE(names().empty());
  });
}

// --- the end of a process ------------------------------------------------------------------------

TEST(names, are_cleared_before_destroy_returns) {
  in_world(3, [] {
    for (int i = 0; i < 300; ++i) {
      const auto e = spawn<engine>(anywhere());
      publish("/a", e);
      publish("/b", e);
      destroy(e);
      EXPECT_THROW((void)lookup<engine>("/a"), name_not_found);
      EXPECT_THROW((void)lookup<engine>("/b"), name_not_found);
    }
  });
}

TEST(names, of_a_function_end_with_it) {
  in_world(2, [] {
    const auto f = spawn(pe(1), [] { (void)receive<int>(); });
    publish("/f", f);
    EXPECT_EQ(lookup<function>("/f"), f);
    EXPECT_EQ(names().at(0).class_name, "process function");
    destroy(f);
    EXPECT_THROW((void)lookup<function>("/f"), name_not_found);
  });
}

struct stillborn {
  explicit stillborn(bool fail) {
    publish("/stillborn", this_process<stillborn>());
    if (fail) throw std::runtime_error("no");
  }
};

TEST(names, of_a_constructor_that_throws_are_cleared) {
  in_world(2, [] {
    for (const auto where : {pe(0), pe(1)}) {
      EXPECT_THROW((void)spawn<stillborn>(where, true), std::runtime_error);
      while (!names().empty()) yield();
      destroy(spawn<stillborn>(where, false));
      EXPECT_TRUE(names().empty());
    }
  });
}

struct last_words {
  ~last_words() {
    try {
      publish("/last", this_process<last_words>());
    } catch (const process_gone&) {
      ++refused;
    }
  }
  static inline int refused = 0;
};

TEST(names, are_not_given_to_a_process_that_ends) {
  last_words::refused = 0;
  in_world(1, [] {
    destroy(spawn<last_words>(here()));
    EXPECT_TRUE(names().empty());
  });
  EXPECT_EQ(last_words::refused, 1);
}

void wait_for_ever() { (void)await_name<engine>("/never", patience); }

TEST(names, do_not_keep_a_world_from_ending) {
  in_world(2, [] {
    for (int i = 0; i < 50; ++i) publish(fmt::format("/{}", i), spawn<engine>(anywhere()));
    spawn(pe(1), wait_for_ever);
    post_call<&wait_for_ever>(pe(0));
  });
}

// --- classes -------------------------------------------------------------------------------------

TEST(names, are_found_as_the_class_of_the_process_or_a_base_of_it) {
  in_world(2, [] {
    publish("/square", spawn<square>(pe(1)));
    publish("/shape", spawn<shape>(pe(1)));
    EXPECT_EQ(lookup<square>("/square")->side(), 1);
    EXPECT_EQ(lookup<shape>("/square")->corners(), 4);
    EXPECT_EQ(lookup<shape>("/shape")->corners(), 0);
    const std::string what = what_is_thrown<bad_remote_cast>([] { (void)lookup<square>("/shape"); });
    EXPECT_PRED2(has, what, "::shape");
    EXPECT_PRED2(has, what, "\"/shape\"");
    EXPECT_THROW((void)lookup<engine>("/square"), bad_remote_cast);
    EXPECT_THROW((void)lookup<function>("/square"), bad_remote_cast);
    EXPECT_THROW((void)await_name<engine>("/square", patience), bad_remote_cast);
  });
}

TEST(names, are_found_as_remote_data) {
  in_world(2, [] {
    const auto data = spawn<double[]>(pe(1), 8);
    publish("/data", data);
    auto again = lookup<double[]>("/data");
    again[3] = 2.5;
    EXPECT_EQ(static_cast<double>(data[3]), 2.5);
    EXPECT_THROW((void)lookup<int[]>("/data"), bad_remote_cast);
  });
}

TEST(remote_cast, asks_the_process_for_its_class) {
  in_world(2, [] {
    for (const auto where : {pe(0), pe(1)}) {
      const remote<shape> s = spawn<square>(where);
      EXPECT_EQ(remote_cast<square>(s)->side(), 1);
      EXPECT_EQ(remote_cast<shape>(remote_cast<square>(s)), s);
      EXPECT_TRUE(remote_class_name(s).ends_with("::square"));
      const remote<shape> plain = spawn<shape>(where);
      EXPECT_PRED2(has, what_is_thrown<bad_remote_cast>([&] { (void)remote_cast<square>(plain); }),
                   fmt::format("{} is of class", to_string(plain.address())));
      destroy(plain);
      EXPECT_THROW((void)remote_cast<square>(plain), process_gone);
      EXPECT_THROW((void)remote_class_name(plain), process_gone);
    }
    EXPECT_THROW((void)remote_class_name(remote<shape>()), usage_error);
    EXPECT_EQ(remote_class_name(spawn(pe(1), [] { (void)receive<int>(); })), "process function");
  });
}

TEST(remote_cast, does_not_wait_for_a_process_that_is_busy) {
  in_world(2, [] {
    const auto e = spawn<engine>(pe(1));
    auto busy = start(e)->run_until("/go");
    EXPECT_TRUE(remote_class_name(e).ends_with("::engine"));
    publish("/go", spawn<engine>(here()));
    busy.get();
  });
}

// --- waiting -------------------------------------------------------------------------------------

TEST(await_name, returns_at_once_if_the_name_is_there) {
  in_world(2, [] {
    const auto e = spawn<engine>(pe(1));
    publish("/x", e);
    EXPECT_EQ(await_name<engine>("/x", 0ns), e);
    EXPECT_EQ(await_name<engine>("/x", std::chrono::nanoseconds::max()), e);
  });
}

TEST(await_name, wakes_all_who_wait_when_the_name_comes) {
  in_world(4, [] {
    constexpr int waiters = 40;
    const auto main = this_process<function>();
    for (int i = 0; i < waiters; ++i)
      spawn(
          pe(static_cast<std::uint32_t>(i) % 4),
          [](remote<function> to) {
            send(to, 1);
            send(to, await_name<engine>("/x", patience));
          },
          main);
    for (int i = 0; i < waiters; ++i) (void)receive<int>();
    const auto e = spawn<engine>(pe(2));
    publish("/x", e);
    for (int i = 0; i < waiters; ++i) EXPECT_EQ(receive<remote<engine>>(), e);
  });
}

TEST(await_name, gives_up_after_the_timeout) {
  in_world(2, [] {
    for (int i = 0; i < 20; ++i) {
      const std::string what =
          what_is_thrown<timeout_error>([&] { (void)await_name<engine>(fmt::format("/{}", i), 100us); });
      EXPECT_PRED2(has, what, fmt::format("\"/{}\"", i));
    }
    EXPECT_THROW((void)await_name<engine>("/x", -1s), timeout_error);
    // One that gave up does not keep the others from hearing.
    spawn(here(), [] { publish("/3", spawn<engine>(here())); });
    EXPECT_EQ(await_name<engine>("/3", patience)->work(), 7);
  });
}

// --- lists and suggestions -----------------------------------------------------------------------

TEST(names, are_listed_by_prefix_in_order) {
  in_world(3, [] {
    std::map<std::string, address> all;
    for (int i = 0; i < 200; ++i) {
      const auto e = spawn<engine>(anywhere());
      const std::string name = fmt::format("/{}/{}", i % 2 == 0 ? "even" : "odd", i);
      publish(name, e);
      all.emplace(name, e.address());
    }
    const auto list = names();
    ASSERT_EQ(list.size(), all.size());
    EXPECT_TRUE(std::ranges::equal(list, all, [](const published_name& n, const auto& known) {
      return n.name == known.first && n.process == known.second && n.class_name.ends_with("engine");
    }));
    EXPECT_EQ(names("/even/").size(), 100U);
    EXPECT_EQ(names("/odd/1").size(), 56U);
    EXPECT_TRUE(names("/none").empty());
  });
}

TEST(names, are_listed_in_slices_when_there_are_many) {
  in_world(2, [] {
    const auto e = spawn<engine>(here());
    constexpr int many = 20'000;
    for (int i = 0; i < many; ++i) publish(fmt::format("/{:05}", i), e);
    const auto list = names();
    ASSERT_EQ(list.size(), static_cast<std::size_t>(many));
    for (int i = 0; i < many; i += 997) EXPECT_EQ(list[static_cast<std::size_t>(i)].name, fmt::format("/{:05}", i));
    destroy(e);
    EXPECT_TRUE(names().empty());
  });
}

TEST(names, that_are_nearly_the_same_are_named_in_the_error) {
  in_world(3, [] {
    const auto e = spawn<engine>(here());
    for (const char* name : {"/data/set/PageDevice/34", "/data/set/PageDevice/35", "/data/set/PageDevice/36",
                             "/data/set/PageDevice/37", "/other"})
      publish(name, e);
    EXPECT_PRED2(has, what_is_thrown<name_not_found>([] { (void)lookup<engine>("/data/set/PageDevise/34"); }),
                 "\"/data/set/PageDevise/34\" (did you mean \"/data/set/PageDevice/34\" or "
                 "\"/data/set/PageDevice/35\" or \"/data/set/PageDevice/36\"?)");
    EXPECT_PRED2(has, what_is_thrown<name_not_found>([] { (void)lookup<engine>("/ohter"); }),
                 "(did you mean \"/other\"?)");
    EXPECT_FALSE(has(what_is_thrown<name_not_found>([] { (void)lookup<engine>("/nothing like it"); }), "did you mean"));
  });
}

// The same as the table of the textbook, without any of the shortcuts.
std::size_t plain_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

RC_GTEST_PROP(Suggestions, MeasureTheDistanceUpToALimit, ()) {
  const auto text = rc::gen::container<std::string>(rc::gen::inRange('a', 'd'));
  const auto a = *text;
  const auto b = *text;
  const auto limit = *rc::gen::inRange<std::size_t>(0, 12);
  RC_ASSERT(detail::edit_distance(a, b, limit) == std::min(plain_distance(a, b), limit + 1));
}

// --- who keeps a name ----------------------------------------------------------------------------

std::uint64_t nth_hash(int i) { return detail::hash_of(fmt::format("/name/{}", i)); }

TEST(owners, have_equal_shares) {
  const std::vector<detail::member> members{{0, 2}, {2, 2}, {7, 4}};
  std::map<std::uint32_t, int> share;
  constexpr int all = 80'000;
  for (int i = 0; i < all; ++i) ++share[detail::owner_of(nth_hash(i), members)];
  EXPECT_EQ(share.size(), 8U);
  for (const auto& [pe, count] : share) {
    EXPECT_TRUE(pe < 4 || (pe >= 7 && pe < 11)) << pe;
    EXPECT_NEAR(count, all / 8, all / 8 / 20) << pe;
  }
  EXPECT_EQ(detail::owner_of(1, {}), detail::no_pe);
}

TEST(owners, change_only_for_names_of_who_comes_or_goes) {
  const std::vector<detail::member> before{{0, 2}, {2, 2}, {4, 2}};
  const std::vector<detail::member> after{{0, 2}, {4, 2}, {9, 1}};  // 2 and 3 gone, 9 come
  for (int i = 0; i < 10'000; ++i) {
    const auto old = detail::owner_of(nth_hash(i), before);
    const auto now = detail::owner_of(nth_hash(i), after);
    EXPECT_TRUE(old == now || old == 2 || old == 3 || now == 9);
  }
}

// --- against a model -----------------------------------------------------------------------------

enum class action : std::uint8_t { publish, unpublish, lookup, destroy, list };
using step = std::tuple<action, int, int, std::uint32_t>;  // what, which name, which process, where

std::string nth_name(int i) { return fmt::format("/n/{}", i); }

// The text of the step, on the PE where it is made.
std::string make(action what, int name, remote<engine> process) {
  try {
    switch (what) {
      case action::publish:
        publish(nth_name(name), process);
        return "done";
      case action::unpublish:
        return unpublish(nth_name(name)) ? "done" : "missing";
      case action::lookup:
        return to_string(lookup<engine>(nth_name(name)).address());
      case action::destroy:
        destroy(process);
        return "done";
      case action::list: {
        std::string all;
        for (const auto& n : names("/n/")) all += n.name + "=" + to_string(n.process) + " ";
        return all;
      }
    }
    return "?";
  } catch (const name_taken&) {
    return "taken";
  } catch (const name_not_found&) {
    return "missing";
  } catch (const process_gone&) {
    return "gone";
  }
}

struct model {
  std::map<std::string, std::string> names;
  std::set<int> gone;

  std::string make(action what, int name, int process, const std::string& address) {
    const auto at = names.find(nth_name(name));
    switch (what) {
      case action::publish:
        if (gone.contains(process)) return "gone";
        if (at != names.end() && at->second != address) return "taken";
        names[nth_name(name)] = address;
        return "done";
      case action::unpublish:
        return names.erase(nth_name(name)) != 0 ? "done" : "missing";
      case action::lookup:
        return at != names.end() ? at->second : "missing";
      case action::destroy:
        if (!gone.insert(process).second) return "gone";
        std::erase_if(names, [&](const auto& n) { return n.second == address; });
        return "done";
      case action::list: {
        std::string all;
        for (const auto& n : names) all += n.first + "=" + n.second + " ";
        return all;
      }
    }
    return "?";
  }
};

RC_GTEST_PROP(Names, AreAsInAMap, ()) {
  constexpr int processes = 5;
  const auto pes = *rc::gen::inRange<std::uint32_t>(1, 5);
  const auto steps = *rc::gen::container<std::vector<step>>(rc::gen::tuple(
      rc::gen::weightedElement<action>(
          {{4, action::publish}, {2, action::unpublish}, {4, action::lookup}, {1, action::destroy}, {1, action::list}}),
      rc::gen::inRange(0, 6), rc::gen::inRange(0, processes), rc::gen::inRange<std::uint32_t>(0, 4)));
  std::vector<std::string> wrong;
  in_world(pes, [&] {
    std::vector<remote<engine>> all;
    for (int i = 0; i < processes; ++i) all.push_back(spawn<engine>(pe(static_cast<std::uint32_t>(i) % pes)));
    model expected;
    for (const auto& [what, name, process, where] : steps) {
      const auto p = all[static_cast<std::size_t>(process)];
      const auto should = expected.make(what, name, process, to_string(p.address()));
      const auto is = call<&make>(pe(where % pes), what, name, p);
      if (is != should)
        wrong.push_back(fmt::format("{} of {} and {}: {} instead of {}", static_cast<int>(what), nth_name(name),
                                    to_string(p.address()), is, should));
    }
  });
  RC_ASSERT(wrong == std::vector<std::string>());
}

}  // namespace names_tests
}  // namespace orrery
