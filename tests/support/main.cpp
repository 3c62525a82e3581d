// SPDX-License-Identifier: Apache-2.0
// The main of a program of several files of tests with scenarios.

#include "scenario.hpp"

int main(int argc, char** argv) {
  using namespace orrery::testing;
  return run_tests_or_scenario(argc, argv, scenarios_of_all_files());
}
