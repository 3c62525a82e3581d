// SPDX-License-Identifier: Apache-2.0
#include <orrery/wire/error.hpp>

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace error_tests {

// Every number up to the last group's end that has a name is a code.
std::vector<errc> all_codes() {
  std::vector<errc> result;
  for (unsigned n = 0; n != 1024; ++n) {
    const auto code = static_cast<errc>(n);
    if (to_string(code) != "unknown") result.push_back(code);
  }
  return result;
}

TEST(error, there_are_as_many_named_codes_as_enumerators) { EXPECT_EQ(all_codes().size(), 34u); }

TEST(error, no_two_codes_share_a_name_or_a_sentence) {
  std::set<std::string_view> names;
  std::set<std::string_view> sentences;
  for (const errc code : all_codes()) {
    EXPECT_TRUE(names.insert(to_string(code)).second) << to_string(code);
    EXPECT_TRUE(sentences.insert(sentence(code)).second) << to_string(code);
  }
}

TEST(error, a_sentence_has_no_full_stop_as_more_may_follow) {
  for (const errc code : all_codes()) EXPECT_FALSE(sentence(code).ends_with('.'));
}

TEST(error, a_number_that_is_no_code_still_has_a_sentence) {
  EXPECT_EQ(to_string(static_cast<errc>(9999)), "unknown");
  EXPECT_FALSE(sentence(static_cast<errc>(9999)).empty());
}

TEST(error, what_is_the_sentence_after_what_it_is_about) {
  const process_gone e("Device::read of 3.17#2");
  EXPECT_EQ(e.what(), "Device::read of 3.17#2: " + std::string(sentence(errc::process_gone)));
}

TEST(error, of_a_bad_argument_is_what_was_said_about_it) {
  EXPECT_EQ(std::string(usage_error(errc::bad_argument, "reduce: the group has no members").what()),
            "reduce: the group has no members");
  EXPECT_EQ(std::string(usage_error(errc::bad_argument).what()), sentence(errc::bad_argument));
}

TEST(error, what_is_the_sentence_alone_when_nothing_is_known) {
  EXPECT_EQ(std::string(timeout_error().what()), sentence(errc::timeout));
}

TEST(error, every_error_is_caught_as_orrery_error_and_as_runtime_error) {
  EXPECT_THROW(throw node_lost(), error);
  EXPECT_THROW(throw node_lost(), std::runtime_error);
}

template <class Class>
void expect_thrown_for(errc code) {
  try {
    throw_error(code, "x");
  } catch (const Class& e) {
    EXPECT_EQ(e.code(), code);
    EXPECT_EQ(e.what(), code == errc::bad_argument ? "x" : "x: " + std::string(sentence(code)));
  }
}

TEST(error, throw_error_throws_the_class_that_the_code_belongs_to) {
  expect_thrown_for<process_gone>(errc::process_gone);
  expect_thrown_for<node_lost>(errc::node_lost);
  expect_thrown_for<deadlock_error>(errc::deadlock);
  expect_thrown_for<stopped>(errc::stopped);
  expect_thrown_for<timeout_error>(errc::timeout);
  expect_thrown_for<mailbox_full>(errc::mailbox_full);
  expect_thrown_for<broken_promise>(errc::broken_promise);
  expect_thrown_for<name_not_found>(errc::name_not_found);
  expect_thrown_for<name_taken>(errc::name_taken);
  expect_thrown_for<bad_message>(errc::unknown_handler);
  expect_thrown_for<world_error>(errc::world_other_build);
  expect_thrown_for<bad_remote_cast>(errc::bad_remote_cast);
  expect_thrown_for<usage_error>(errc::not_in_process);
}

TEST(error, throw_error_throws_something_even_for_a_number_that_is_no_code) {
  EXPECT_THROW(throw_error(static_cast<errc>(9999)), error);
}

TEST(error, make_error_gives_what_throw_error_throws) {
  try {
    std::rethrow_exception(make_error(errc::world_no_space, "64 MiB"));
  } catch (const world_error& e) {
    EXPECT_EQ(e.code(), errc::world_no_space);
    EXPECT_EQ(e.what(), "64 MiB: " + std::string(sentence(errc::world_no_space)));
  }
}

TEST(error, make_error_verbatim_keeps_the_text) {
  try {
    std::rethrow_exception(make_error(errc::mailbox_full, verbatim, "as it was"));
  } catch (const mailbox_full& e) {
    EXPECT_STREQ(e.what(), "as it was");
  }
}

TEST(error, make_error_verbatim_is_null_for_a_number_that_is_no_code) {
  EXPECT_EQ(make_error(static_cast<errc>(9999), verbatim, ""), nullptr);
  EXPECT_EQ(make_error(errc::remote, verbatim, ""), nullptr);
}

TEST(error, a_remote_error_says_where_and_what_was_thrown) {
  const remote_error e({"Device", "read", 3}, "my_error", "disk on fire");
  EXPECT_STREQ(e.what(), "Device::read on PE 3 threw my_error: disk on fire");
  EXPECT_EQ(e.code(), errc::remote);
  EXPECT_EQ(e.class_name(), "Device");
  EXPECT_EQ(e.method(), "read");
  EXPECT_EQ(e.pe(), 3u);
  EXPECT_EQ(e.type(), "my_error");
  EXPECT_EQ(e.text(), "disk on fire");
}

TEST(error, a_remote_error_of_which_little_is_known_still_reads_well) {
  EXPECT_STREQ(remote_error({"", "", 0}, "", "").what(), "a method on PE 0 threw an unknown type");
  EXPECT_STREQ(remote_error({"", "sum", 1}, "int", "").what(), "sum on PE 1 threw int");
}

TEST(error, copying_an_error_does_not_throw) {
  EXPECT_TRUE(std::is_nothrow_copy_constructible_v<process_gone>);
  EXPECT_TRUE(std::is_nothrow_copy_constructible_v<usage_error>);
  EXPECT_TRUE(std::is_nothrow_copy_constructible_v<remote_error>);
}

}  // namespace error_tests
}  // namespace orrery
