// SPDX-License-Identifier: Apache-2.0
#include <orrery/scheduler/pe.hpp>
#include <orrery/scheduler/trace.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

namespace orrery::scheduler {
namespace trace_tests {

namespace fs = std::filesystem;
using nlohmann::json;

const handler outer_method("Traced", "outer", "void()", nullptr, nullptr, nullptr, 0, false);
const handler inner_method("Traced", "in\"ner", "void()", nullptr, nullptr, nullptr, 0, false);
const class_info traced_class{"Traced", [](void*) {}, {}, false};
const class_info function_class{"process function", nullptr, {}, false};

// A folder of its own for each test.
class trace : public ::testing::Test {
 protected:
  trace() {
    fs::create_directories(folder_);
    object_.class_number = traced_class.number;
  }
  ~trace() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name = "out.json") const { return folder_ / name; }

  trace_settings settings() {
    trace_settings s;
    s.path = path();
    s.program = "test \"quoted\"";
    return s;
  }
  trace_settings settings_of_node(std::uint32_t node, std::uint64_t world = 7) {
    trace_settings s = settings();
    s.alone = false;
    s.node = node;
    s.world = world;
    return s;
  }
  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  /// The events of that kind; without those about names.
  std::vector<json> events(const std::string& phase, const std::string& file = "out.json") const {
    const json all = json::parse(text_of(path(file)));
    std::vector<json> some;
    for (const json& e : all.at("traceEvents"))
      if (e.at("ph") == phase) some.push_back(e);
    return some;
  }

  slot object_{};
  const address where_{1, 17, 2};
  activation outer_{&object_, &outer_method, nullptr};
  activation inner_{&object_, &inner_method, &outer_};

 private:
  const fs::path folder_ =
      fs::temp_directory_path() / ("orrery-trace-" + std::to_string(::getpid()) + "-" +
                                   ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::int64_t ns(const json& us) { return std::llround(us.get<double>() * 1000); }

// Slices of one row lie beside or inside each other, and the outer one comes first.
void expect_nested(const std::vector<json>& slices) {
  std::vector<std::int64_t> open;  // ends
  std::int64_t last = 0;
  for (const json& s : slices) {
    const std::int64_t begin = ns(s.at("ts"));
    const std::int64_t end = begin + ns(s.at("dur"));
    EXPECT_GE(begin, last);
    last = begin;
    while (!open.empty() && open.back() <= begin) open.pop_back();
    EXPECT_TRUE(open.empty() || end <= open.back() + 1) << s;
    open.push_back(end);
  }
}

TEST_F(trace, a_method_is_one_slice_with_its_name_node_pe_and_process) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  b.begin(outer_, where_);
  b.end(outer_);
  EXPECT_EQ(t.finish().problem, "");
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 1u);
  EXPECT_EQ(slices[0].at("name"), "Traced::outer");
  EXPECT_EQ(slices[0].at("pid"), 0);
  EXPECT_EQ(slices[0].at("tid"), 1);
  EXPECT_EQ(slices[0].at("args").at("process"), "1.17#2");
  EXPECT_TRUE(events("b").empty());
}

TEST_F(trace, an_inline_call_lies_inside_of_its_caller) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  b.begin(outer_, where_);
  b.begin(inner_, where_);
  b.end(inner_);
  b.end(outer_);
  (void)t.finish();
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].at("name"), "Traced::outer");
  EXPECT_EQ(slices[1].at("name"), "Traced::in\"ner");
  expect_nested(slices);
}

TEST_F(trace, a_method_that_parks_has_a_slice_for_each_run_and_a_row_for_all) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  b.begin(outer_, where_);
  b.park();
  b.resume(&outer_);
  b.end(outer_);
  (void)t.finish();
  EXPECT_EQ(events("X").size(), 2u);
  const auto begins = events("b");
  const auto ends = events("e");
  ASSERT_EQ(begins.size(), 2u);
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(begins[0].at("name"), "Traced::outer");
  EXPECT_EQ(begins[1].at("name"), "parked");
  for (const json& e : begins) EXPECT_EQ(e.at("id"), ends[0].at("id"));
  EXPECT_LE(ns(begins[0].at("ts")), ns(begins[1].at("ts")));
  EXPECT_GE(ns(ends[0].at("ts")), ns(ends[1].at("ts")));
}

