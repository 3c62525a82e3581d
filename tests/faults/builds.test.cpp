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

constexpr std::string_view refused =
    "whose processes or messages differ; join with the same build or choose another name";

class another_build : public ::testing::TestWithParam<const char*> {};
TEST_P(another_build, whose_fields_differ_is_refused_with_a_clear_error) {
  const std::string said = joined_by(GetParam());
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
  EXPECT_EQ(count_of(said, refused), 1) << said;
  EXPECT_EQ(count_of(said, "\n"), 1) << said;
}
INSTANTIATE_TEST_SUITE_P(of, another_build, ::testing::Values("swapped", "retyped", "added", "serialized_otherwise"),
                         [](const auto& i) { return std::string(i.param); });

TEST(other_code, that_sends_the_same_may_join) { EXPECT_EQ(joined_by("other_code"), "other code\ngood"); }
TEST(the_same_build, may_join) { EXPECT_EQ(joined_by("as_it_was"), "good"); }

}  // namespace
