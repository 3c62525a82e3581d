// SPDX-License-Identifier: Apache-2.0
#include <orrery/transport/mpi/helper_pace.hpp>

#include <gtest/gtest.h>

namespace orrery::transport {
namespace helper_pace_tests {

using cause = socket_watch::cause;

constexpr std::int64_t no_limit = 3'600'000'000'000;
constexpr helper_pace::look nothing{.calm = true};
constexpr helper_pace::look announced{.after = cause::socket, .any = true, .from_far = true, .calm = true};
constexpr helper_pace::look unannounced{.after = cause::time, .any = true, .from_far = true, .calm = true};

helper_pace::pause after_many(helper_pace& pace, const helper_pace::look& look) {
  helper_pace::pause p;
  for (int i = 0; i < 20; ++i) p = pace.next(look);
  return p;
}

TEST(a_helper, sleeps_long_where_sockets_have_announced_what_came) {
  helper_pace pace(no_limit);
  EXPECT_EQ(pace.next(announced).ns, helper_pace::shortest);
  const auto p = after_many(pace, nothing);
  EXPECT_TRUE(p.is_deep);
  EXPECT_EQ(p.ns, helper_pace::deepest);
}

TEST(a_helper, that_has_never_heard_of_another_machine_looks_seldom) {
  helper_pace pace(no_limit);
  const auto p = after_many(pace, nothing);
  EXPECT_TRUE(p.is_deep);
  EXPECT_EQ(p.ns, helper_pace::unheard);
  (void)pace.next(unannounced);
  EXPECT_EQ(after_many(pace, nothing).ns, helper_pace::nap);
}

TEST(a_helper, looks_often_where_they_have_not) {
  helper_pace pace(no_limit);
  (void)pace.next(unannounced);
  EXPECT_EQ(after_many(pace, nothing).ns, helper_pace::nap);
  EXPECT_FALSE(after_many(pace, nothing).is_deep);
  EXPECT_EQ(pace.next(unannounced).ns, helper_pace::shortest);
}

TEST(a_helper, looks_less_often_after_a_second_without_anything) {
  helper_pace pace(no_limit);
  (void)pace.next(unannounced);
  helper_pace::pause p;
  for (std::int64_t slept = 0; slept < 1'100'000'000; slept += p.ns) p = pace.next(nothing);
  EXPECT_EQ(after_many(pace, nothing).ns, helper_pace::long_nap);
  EXPECT_EQ(pace.next(unannounced).ns, helper_pace::shortest);
  EXPECT_EQ(after_many(pace, nothing).ns, helper_pace::nap);
}

TEST(a_helper, looks_often_again_when_two_frames_came_unannounced) {
  helper_pace pace(no_limit);
  (void)pace.next(announced);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(after_many(pace, nothing).is_deep);
    (void)pace.next(unannounced);
  }
  EXPECT_FALSE(after_many(pace, nothing).is_deep);
  (void)pace.next(announced);
  EXPECT_TRUE(after_many(pace, nothing).is_deep);
}

TEST(a_helper, is_awake_while_a_pe_is_or_something_is_on_its_way) {
  helper_pace pace(no_limit);
  (void)pace.next(announced);
  const auto p = after_many(pace, {});
  EXPECT_FALSE(p.is_deep);
  EXPECT_FALSE(p.wakes) << "PEs that drive the carrier read from the sockets themselves";
  EXPECT_EQ(p.ns, helper_pace::nap);
}

TEST(a_helper, leaves_pes_that_drive_the_carrier_alone_until_they_stop) {
  helper_pace pace(no_limit);
  (void)after_many(pace, {});
  const auto p = pace.next({.driven = true});
  EXPECT_EQ(p.ns, helper_pace::driven_nap);
  EXPECT_FALSE(p.wakes);
  EXPECT_LE(pace.next({}).ns, 2 * helper_pace::shortest);
}

TEST(a_helper, never_sleeps_longer_than_signs_of_life_allow) {
  helper_pace pace(5'000'000);
  (void)pace.next(announced);
  EXPECT_EQ(after_many(pace, nothing).ns, 5'000'000);
}

TEST(a_helper, does_not_look_less_often_while_the_library_has_parts_of_blocks) {
  helper_pace pace(no_limit);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(pace.next({.moves_blocks = true}).ns, helper_pace::shortest);
  }
  (void)pace.next({});
  EXPECT_GT(pace.next({}).ns, helper_pace::shortest);
}

}  // namespace helper_pace_tests
}  // namespace orrery::transport