TEST_F(trace, two_methods_that_park_have_rows_of_their_own) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  activation other{&object_, &inner_method, nullptr};
  b.begin(outer_, where_);
  b.park();
  b.begin(other, where_);
  b.park();
  b.resume(&outer_);
  b.end(outer_);
  b.resume(&other);
  b.end(other);
  (void)t.finish();
  std::map<std::string, std::string> id_of;
  for (const json& e : events("b"))
    if (e.at("name") != "parked") id_of[e.at("name")] = e.at("id");
  EXPECT_EQ(id_of.size(), 2u);
  EXPECT_NE(id_of["Traced::outer"], id_of["Traced::in\"ner"]);
  expect_nested(events("X"));
}

TEST_F(trace, pes_do_not_share_rows_of_parked_methods) {
  tracer t(settings());
  for (const std::uint32_t pe : {0U, 1U}) {
    trace_buffer& b = t.add_pe(pe);
    b.begin(outer_, {pe, 1, 1});
    b.park();
  }
  (void)t.finish();
  const auto begins = events("b");
  ASSERT_EQ(begins.size(), 4u);
  EXPECT_NE(begins.front().at("id"), begins.back().at("id"));
}

TEST_F(trace, whole_stacks_of_inline_calls_are_parked_and_go_on) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  b.begin(outer_, where_);
  b.begin(inner_, where_);
  b.park();
  b.slept(10, 20);
  b.resume(&inner_);
  b.end(inner_);
  b.end(outer_);
  (void)t.finish();
  EXPECT_EQ(events("X").size(), 5u);
  expect_nested(events("X"));
  EXPECT_EQ(events("b").size(), 4u);
  EXPECT_EQ(events("e").size(), 4u);
}

TEST_F(trace, a_method_that_is_still_parked_at_the_end_has_a_begin_without_an_end) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  b.begin(outer_, where_);
  b.park();
  (void)t.finish();
  EXPECT_EQ(events("X").size(), 1u);
  EXPECT_EQ(events("b").size(), 2u);
  EXPECT_TRUE(events("e").empty());
}

TEST_F(trace, any_order_of_calls_parks_and_ends_gives_slices_that_nest) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  std::vector<std::vector<std::unique_ptr<activation>>> fibers(1);
  std::size_t now = 0;
  const auto top = [&] { return fibers[now].empty() ? nullptr : fibers[now].back().get(); };
  for (int i = 0; i < 5000; ++i) {
    const auto choice = random() % 5;
    if (choice <= 1 && fibers[now].size() < 6) {
      fibers[now].push_back(std::make_unique<activation>(activation{&object_, &outer_method, top()}));
      b.begin(*top(), where_);
    } else if (choice <= 3 && top() != nullptr) {
      b.end(*top());
      fibers[now].pop_back();
    } else {
      b.park();
      now = random() % (fibers.size() + 1);
      if (now == fibers.size()) fibers.emplace_back();
      b.resume(top());
    }
  }
  (void)t.finish();
  EXPECT_GT(events("X").size(), 1000u);
  expect_nested(events("X"));
}

TEST_F(trace, a_process_function_and_a_destructor_are_named_by_their_class) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(1);
  slot function{};
  function.class_number = function_class.number;
  activation f{&function, nullptr, nullptr};
  b.begin(f, where_);
  b.end(f);
  activation d{&object_, nullptr, nullptr};
  b.begin(d, where_);
  b.end(d);
  (void)t.finish();
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_EQ(slices[0].at("name"), "process function");
  EXPECT_EQ(slices[1].at("name"), "Traced::(destructor)");
}

