// SPDX-License-Identifier: Apache-2.0
// What scheduler::send_through_wire (--orrery-serialize) does to messages that stay in their node.
#include <orrery/process/call.hpp>
#include <orrery/process/describe.hpp>
#include <orrery/process/group.hpp>
#include <orrery/process/member.hpp>
#include <orrery/process/spawn_here.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {
namespace through_wire_tests {

using testing::what_is_thrown;

// Its author has forgotten a field.
struct Forgetful {
  int kept = 0;
  int forgotten = 0;
  template <class A>
  void serialize(A& a) {
    a & kept;
  }
  [[nodiscard]] int both() const { return kept * 10 + forgotten; }
};

// Some values cannot be sent.
struct Choosy {
  int value = 0;
  template <class A>
  void serialize(A& a) {
    if (value < 0) throw std::domain_error("a negative value");
    a & value;
  }
};

class Server;
ORRERY_PROCESS(Server, take, give, keep, kept, text, own, choosy, choose, nothing);
class Server {
 public:
  Server() = default;
  explicit Server(Forgetful f) : kept_(f.both()) {}
  int take(const Forgetful& f) { return f.both(); }
  Forgetful give() { return {1, 2}; }
  void keep(Forgetful f) { kept_ = f.both(); }
  int kept() const { return kept_; }
  std::string text(std::string_view s, std::span<const int> numbers) {
    yield();
    return std::string(s) + std::to_string(std::accumulate(numbers.begin(), numbers.end(), 0));
  }
  int own(std::unique_ptr<int> p) { return *p; }
  int choosy(Choosy c) { return c.value; }
  Choosy choose() { return {-1}; }
  void nothing() {}

 private:
  int kept_ = 0;
};

int take_alone(Forgetful f) { return f.both(); }

// Each test runs with it on, at the caller's PE and at another one.
class through_wire : public testing::at_each_place {
 protected:
  through_wire() {
    scheduler::freeze_handlers();
    scheduler::send_through_wire(true);
  }
  ~through_wire() override { scheduler::send_through_wire(before_); }

 private:
  bool before_ = scheduler::through_wire;
};
INSTANTIATE_TEST_SUITE_P(at, through_wire, ::testing::Values(0U, 1U), testing::place_name);

constexpr Forgetful whole{3, 4};

TEST_P(through_wire, a_forgotten_field_is_missing_in_arguments) {
  in_world([] {
    auto s = spawn<Server>(where());
    EXPECT_EQ(s->take(whole), 30);
    EXPECT_EQ(start(s)->take(whole).get(), 30);
    post(s)->keep(whole);
    EXPECT_EQ(s->kept(), 30);
    EXPECT_EQ(call<&take_alone>(where(), whole), 30);
    EXPECT_EQ(start_call<&take_alone>(where(), whole).get(), 30);
    EXPECT_EQ(spawn<Server>(where(), whole)->kept(), 30);
    EXPECT_EQ(start_spawn<Server>(where(), whole).get()->kept(), 30);
  });
}

TEST_P(through_wire, a_forgotten_field_is_missing_in_results) {
  in_world([] {
    auto s = spawn<Server>(where());
    EXPECT_EQ(s->give().both(), 10);
    EXPECT_EQ(start(s)->give().get().both(), 10);
  });
}

TEST_P(through_wire, a_forgotten_field_is_missing_in_messages_to_functions) {
  in_world([] {
    const auto me = this_process<function>();
    spawn(where(), [](Forgetful f, remote<function> to) { send(to, f.both()); }, whole, me);
    EXPECT_EQ(receive<int>(), 30);
    spawn_here(where(), [me] { send(me, whole); });
    EXPECT_EQ(receive<Forgetful>().both(), 30);
  });
}

TEST_P(through_wire, a_forgotten_field_is_missing_at_members_of_groups) {
  in_world([] {
    auto g = spawn_group<Server>(where(), 3, whole);
    EXPECT_EQ(g->kept(), (std::vector{30, 30, 30}));
    EXPECT_EQ(g->take(whole), (std::vector{30, 30, 30}));
    EXPECT_EQ(start(g)->take(whole).get(), (std::vector{30, 30, 30}));
    post(g)->keep({5, 6});
    EXPECT_EQ(g->kept(), (std::vector{50, 50, 50}));
    const auto given = g->give();
    ASSERT_EQ(given.size(), 3U);
    EXPECT_EQ(given[2].both(), 10);
  });
}

TEST_P(through_wire, views_and_what_can_only_be_moved_arrive_as_ever) {
  in_world([] {
    auto s = spawn<Server>(where());
    const std::vector<int> ones(300, 1);
    EXPECT_EQ(s->text("sum ", ones), "sum 300");
    EXPECT_EQ(start(s)->text("sum ", ones).get(), "sum 300");
    EXPECT_EQ(s->own(std::make_unique<int>(7)), 7);
    EXPECT_EQ(start(s)->own(std::make_unique<int>(8)).get(), 8);
    s->nothing();
    start(s)->nothing().get();
    destroy(s);
    EXPECT_THROW(s->nothing(), process_gone);
  });
}

TEST_P(through_wire, an_argument_that_cannot_be_written_fails_its_call) {
  in_world([] {
    auto s = spawn<Server>(where());
    EXPECT_EQ(what_is_thrown<std::domain_error>([&] { s->choosy({-1}); }), "a negative value");
    EXPECT_EQ(what_is_thrown<std::domain_error>([&] { start(s)->choosy({-1}).get(); }), "a negative value");
    EXPECT_EQ(s->choosy({1}), 1);
  });
}

TEST_P(through_wire, a_result_that_cannot_be_written_fails_its_call) {
  in_world([] {
    auto s = spawn<Server>(where());
    EXPECT_EQ(what_is_thrown<std::domain_error>([&] { (void)s->choose(); }), "a negative value");
    EXPECT_EQ(what_is_thrown<std::domain_error>([&] { (void)start(s)->choose().get(); }), "a negative value");
  });
}

TEST(through_wire_off, arguments_and_results_are_not_written) {
  const bool before = scheduler::through_wire;
  scheduler::freeze_handlers();
  scheduler::send_through_wire(false);
  if (!before)
    testing::in_world(2, [] {
      for (const std::uint32_t p : {0U, 1U}) {
        auto s = spawn<Server>(pe(p));
        EXPECT_EQ(s->take(whole), 34);
        EXPECT_EQ(s->give().both(), 12);
      }
    });
  scheduler::send_through_wire(before);
}

}  // namespace through_wire_tests
}  // namespace orrery
