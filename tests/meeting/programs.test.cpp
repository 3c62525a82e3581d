// SPDX-License-Identifier: Apache-2.0
// Programs that were built apart meet in a world: by several compilers, optimized or not, each with more than they use in common.

#include "../support/scenario.hpp"

#include <gtest/gtest.h>

namespace {

using namespace orrery::testing;

std::string build(std::string_view name) {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / fmt::format("meeting_{}", name)).string();
}

// What the customer says that joins a world of the shop, and how it ends.
std::string joined_by(std::string_view name) {
  const scratch_directory worlds;
  program shop({own_world(), worlds.option(), "--orrery-pes=1"}, build("shop"));
  shop.hear("up");
  // A post fails on purpose.
  return program({own_world(), worlds.option(), "--orrery-pes=1", "--orrery-failed-exit=0"}, build(name)).end();
}

class a_customer : public ::testing::TestWithParam<const char*> {};
TEST_P(a_customer, that_was_built_otherwise_and_has_more_can_shop) {
  if (!std::filesystem::exists(build(GetParam()))) GTEST_SKIP() << "there is no other compiler";
  const std::string said = joined_by(GetParam());
  EXPECT_TRUE(said.ends_with("good")) << said;
  EXPECT_EQ(count_of(said, "counter::mark failed, and nobody waits for its result"), 1) << said;
  EXPECT_EQ(count_of(said, "not so"), 0) << said;
}
INSTANTIATE_TEST_SUITE_P(of, a_customer, ::testing::Values("customer", "customer_of_other_compiler"),
                         [](const auto& i) { return std::string(i.param); });

void expect_refused(std::string_view name, std::string_view why) {
  const std::string said = joined_by(name);
  EXPECT_TRUE(said.ends_with("exit status 1")) << said;
  EXPECT_EQ(count_of(said, why), 1) << said;
  EXPECT_EQ(count_of(said, "\n"), 1) << said;
}
TEST(another_definition, of_a_signature_is_refused_by_its_name) {
  expect_refused("customer_other_signature",
                 "int shop::counter::add(long) here, int shop::counter::add(int) in program ");
}
TEST(another_definition, of_fields_is_refused_by_their_names) {
  expect_refused("customer_other_field",
                 "shop::price is {std::string of, float euros, float cents; 40 bytes} here, "
                 "{std::string of, double euros; 40 bytes} in program ");
}

}  // namespace
