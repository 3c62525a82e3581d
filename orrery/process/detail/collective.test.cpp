// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/detail/collective.hpp>

#include <orrery/orrery.hpp>
#include <orrery/process/communicator.hpp>
#include <orrery/process/internal/test_world.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery {
namespace collective_tests {

using testing::in_simulation;
using testing::in_world;

struct Meeter;
ORRERY_PROCESS(Meeter, meet, meet_twice);
// Members that may call what the others do not.
struct Meeter : member<Meeter> {
  void call(char what) {
    if (what == 'b') barrier();
    if (what == 'i') (void)all_reduce(1);
    if (what == 'd') (void)all_reduce(1.5);
    if (what == 'm') (void)all_reduce(1, std::multiplies<>{});
    if (what == 'g') (void)all_gather(*this, 1);
    if (what == 's') (void)scan(*this, 1);
    if (what == 'S') (void)scan(*this, 1, std::multiplies<>{});
    if (what == 'e') (void)exclusive_scan(*this, 1, 0);
    if (what == 't') (void)gather_to(*this, 0, 1);
    if (what == 'r') (void)reduce_to(*this, 0, 1);
    if (what == 'f') (void)broadcast_from(*this, 0, 1);
    if (what == 'F') (void)broadcast_from(*this, 1, 1);
    if (what == 'a') (void)all_to_all(*this, std::vector<int>(size()));
    if (what == 'p') (void)split(*this, 0);
  }
  // Calls the collectives of its rank; returns the text of the usage_error that ends them.
  std::string meet(const std::vector<std::string>& calls) {
    for (const char what : calls[rank() % calls.size()]) try {
        call(what);
      } catch (const usage_error& e) {
        return e.what();
      }
    return "none";
  }
  std::string meet_twice(const std::vector<std::string>& calls) {
    (void)meet(calls);
    try {
      barrier();
    } catch (const usage_error& e) {
      return e.what();
    }
    return "none";
  }
};

void expect_both_named(const std::vector<std::string>& heard, const std::string& one, const std::string& other) {
  for (const std::string& h : heard) {
    EXPECT_NE(h.find(one), std::string::npos) << h;
    EXPECT_NE(h.find(other), std::string::npos) << h;
    EXPECT_NE(h.find("at the same point"), std::string::npos) << h;
  }
}

// In the ways that members meet: on one PE, on some, on other machines whose messages take any
// time.
template <class F>
void everywhere_they_meet(F body) {
  for (const std::uint32_t pes : {1U, 2U, 3U}) in_world(pes, body);
  for (int seed = 1; seed <= 5; ++seed) in_simulation(fmt::format("machines=3,jitter=20us,seed={}", seed), body);
}

TEST(collective, a_barrier_and_a_reduction_fail_at_all_members) {
  everywhere_they_meet([] {
    for (const std::size_t n : {2U, 5U, 9U}) {
      auto g = spawn_group<Meeter>(everywhere(), n);
      expect_both_named(g->meet({"b", "i"}), "barrier", "all_reduce of int");
      destroy(g);
    }
  });
}

TEST(collective, one_member_of_many_that_differs_is_enough) {
  everywhere_they_meet([] {
    for (std::size_t odd = 0; odd < 7; ++odd) {
      std::vector<std::string> calls(7, "bib");
      calls[odd] = "bbb";
      auto g = spawn_group<Meeter>(everywhere(), 7);
      expect_both_named(g->meet(calls), "barrier", "all_reduce of int");
      destroy(g);
    }
  });
}

TEST(collective, reductions_of_other_types_fail_at_all_members) {
  everywhere_they_meet([] {
    auto g = spawn_group<Meeter>(everywhere(), 6);
    expect_both_named(g->meet({"bi", "bi", "bd"}), "all_reduce of int", "all_reduce of double");
    auto h = spawn_group<Meeter>(everywhere(), 6);
    expect_both_named(h->meet({"i", "m"}), "plus", "multiplies");
  });
}

TEST(collective, errors_name_what_the_program_calls) {
  const std::vector<std::pair<char, std::string>> names{{'g', "all_gather of int"},
                                                        {'s', "scan of int with std::plus<void>"},
                                                        {'S', "scan of int with std::multiplies<void>"},
                                                        {'e', "exclusive_scan of int with std::plus<void>"},
                                                        {'t', "gather_to of int"},
                                                        {'r', "reduce_to of int with std::plus<void>"},
                                                        {'f', "broadcast_from of int"},
                                                        {'a', "all_to_all of int"},
                                                        {'p', "split"}};
  const auto all = [&] {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const auto& one = names[i];
      const auto& other = names[(i + 1) % names.size()];
      const auto g = spawn_group<Meeter>(everywhere(), 5);
      expect_both_named(g->meet({std::string(1, one.first), std::string(1, other.first)}), one.second, other.second);
      destroy(g);
    }
    const auto g = spawn_group<Meeter>(everywhere(), 4);
    for (const std::string& heard : g->meet({"f", "F"}))
      EXPECT_NE(heard.find("broadcast_from: one member has named rank"), std::string::npos) << heard;
  };
  in_world(3, all);
  in_simulation("machines=3,jitter=20us,seed=1", all);
}

TEST(collective, later_ones_of_that_group_fail_too) {
  everywhere_they_meet([] {
    auto g = spawn_group<Meeter>(everywhere(), 4);
    expect_both_named(g->meet_twice({"b", "i"}), "barrier", "all_reduce of int");
    auto h = spawn_group<Meeter>(everywhere(), 4);
    for (const auto& heard : h->meet({"bibbi"})) EXPECT_EQ(heard, "none");
  });
}

TEST(collective, the_same_ones_in_the_same_order_never_fail) {
  everywhere_they_meet([] {
    auto g = spawn_group<Meeter>(everywhere(), 8);
    for (const auto& heard : g->meet({"bibdmbbiiddbmbbbbibi"})) EXPECT_EQ(heard, "none");
  });
}

}  // namespace collective_tests
}  // namespace orrery
