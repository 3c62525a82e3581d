// SPDX-License-Identifier: Apache-2.0
#include <orrery/process/options.hpp>
#include <orrery/wire/error.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace orrery {
namespace options_tests {

using strings = std::vector<std::string>;
using variables = std::map<std::string, std::string, std::less<>>;

started_with parse(const strings& arguments, const variables& env = {}) {
  strings all{"program"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  strings names;
  for (const auto& [name, value] : env) names.push_back(name);
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto it = env.find(name);
    return it != env.end() ? std::optional(it->second) : std::nullopt;
  };
  return parse_options(all, lookup, names);
}

// The text of the error, or "none".
std::string error_of(const strings& arguments, const variables& env = {}) {
  try {
    (void)parse(arguments, env);
  } catch (const world_error& e) {
    EXPECT_EQ(e.code(), errc::world_bad_setting);
    return e.what();
  }
  return "none";
}

TEST(options, without_any_all_have_their_defaults) {
  const options o = parse({}).values;
  EXPECT_EQ(o.pes, 0u);
  EXPECT_EQ(o.nodes, 1u);
  EXPECT_EQ(o.world, "");
  EXPECT_EQ(o.waiting, waiting::notify);
  EXPECT_TRUE(o.pin);
  EXPECT_FALSE(o.quiet);
}

TEST(options, the_values_are_taken_with_an_equals_sign_or_as_the_next_argument) {
  EXPECT_EQ(parse({"--orrery-nodes=4"}).values.nodes, 4u);
  EXPECT_EQ(parse({"--orrery-nodes", "4"}).values.nodes, 4u);
}

TEST(options, those_of_the_runtime_are_taken_out_and_the_others_stay_in_order) {
  const auto s = parse({"in.txt", "--orrery-pes=2", "-v", "--depth", "--orrery-quiet", "-3", "x=y"});
  EXPECT_EQ(s.rest, (strings{"program", "in.txt", "-v", "--depth", "-3", "x=y"}));
  EXPECT_EQ(s.values.pes, 2u);
  EXPECT_TRUE(s.values.quiet);
}

RC_GTEST_PROP(options, what_is_the_programs_is_left_as_it_is, (strings arguments)) {
  for (std::string& a : arguments) std::erase(a, '\0');  // no argument can hold it
  const auto s = parse(arguments);
  RC_ASSERT(strings(s.rest.begin() + 1, s.rest.end()) == arguments);
}

TEST(options, two_dashes_leave_the_rest_to_the_program) {
  const auto s = parse({"--orrery-pes=2", "--", "--orrery-pes=7", "--orrery-nonsense"});
  EXPECT_EQ(s.values.pes, 2u);
  EXPECT_EQ(s.rest, (strings{"program", "--", "--orrery-pes=7", "--orrery-nonsense"}));
}

TEST(options, the_last_of_two_on_the_command_line_wins) {
  EXPECT_EQ(parse({"--orrery-pes=2", "--orrery-pes=3"}).values.pes, 3u);
}

TEST(options, the_environment_sets_them_too_and_the_command_line_wins) {
  const variables env{{"ORRERY_NODES", "3"}, {"ORRERY_METHOD_STACK", "1M"}};
  EXPECT_EQ(parse({}, env).values.nodes, 3u);
  EXPECT_EQ(parse({}, env).values.method_stack, 1U << 20);
  EXPECT_EQ(parse({"--orrery-nodes=2"}, env).values.nodes, 2u);
  EXPECT_EQ(parse({"--orrery-nodes=2"}, {{"ORRERY_NODES", "wrong"}}).values.nodes, 2u);
  EXPECT_EQ(error_of({"--", "--orrery-nodes=2"}, {{"ORRERY_NODES", "wrong"}}).substr(0, 18), "ORRERY_NODES=wrong");
}

TEST(options, an_empty_variable_is_as_good_as_none) { EXPECT_EQ(parse({}, {{"ORRERY_NODES", ""}}).values.nodes, 1u); }

TEST(options, sizes_have_binary_units_or_none) {
  const auto mailbox = [](const std::string& text) { return parse({"--orrery-mailbox=" + text}).values.mailbox; };
  EXPECT_EQ(mailbox("4096"), 4096u);
  EXPECT_EQ(mailbox("64K"), 64U << 10);
  EXPECT_EQ(mailbox("64k"), 64U << 10);
  EXPECT_EQ(mailbox("64KiB"), 64U << 10);
  EXPECT_EQ(mailbox("2G"), 2U << 30);
}

TEST(options, times_have_a_unit) {
  using namespace std::chrono_literals;
  const auto spin = [](const std::string& text) { return parse({"--orrery-spin=" + text}).values.spin; };
  EXPECT_EQ(spin("50us"), 50us);
  EXPECT_EQ(spin("1ms"), 1ms);
  EXPECT_EQ(spin("800ns"), 800ns);
  EXPECT_EQ(spin("2s"), 2s);
  EXPECT_EQ(spin("0"), 0s);
  EXPECT_NE(error_of({"--orrery-spin=50"}), "none");
}

TEST(options, auto_is_a_number_where_the_runtime_can_choose_one) {
  EXPECT_EQ(parse({"--orrery-pes=auto"}).values.pes, 0u);
  EXPECT_EQ(parse({"--orrery-memory=auto"}).values.memory, 0u);
  EXPECT_NE(error_of({"--orrery-nodes=auto"}), "none");
}

TEST(options, a_flag_is_set_alone_or_says_yes_or_no) {
  EXPECT_TRUE(parse({"--orrery-quiet"}).values.quiet);
  EXPECT_FALSE(parse({"--orrery-quiet=no"}, {{"ORRERY_QUIET", "1"}}).values.quiet);
  EXPECT_FALSE(parse({"--orrery-pin=off"}).values.pin);
  EXPECT_FALSE(parse({}, {{"ORRERY_PIN", "0"}}).values.pin);
}

TEST(options, a_flag_does_not_take_the_next_argument) {
  EXPECT_EQ(parse({"--orrery-quiet", "no"}).rest, (strings{"program", "no"}));
}

TEST(options, a_wrong_value_is_an_error_that_says_what_is_allowed) {
  EXPECT_EQ(error_of({"--orrery-pes=many"}),
            "--orrery-pes=many: this value cannot be; allowed is a number from 1 to 4096, or auto");
  EXPECT_EQ(error_of({"--orrery-mailbox=12Q"}),
            "--orrery-mailbox=12Q: this value cannot be; allowed is a size from 4K to 2G, written like "
            "64K, 1M or 2G");
  EXPECT_EQ(error_of({"--orrery-waiting=later"}),
            "--orrery-waiting=later: this value cannot be; allowed is wait, notify, immediate");
}

TEST(options, a_wrong_value_in_the_environment_is_an_error_that_names_the_variable) {
  EXPECT_EQ(error_of({}, {{"ORRERY_PIN", "maybe"}}), "ORRERY_PIN=maybe: this value cannot be; allowed is yes or no");
}

TEST(options, no_value_can_be_out_of_range_negative_or_with_something_behind_it) {
  for (const char* bad : {"0", "-1", "4097", "1x", "+1", " 1", "1 ", "1e1", "99999999999999999999"})
    EXPECT_NE(error_of({std::string("--orrery-pes=") + bad}), "none") << bad;
  for (const char* bad : {"K", "-1M", "1.5M", "1MM", "99999999999G", "16E", "64 Q", "nan"})
    EXPECT_NE(error_of({std::string("--orrery-method-stack=") + bad}), "none") << bad;
}

TEST(options, sizes_and_times_are_decimal) {
  EXPECT_EQ(
      error_of({"--orrery-ring=0100K"}),
      "--orrery-ring=0100K: numbers are decimal and do not begin with 0; allowed is a size from 32K to 1G, written "
      "like 64K, 1M or 2G");
  for (const char* bad : {"0100000", "0x10000", "0X10000", "00", "0x10K"})
    EXPECT_NE(error_of({std::string("--orrery-mailbox=") + bad}).find("decimal"), std::string::npos) << bad;
  for (const char* bad : {"010ms", "0x10us", "00s"})
    EXPECT_NE(error_of({std::string("--orrery-spin=") + bad}).find("decimal"), std::string::npos) << bad;
  EXPECT_EQ(parse({"--orrery-spin=0ms"}).values.spin, std::chrono::seconds(0));
}

TEST(options, an_error_names_the_words_that_an_option_may_have) {
  const strings arguments{"program", "--orrery-role="};
  const strings roles{"count", "work"};
  const auto error = [&](std::span<const std::string> known) -> std::string {
    try {
      (void)parse_options(arguments, [](std::string_view) { return std::optional<std::string>(); }, {}, known);
    } catch (const world_error& e) {
      return e.what();
    }
    return "none";
  };
  EXPECT_EQ(error(roles), "--orrery-role has no value: write --orrery-role=NAME; allowed is count, work");
  EXPECT_EQ(error({}),
            "--orrery-role has no value: write --orrery-role=NAME; allowed is the name of a role of this program");
  const std::string networks = "allowed is shm, 10g, 200g, or L:o:g:B like 900ns:150ns:10ns:25G";
  EXPECT_EQ(error_of({"--orrery-advise-net="}),
            "--orrery-advise-net has no value: write --orrery-advise-net=NET; " + networks);
  EXPECT_EQ(error_of({"--orrery-advise-net=1g"}), "--orrery-advise-net=1g: this value cannot be; " + networks);
  EXPECT_EQ(error_of({}, {{"ORRERY_ADVISE_NET", "1g"}}), "ORRERY_ADVISE_NET=1g: this value cannot be; " + networks);
}

TEST(options, a_missing_value_is_an_error_and_takes_nothing_from_the_program) {
  const std::string text = "--orrery-nodes has no value: write --orrery-nodes=N; allowed is a number from 1 to 4096";
  EXPECT_EQ(error_of({"--orrery-nodes"}), text);
  EXPECT_EQ(error_of({"--orrery-nodes=", "4"}), text);
  EXPECT_EQ(error_of({"--orrery-nodes", "--orrery-pes=2"}), text);
  EXPECT_EQ(error_of({"--orrery-nodes", "--", "4"}), text);
}

TEST(options, an_unknown_one_is_an_error_with_the_nearest_known_one) {
  EXPECT_EQ(error_of({"--orrery-node=4"}),
            "there is no option --orrery-node; --orrery-help lists those that there are; did you mean "
            "--orrery-nodes?");
  EXPECT_EQ(error_of({"--orrery-frobnicate"}),
            "there is no option --orrery-frobnicate; --orrery-help lists those that there are");
}

TEST(options, a_variable_that_looks_like_one_of_them_is_warned_of) {
  const auto s = parse({}, {{"ORRERY_NODE", "4"}, {"ORRERY_MAIL_BOX", "1M"}, {"ORRERY_HOME", "/x"}, {"PATH", "/"}});
  EXPECT_EQ(s.warnings, (strings{"the environment variable ORRERY_MAIL_BOX means nothing; did you mean ORRERY_MAILBOX?",
                                 "the environment variable ORRERY_NODE means nothing; did you mean ORRERY_NODES?"}));
}

TEST(options, a_ring_must_be_a_power_of_two) {
  EXPECT_EQ(parse({"--orrery-ring=64K"}).values.ring, 64U << 10);
  EXPECT_EQ(error_of({"--orrery-ring=100K"}), "--orrery-ring=100K: this is no power of two; take 64K or 128K");
}

TEST(options, the_name_of_a_world_is_checked) {
  EXPECT_EQ(parse({"--orrery-world=demo-1.a"}).values.world, "demo-1.a");
  for (const char* bad : {"../x", "a b", "a/b"})
    EXPECT_NE(error_of({std::string("--orrery-world=") + bad}), "none") << bad;
}

TEST(options, every_one_of_them_can_be_set_to_its_own_default) {
  for (const option_info& info : option_table()) {
    const std::string value = info.automatic.empty() ? info.default_text() : "auto";
    EXPECT_EQ(error_of({info.flag() + '=' + value}), "none") << info.flag();
  }
}

TEST(options, help_and_docs_name_each_option_and_its_variable) {
  const std::string help = options_help("fft");
  const std::string docs = options_markdown();
  for (const option_info& info : option_table()) {
    for (const std::string* text : {&help, &docs}) {
      EXPECT_NE(text->find(info.flag()), std::string::npos);
      EXPECT_NE(text->find(info.variable()), std::string::npos);
      EXPECT_NE(text->find(info.meaning), std::string::npos);
    }
  }
}

TEST(options, the_waiting_policies_are_points_of_the_spinning_budget) {
  const auto spin_ns = [](const strings& arguments) { return node_settings_of(parse(arguments).values).pe.spin_ns; };
  EXPECT_EQ(spin_ns({"--orrery-waiting=immediate", "--orrery-spin=1ms"}), 0);
  EXPECT_EQ(spin_ns({"--orrery-waiting=notify", "--orrery-spin=1ms"}), 1'000'000);
  EXPECT_GT(spin_ns({"--orrery-waiting=wait", "--orrery-spin=1ms"}), 3'600'000'000'000);
}

TEST(options, the_scheduler_gets_them) {
  const auto s =
      node_settings_of(parse({"--orrery-pes=3", "--orrery-pin=no", "--orrery-ring=64K", "--orrery-mailbox=8K",
                              "--orrery-method-stack=512K", "--orrery-function-stack=32K"})
                           .values);
  EXPECT_EQ(s.pes, 3u);
  EXPECT_FALSE(s.pin);
  EXPECT_EQ(s.pe.ring_bytes, 64U << 10);
  EXPECT_EQ(s.pe.mailbox_bytes, 8U << 10);
  EXPECT_EQ(s.pe.method_stack, 512U << 10);
  EXPECT_EQ(s.pe.function_stack, 32U << 10);
}

TEST(options, a_network_that_there_is_not_is_an_error_also_without_advice) {
  EXPECT_THROW((void)node_settings_of(parse({"--orrery-advise-net=foo"}).values), world_error);
}

}  // namespace options_tests
}  // namespace orrery