TEST_F(trace, nodes_and_pes_are_named) {
  tracer t(settings());
  (void)t.add_pe(3);
  (void)t.finish();
  std::map<std::string, json> names;
  for (const json& e : events("M")) names[e.at("name")] = e.at("args");
  EXPECT_TRUE(names.at("process_name").at("name").get<std::string>().starts_with("node 0: test \"quoted\""));
  EXPECT_EQ(names.at("thread_name").at("name"), "PE 3");
}

TEST_F(trace, events_beyond_the_limit_are_counted_and_the_first_ones_are_kept) {
  trace_settings s = settings();
  s.bytes_per_pe = 4800;
  tracer t(s);
  trace_buffer& b = t.add_pe(0);
  for (int i = 0; i < 1000; ++i) {
    b.begin(outer_, where_);
    b.end(outer_);
  }
  const trace_summary summary = t.finish();
  EXPECT_GT(summary.events, 50u);
  EXPECT_LE(summary.events, 100u);
  EXPECT_EQ(summary.events + summary.dropped, 1000u);
  EXPECT_EQ(events("X").size(), summary.events);
  EXPECT_EQ(events("i").size(), 1u);
  EXPECT_NE(to_string(summary).find("--orrery-trace-memory"), std::string::npos);
}

TEST_F(trace, more_events_than_a_chunk_holds_are_all_written) {
  tracer t(settings());
  trace_buffer& b = t.add_pe(0);
  for (int i = 0; i < 20000; ++i) {
    b.begin(outer_, where_);
    b.end(outer_);
  }
  EXPECT_EQ(t.finish().dropped, 0u);
  EXPECT_EQ(events("X").size(), 20000u);
}

TEST_F(trace, a_file_that_cannot_be_opened_is_an_error_at_once) {
  trace_settings s = settings();
  s.path = path("no/such/folder/out.json");
  try {
    const tracer t(s);
    FAIL();
  } catch (const world_error& e) {
    EXPECT_NE(std::string(e.what()).find(s.path), std::string::npos);
  }
}

TEST_F(trace, a_full_disk_is_reported) {
  trace_settings s = settings();
  s.path = "/dev/full";
  tracer t(s);
  EXPECT_NE(t.finish().problem, "");
  EXPECT_TRUE(fs::exists("/dev/full"));
}

TEST_F(trace, nothing_is_left_when_the_run_never_began) {
  {
    const tracer t(settings());
  }
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(trace, the_files_of_all_nodes_are_merged_and_removed) {
  for (const std::uint32_t node : {0U, 1U, 2U}) {
    tracer t(settings_of_node(node));
    trace_buffer& b = t.add_pe(node);
    b.begin(outer_, where_);
    b.end(outer_);
    EXPECT_EQ(t.finish().events, 1u);
    EXPECT_TRUE(fs::exists(path("out.json." + std::to_string(node))));
  }
  const trace_summary s = merge_traces(path(), 7, 3);
  EXPECT_EQ(s.problem, "");
  EXPECT_EQ(s.events, 3u);
  EXPECT_TRUE(s.missing.empty());
  const auto slices = events("X");
  ASSERT_EQ(slices.size(), 3u);
  for (const int node : {0, 1, 2}) EXPECT_EQ(slices[node].at("pid"), node);
  EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path()).parent_path()), {}), 1);
}

TEST_F(trace, a_node_that_has_crashed_is_missing_in_the_merged_trace) {
  {
    tracer t(settings_of_node(1));
    (void)t.add_pe(1);
    (void)t.finish();
  }
  std::ofstream(path("out.json.2")).close();
  const trace_summary s = merge_traces(path(), 7, 3);
  EXPECT_EQ(s.problem, "");
  EXPECT_EQ(s.missing, (std::vector<std::uint32_t>{0, 2}));
  EXPECT_FALSE(fs::exists(path("out.json.2")));
  EXPECT_TRUE(json::accept(text_of(path())));
}

