// SPDX-License-Identifier: Apache-2.0
// Two builds of one program meet in a world. The program is builds/sensor.cpp.

#include "../support/scenario.hpp"

#include <gtest/gtest.h>

namespace {

using namespace orrery::testing;

std::string build(std::string_view name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / fmt::format("sensor_{}", name)).string();
}

// What the build says that joins a world of the first one, and how it ends.
std::string joined_by(std::string_view name) {
  const scratch_directory worlds;
  program first({"host", own_world(), worlds.option(), "--orrery-pes=1"}, build("as_it_was"));
  first.hear("up");
  return program({own_world(), worlds.option(), "--orrery-pes=1"}, build(name)).end();
}

struct difference {
  const char* build;
  const char* named;  // the end of the error
};

class another_build : public ::testing::TestWithParam<difference> {};
TEST_P(another_build, whose_fields_differ_is_refused_and_they_are_named) {
  const std::string said = joined_by(GetParam().build);
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
  EXPECT_EQ(count_of(said, GetParam().named), 1) << said;
  EXPECT_EQ(count_of(said, "build both from one definition, or choose another name for the world"), 1) << said;
  EXPECT_EQ(count_of(said, "\n"), 1) << said;
}
INSTANTIATE_TEST_SUITE_P(
    of, another_build,
    ::testing::Values(difference{"swapped",
                                 "reading is {double high, double low; 16 bytes} here, {double low, double high; "
                                 "16 bytes} in program test ("},
                      difference{"retyped", "reading::high is long here, double in program test ("},
                      difference{"added",
                                 "reading is {double low, double high, int unit; 24 bytes} here, {double low, "
                                 "double high; 16 bytes} in program test ("},
                      difference{"serialized_otherwise",
                                 "place is {double, int; 16 bytes} here, {int, double; 16 bytes} in program test ("}),
    [](const auto& i) { return std::string(i.param.build); });

TEST(other_code, that_sends_the_same_may_join) { EXPECT_EQ(joined_by("other_code"), "other code\ngood"); }
TEST(the_same_build, may_join) { EXPECT_EQ(joined_by("as_it_was"), "good"); }

}  // namespace
