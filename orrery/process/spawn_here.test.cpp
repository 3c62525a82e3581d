// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/spawn_here.hpp>

#include <orrery/process/internal/test_world.hpp>

#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace orrery {
namespace spawn_here_tests {

using testing::in_simulation;
using testing::in_world;
using testing::what_is_thrown;

ORRERY_AT_EACH_PLACE(spawn_here_at);

TEST_P(spawn_here_at, runs_a_lambda_with_captures) {
  in_world([] {
    const auto me = this_process<function>();
    const std::string text = "captured";
    const auto f = spawn_here(where(), [=] { send(me, text); });
    EXPECT_EQ(f.address().pe, GetParam());
    EXPECT_EQ(receive<std::string>(), "captured");
    spawn_here(where(), [me, owned = std::make_unique<int>(7)] { send(me, *owned); });
    EXPECT_EQ(receive<int>(), 7);
  });
}

struct Unsendable {
  explicit Unsendable(int n) : value(n) {}
  int value;
  std::mutex lock{};
};

TEST_P(spawn_here_at, passes_what_cannot_be_sent) {
  in_world([] {
    Unsendable here_only(5);
    spawn_here(
        where(), [](Unsendable* u, std::unique_ptr<int> n, remote<function> to) { send(to, u->value + *n); },
        &here_only, std::make_unique<int>(2), this_process<function>());
    EXPECT_EQ(receive<int>(), 7);
  });
}

TEST(spawn_here, means_the_callers_pe_without_a_place) {
  in_world(2, [] {
    const auto me = this_process<function>();
    const auto f = spawn_here([me](int n) { send(me, n); }, 3);
    EXPECT_EQ(f.address().pe, me.address().pe);
    EXPECT_EQ(receive<int>(), 3);
  });
}

TEST(spawn_here, refuses_a_place_on_another_node) {
  in_simulation("machines=2", [] {
    const int n = 1;
    const std::string why = what_is_thrown<usage_error>([&] { spawn_here(pe(1), [n] { (void)n; }); });
    EXPECT_NE(why.find("PE 1 is on another node"), std::string::npos) << why;
    EXPECT_NE(why.find("pass what it needs as arguments"), std::string::npos) << why;
  });
}

TEST(spawn_here, refuses_a_place_that_there_is_not) {
  in_world(2, [] {
    const auto owned = std::make_shared<int>(0);
    (void)what_is_thrown<usage_error>([&] { spawn_here(pe(7), [owned] {}); });
    EXPECT_EQ(owned.use_count(), 1);
  });
}

}  // namespace spawn_here_tests
}  // namespace orrery
