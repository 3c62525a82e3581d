// SPDX-License-Identifier: Apache-2.0
#pragma once

// A scenario (scenario.hpp) in each kind of world: threads, nodes of one PE, nodes of several, and simulated machines with five seeds.

#include "scenario.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace orrery::testing {

struct way {
  const char* name;
  std::vector<std::vector<std::string>> worlds;  ///< options
};

inline const way threads{"threads", {{"--orrery-pes=3"}}};
inline const way nodes_of_one{"three_nodes", {{"--orrery-nodes=3", "--orrery-pes=1"}}};
inline const way nodes_of_two{"two_nodes_of_two", {{"--orrery-nodes=2", "--orrery-pes=2"}}};
inline const way simulated{"simulated",
                           {{"--orrery-sim=machines=3,jitter=5us,seed=1"},
                            {"--orrery-sim=machines=3,jitter=5us,seed=2"},
                            {"--orrery-sim=machines=3,jitter=5us,seed=3"},
                            {"--orrery-sim=machines=3,jitter=5us,seed=4"},
                            {"--orrery-sim=machines=3,jitter=5us,seed=5"}}};
/// As threads, with all arguments and results written and read.
inline const way serialized{"serialized", {{"--orrery-pes=3", "--orrery-serialize"}}};

class in_each_way : public ::testing::TestWithParam<const way*> {
 protected:
  /// What the worlds say until one of them fails; nothing if none does.
  static std::string wrong_in(std::string_view scenario) {
    for (std::vector<std::string> options : GetParam()->worlds) {
      options.push_back(fmt::format("--scenario={}", scenario));
      if (GetParam() == &simulated) options.emplace_back("--orrery-quiet");
      const std::string said = outcome_of(options);
      if (said != "good") return fmt::format("{}: {}", options[0], said);
    }
    return {};
  }
};

/// A scenario that loses the last of three nodes, which each PE may tell of: nothing if all is well.
inline std::string wrong_where_a_node_is_lost(std::string_view scenario) {
  for (const char* pes : {"--orrery-pes=1", "--orrery-pes=2"}) {
    const std::string said = outcome_of({fmt::format("--scenario={}", scenario), "--orrery-nodes=3", pes});
    if (!said.ends_with("good")) return said;
  }
  return {};
}

}  // namespace orrery::testing

#define INSTANTIATE_IN_FOUR_WAYS(suite)                                                                       \
  INSTANTIATE_TEST_SUITE_P(on, suite,                                                                         \
                           ::testing::Values(&::orrery::testing::threads, &::orrery::testing::nodes_of_one,   \
                                             &::orrery::testing::nodes_of_two, &::orrery::testing::simulated, \
                                             &::orrery::testing::serialized),                                 \
                           [](const auto& i) { return i.param->name; })