TEST_F(trace, what_an_earlier_world_left_is_not_merged) {
  for (const auto& [node, world] : std::vector<std::pair<std::uint32_t, std::uint64_t>>{{0, 7}, {1, 6}}) {
    tracer t(settings_of_node(node, world));
    (void)t.add_pe(node);
    (void)t.finish();
  }
  EXPECT_EQ(merge_traces(path(), 7, 2).missing, std::vector<std::uint32_t>{1});
}

TEST_F(trace, a_file_cut_off_anywhere_still_merges_to_valid_json) {
  {
    tracer t(settings_of_node(0));
    trace_buffer& b = t.add_pe(0);
    b.begin(outer_, where_);
    b.park();
    b.resume(&outer_);
    b.end(outer_);
    (void)t.finish();
  }
  const std::string whole = text_of(path("out.json.0"));
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    std::ofstream(path("out.json.0")) << whole.substr(0, length);
    const trace_summary s = merge_traces(path(), 7, 1);
    ASSERT_EQ(s.problem, "");
    ASSERT_TRUE(json::accept(text_of(path()))) << text_of(path());
  }
  EXPECT_EQ(events("X").size(), 2u);
}

TEST_F(trace, dropped_events_of_all_nodes_are_added_up) {
  for (const std::uint32_t node : {0U, 1U}) {
    trace_settings s = settings_of_node(node);
    s.bytes_per_pe = 480;
    tracer t(s);
    trace_buffer& b = t.add_pe(node);
    for (int i = 0; i < 100; ++i) b.slept(i, i + 1);
    (void)t.finish();
  }
  EXPECT_GE(merge_traces(path(), 7, 2).dropped, 180u);
}

TEST_F(trace, on_a_full_drive_leaves_what_can_be_read_and_says_where) {
  const rlimit before = [] {
    rlimit r{};
    ::getrlimit(RLIMIT_FSIZE, &r);
    return r;
  }();
  const auto limit = [&](rlim_t bytes) {
    const rlimit r{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &r);
  };
  for (std::uint32_t node = 0; node < 2; ++node) {
    tracer t(settings_of_node(node));
    trace_buffer& b = t.add_pe(node);
    for (int i = 0; i < 1000; ++i) b.slept(i, i + 1);
    (void)t.finish();
  }
  std::ofstream(path("out.json.2")).close();  // of a node that had no room
  limit(fs::file_size(path("out.json.0")) + 100);
  const trace_summary s = merge_traces(path(), 7, 3);
  limit(before.rlim_cur);
  EXPECT_TRUE(s.problem.ends_with(
      fmt::format("; what the nodes have written of it is in {}, {}", path("out.json.0"), path("out.json.1"))))
      << s.problem;
  EXPECT_TRUE(fs::exists(path("out.json.0")));
  for (const char* none : {"out.json", "out.json.merging", "out.json.2"}) EXPECT_FALSE(fs::exists(path(none))) << none;

  trace_settings alone = settings_of_node(0);
  alone.alone = true;
  alone.path = path("alone.json");
  tracer t(alone);
  trace_buffer& b = t.add_pe(0);
  for (int i = 0; i < 1000; ++i) b.slept(i, i + 1);
  limit(1000);
  const std::string problem = t.finish().problem;
  limit(before.rlim_cur);
  EXPECT_NE(problem, "");
  EXPECT_FALSE(fs::exists(path("alone.json")));
}

TEST_F(trace, a_merged_trace_that_cannot_be_written_keeps_the_parts) {
  {
    tracer t(settings_of_node(0));
    (void)t.finish();
  }
  fs::create_directory(path("out.json.merging"));
  EXPECT_NE(merge_traces(path(), 7, 1).problem, "");
  EXPECT_TRUE(fs::exists(path("out.json.0")));
}

}  // namespace trace_tests
}  // namespace orrery::scheduler
